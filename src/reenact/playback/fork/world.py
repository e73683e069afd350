"""What tools did to the world before a cut, so that it may not be what it was then.

Most do not run again there. Those that the recording cannot answer for do, and those that the cut lies in.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ...errors import UsageError
from ...schema import EFFECTS
from ...tracefile.calls import TOOL, Call
from ..matching.tape import RecordedCall, Tape
from ..replay.preflight import unanswered
from .cut import tools_around

PURE, READ, WRITE, IRREVERSIBLE = EFFECTS
HARMLESS = (PURE, READ)
DONE, RUNNING, UNKNOWN = "done", "running", "unknown"
"""How far a tool was at the cut: over, at work, or begun and never heard of again."""
_LONGEST = 80
_MOST = 20


class Acted(NamedTuple):
    """A tool call before the cut that may have changed something."""

    step: int | None
    tool: str
    args: str
    """The beginning of them, as JSON."""
    effect: str | None
    """``write`` or ``irreversible``; None if nobody has told."""
    state: str
    runs_again: bool
    """True if the fork runs it before the cut: the recording cannot answer for it, or the cut lies in it."""

    def text(self) -> str:
        """Return a line for a person."""
        effect = "effect unknown" if self.effect is None else self.effect
        how = {DONE: "", RUNNING: ", still at work then", UNKNOWN: ", unknown whether it happened"}
        again = "RUNS AGAIN before the cut" if self.runs_again else "does not run again"
        return f"step {self.step}: {self.tool} {self.args} ({effect}{how[self.state]}; {again})"


def effect_of(name: str | None, told: object, settings: Mapping[str, str]) -> str | None:
    """Return what a tool does to the world: by the user's settings, else as it was told; None if nobody has.

    A setting is for one name, or for all that a pattern fits. A word that we do not know tells nothing.
    """
    tool = name or ""
    if tool in settings:
        return settings[tool]
    fitting = next((effect for pattern, effect in settings.items() if fnmatchcase(tool, pattern)), None)
    if fitting is not None:
        return fitting
    return told if type(told) is str and told in EFFECTS else None


def acts_before(tape: Tape, call: RecordedCall, settings: Mapping[str, str] | None = None) -> list[Acted]:
    """Return the tools before a call that may have changed the world, in the order they began."""
    found = []
    would_run = unanswered(tape.recording)
    around = {each.id for each in tools_around(tape, call)}
    for each in tape.recording.calls(derived=True):
        state = _state(each, call) if each.kind == TOOL and each.id != call.id else None
        if state is None:
            continue
        told = None if each.derived else each.event._raw().get("effect")
        effect = effect_of(each.tool, told, settings or {})
        if effect not in HARMLESS:
            tool, runs_again = each.tool or "?", each.id in around
            runs_again = runs_again or (each.derived and tool in would_run)
            found.append(Acted(each.event.step, tool, _excerpt(each.args), effect, state, runs_again))
        each.event._forget()
    return found


def _state(each: Call, call: RecordedCall) -> str | None:
    """Return how far a tool was when a call began, None if it had not begun.

    Of one that only the wire tells of, the end is the request that brings its result: the call itself, maybe.
    """
    begin = each.event.index
    if begin is None or begin >= call.begin:
        return None
    if each.end is None:
        return UNKNOWN
    end = each.end.index
    return DONE if end is None or end <= call.begin else RUNNING


def _excerpt(args: Any) -> str:
    try:
        text = json.dumps(args, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(args)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def must_choose(acts: list[Acted], *, snapshots: str | None = None) -> UsageError:
    """Return what a fork stops with where tools have changed the world and nobody said what to do about it.

    ``snapshots`` is the folder that the recording has snapshots of.
    """
    lines = [f"  {act.text()}" for act in acts[:_MOST]]
    if len(acts) > _MOST:
        lines.append(f"  and {len(acts) - _MOST} more")
    folder = f"--workspace {snapshots or 'DIR'} makes that folder what it was at the cut"
    if snapshots is None:
        folder += ", once it is recorded with reenact run --workspace DIR"
    again = ", ".join(dict.fromkeys(act.tool for act in acts if act.runs_again))
    warning = f" Whichever you choose, these tools run again before the cut: {again}." if again else ""
    return UsageError(
        "tools before the cut may have changed the world:\n" + "\n".join(lines),
        hint=f"{folder}; --restore CMD runs a command of yours that puts everything back;"
        f" --stale-world keeps the world as it is.{warning} Declare what a tool does with"
        ' @tap.tool(effect="read") or [effects] in reenact.toml',
    )


def run_restore_command(command: str, env: Mapping[str, str] | None = None) -> None:
    """Run the user's command in a shell, what it says on stderr; UsageError unless it ends well."""
    sys.stdout.flush()
    sys.stderr.flush()
    given = None if env is None else dict(env)
    done = subprocess.run(command, shell=True, stdout=2, check=False, env=given)  # noqa: S602
    if done.returncode:
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise UsageError(
            f"--restore {command}: {how}", hint="nothing was started; the world may be half restored"
        )
