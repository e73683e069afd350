"""Addresses, one grammar everywhere: a run by path, id, name or alias; an event by step, turn or call.

Every address stays valid while a run grows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import NoSuchEvent, NoSuchRun
from .listing import RunRow, head_and_tail, list_runs

if TYPE_CHECKING:
    from ..tracefile.event import Event
    from .recording import Recording

_WRITER_STEP = re.compile(r"p([0-9a-f]{1,32}):(\d{1,18})\Z")


def default_folder() -> str:
    """Return where runs are kept unless told: ``$REENACT_DIR``, else ``./.reenact``."""
    return os.environ.get("REENACT_DIR") or ".reenact"


def find_run(text: str | None = None, folder: str | None = None) -> RunRow:
    """Return the run at a path, with an id that begins so, of a name, or ``@last @prev @failed``.

    These are runs that were recorded: to replay or fork one leaves them what they are, so that it can be done
    again. ``@replay`` and ``@fork`` are the last of those.
    """
    asked = text or "@last"
    if not asked.startswith("@") and os.path.isfile(asked):
        return head_and_tail(asked)[-1]
    if os.path.isdir(asked):
        asked, folder = "@last", asked
    folder = folder or default_folder()
    if not os.path.isdir(folder):
        raise NoSuchRun(
            f"there is no run {asked}: the folder {folder} does not exist",
            asked=asked,
            hint="`reenact run agent.py` records one; or name a trace file, or the folder by REENACT_DIR",
        )
    rows = [row for row in list_runs(folder) if row.status not in ("foreign", "unreadable")]
    found = _by_alias(asked, rows) if asked.startswith("@") else _by_id_or_name(asked, rows)
    if found is None:
        raise NoSuchRun(f"no run in {folder} is {asked}", asked=asked, hint=_near(asked, rows))
    return found


def _by_alias(asked: str, rows: list[RunRow]) -> RunRow | None:
    recorded = _recorded(rows, rows)
    if asked == "@failed":
        return next((row for row in reversed(recorded) if row.failed), None)
    if asked in ("@replay", "@fork"):
        return next(
            (row for row in reversed(rows) if asked == ("@fork" if row.is_fork else _replay(row))), None
        )
    back = {"@last": 1, "@prev": 2}.get(asked)
    if back is None:
        raise NoSuchRun(
            f"{asked} is no alias for a run",
            asked=asked,
            hint="there are @last, @prev, @failed, @replay and @fork",
        )
    return recorded[-back] if len(recorded) >= back else None


def _recorded(some: list[RunRow], rows: list[RunRow]) -> list[RunRow]:
    """Return those of some runs that are nobody's replay or fork; all of them if there are only such."""
    made_from = _made_from_others(rows)
    return [row for row in some if row.id not in made_from] or some


def _made_from_others(rows: list[RunRow]) -> set[str | None]:
    """Return the ids of replays and forks, and of runs that were begun inside one of them."""
    found: set[str | None] = set()
    for row in rows:  # the oldest first
        if row.id is not None and (row.is_fork or _replay(row) or row.parent_run in found):
            found.add(row.id)
    return found


def _replay(row: RunRow) -> str:
    return "@replay" if "replay_of" in row.meta else ""


def _by_id_or_name(asked: str, rows: list[RunRow]) -> RunRow | None:
    exact = [row for row in rows if row.id == asked]
    named = [row for row in rows if row.name == asked or os.path.basename(row.path) == asked]
    if exact or named:
        return (exact or _recorded(named, rows))[-1]  # the newest of that name
    begins = [row for row in rows if row.id is not None and row.id.startswith(asked)]
    if len({row.id for row in begins}) > 1:
        hint = "it could be " + ", ".join(f"{row.id} ({row.name})" for row in begins[:5])
        raise NoSuchRun(f"{len(begins)} runs have an id that begins with {asked}", asked=asked, hint=hint)
    return begins[-1] if begins else None


def _near(asked: str, rows: list[RunRow]) -> str:
    if not rows:
        return "nothing was recorded there yet"
    import difflib

    names = list(dict.fromkeys([row.name for row in reversed(_recorded(rows, rows))]))
    near = difflib.get_close_matches(asked, names, 3, 0.5) or names[:3]
    return f"there is {', '.join(near)}; `reenact ls` shows all"


def find_event(recording: Recording, address: str | int) -> Event:
    """Return the event of a run at an address."""
    text = str(address).strip()
    found: Event | None = None
    if text.isascii() and text.isdigit() and len(text) < 19:
        found = recording.at_step(int(text))
        hint = f"its first writer has {recording.count(system=True):,} lines at most"
    elif text.startswith("turn:"):
        turns = recording.turns()
        number = text[5:]
        if number.isascii() and number.isdigit() and 0 < int(number[:18]) <= len(turns):
            found = turns[int(number) - 1].request
        hint = f"it has {len(turns)} {'turn' if len(turns) == 1 else 'turns'}"
    elif text.startswith("call:"):
        found, hint = _by_call(recording, text[5:])
    elif text == "@error":
        found, hint = first_error(recording), "no event of it is an error"
    elif (parts := _WRITER_STEP.match(text)) is not None:
        writers = [writer for writer in recording.writers if writer.startswith(parts[1])]
        found = recording.at_step(int(parts[2]), writers[0]) if len(writers) == 1 else None
        hint = "its writers are " + ", ".join(f"p{writer}" for writer in recording.writers[:8])
    else:
        hint = "an event is 12, p77aa:12, turn:3, call:a1b2 or @error"
    if found is None:
        raise NoSuchEvent(f"no event of {recording.name} is at {text}", asked=text, hint=hint)
    return found


def _by_call(recording: Recording, prefix: str) -> tuple[Event | None, str]:
    calls = [
        call for call in recording.calls() if prefix and call.id is not None and call.id.startswith(prefix)
    ]
    exact = [call for call in calls if call.id == prefix] or calls
    if len(exact) == 1:
        return exact[0].event, ""
    if not exact:
        return None, f"none of its {len(recording.calls())} calls has such an id"
    return None, "it could be " + ", ".join(str(call.id) for call in exact[:5])


def errors(recording: Recording) -> Iterator[Event]:
    """Yield the events that are errors and were not made good by a retry."""
    retried = {call.end for turn in recording.turns() for call in turn.attempts[:-1] if call.end is not None}
    return (e for e in recording.events if e.error is not None and e not in retried)


def first_error(recording: Recording) -> Event | None:
    """Return the first event that is an error and was not made good by a retry."""
    return next(errors(recording), None)
