"""The address of a run: a path, an id, a name or an alias such as @last. Events: ``event_addresses``."""

from __future__ import annotations

import os

from ..errors import NoSuchRun, TraceFileError
from ..tracefile.plain_files import is_special
from .listing import RunRow, head_and_tail, list_runs


def default_folder() -> str:
    """Return the default folder of runs: ``$REENACT_DIR``, else ``./.reenact``."""
    return os.environ.get("REENACT_DIR") or ".reenact"


def find_run(text: str | None = None, folder: str | None = None) -> RunRow:
    """Return the run at a path, with an id that begins so, of a name, or ``@last @prev @failed``.

    These are runs that were recorded: to replay or fork one leaves them what they are, so that it can be done
    again. ``@replay`` and ``@fork`` are the last of those.
    """
    address = text or "@last"
    if not address.startswith("@") and os.path.isfile(address):
        return head_and_tail(address)[-1]
    if os.path.isdir(address):
        address, folder = "@last", address
    folder = folder or default_folder()
    if not os.path.isdir(folder):
        raise NoSuchRun(
            f"there is no run {address}: the folder {folder} does not exist",
            asked=address,
            hint="`reenact run agent.py` records one; or name a trace file, or the folder by REENACT_DIR",
        )
    rows = [row for row in list_runs(folder) if row.status not in ("foreign", "unreadable")]
    found = _by_alias(address, rows) if address.startswith("@") else _by_id_or_name(address, rows)
    if found is None:
        raise NoSuchRun(f"no run in {folder} is {address}", asked=address, hint=_near(address, rows))
    return found


def locate(text: str | None) -> tuple[str, str | None]:
    """Return the path of a run, and its id if the address says which one of the file is meant."""
    from ..tracefile.reader import require_file  # a listing needs no reader

    if text and not text.startswith("@"):
        require_plain(text)
        if os.path.isfile(text):
            return text, None
        if not os.path.isdir(text) and os.sep in text:
            require_file(text)
    try:
        row = find_run(text)
    except NoSuchRun:
        if text and text.endswith(".jsonl"):
            require_file(text)
        raise
    return row.path, row.id


def require_plain(path: str) -> None:
    """Raise for a pipe or device, such as ``/dev/stdin`` or ``<(…)``; reading it twice is not possible."""
    if is_special(path):
        raise TraceFileError(
            f"{path} is not a plain file, and a trace is read at several places",
            path=path,
            hint="put it into a file first",
        )


def _by_alias(address: str, rows: list[RunRow]) -> RunRow | None:
    recorded = _recorded(rows, rows)
    if address == "@failed":
        return next((row for row in reversed(recorded) if row.failed), None)
    if address in ("@replay", "@fork"):
        return next(
            (row for row in reversed(rows) if address == ("@fork" if row.is_fork else _replay(row))), None
        )
    back = {"@last": 1, "@prev": 2}.get(address)
    if back is None:
        raise NoSuchRun(
            f"{address} is not an alias for a run",
            asked=address,
            hint="there are @last, @prev, @failed, @replay and @fork",
        )
    return recorded[-back] if len(recorded) >= back else None


def _recorded(some: list[RunRow], rows: list[RunRow]) -> list[RunRow]:
    """Return those of some runs that are nobody's replay or fork; all of them if there are only such."""
    copies = _replays_and_forks(rows)
    return [row for row in some if row.id not in copies] or some


def _replays_and_forks(rows: list[RunRow]) -> set[str | None]:
    """Return the ids of replays and forks, and of runs that were begun inside one of them."""
    found: set[str | None] = set()
    for row in rows:  # the oldest first
        if row.id is not None and (row.is_fork or _replay(row) or row.parent_run in found):
            found.add(row.id)
    return found


def _replay(row: RunRow) -> str:
    return "@replay" if "replay_of" in row.meta else ""


def _by_id_or_name(address: str, rows: list[RunRow]) -> RunRow | None:
    exact = [row for row in rows if row.id == address]
    named = [row for row in rows if row.name == address or os.path.basename(row.path) == address]
    if exact or named:
        return (exact or _recorded(named, rows))[-1]  # the newest of that name
    begins = [row for row in rows if row.id is not None and row.id.startswith(address)]
    if len({row.id for row in begins}) > 1:
        hint = "it could be " + ", ".join(f"{row.id} ({row.name})" for row in begins[:5])
        raise NoSuchRun(f"{len(begins)} runs have an id that begins with {address}", asked=address, hint=hint)
    return begins[-1] if begins else None


def _near(address: str, rows: list[RunRow]) -> str:
    if not rows:
        return "nothing was recorded there yet"
    import difflib

    names = list(dict.fromkeys([row.name for row in reversed(_recorded(rows, rows))]))
    near = difflib.get_close_matches(address, names, 3, 0.5) or names[:3]
    return f"there is {', '.join(near)}; `reenact ls` shows all"
