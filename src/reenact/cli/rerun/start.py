"""How a recorded agent is started again: by the command or the entry that was recorded, or what is given."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any, NamedTuple

from ...capture.seams.coverage import says_to_ignore_us
from ...errors import UsageError
from ...playback.replay.entry import Entry
from ...playback.replay.guard import is_python
from ...recording.recording import Recording
from ..commands.run import command_line

ENTER = "reenact.playback.replay.enter"
_HEAD = ("entry", "entry_from")


def add_live_tools(parser: argparse._ActionsContainer, what: str) -> None:
    """Add ``--live-tools``: names in a list with commas, in one flag or in several."""
    parser.add_argument(
        "--live-tools", metavar="NAME,…", type=_tool_names, action="extend", default=[],
        help=f"{what}; can be repeated",
    )  # fmt: skip


def _tool_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


class Start(NamedTuple):
    """What to execute, and where."""

    command: list[str]
    folder: str | None
    """None for the current one."""
    entry: str | None = None
    """What the command calls, if that is no program of its own."""
    head: dict[str, Any] = {}
    """What the first line of the new run tells of it."""


def start_of(recording: Recording, given: list[str], verb: str) -> Start:
    """Return how a run is started again; ``given`` is the user's own command, ``verb`` ours, for hints."""
    start = recording.start.stored_fields if recording.start is not None else {}
    if given:
        return Start(_answerable(command_line(given), verb), None)
    command, folder = start.get("command"), start.get("cwd")
    entry = Entry.of(recording)
    if entry is not None:
        _ = entry.place  # one that cannot be found is told of before anything runs
        head = {name: start[name] for name in _HEAD if name in start}
        head["input"] = entry.input
        here = folder if type(folder) is str and os.path.isdir(folder) else os.getcwd()
        return Start([sys.executable, "-m", ENTER], here, entry.entry, head)
    if type(command) is not list or not all(type(word) is str for word in command) or not command:
        if is_part(recording):
            raise UsageError(
                f"{recording.name} is a part of another run, and cannot be started by itself",
                hint=f"take all of it: reenact {verb} {str(recording.parent_run)[:12]}",
            )
        raise UsageError(
            f"{recording.name} was not recorded by reenact run, so how to start it is not known",
            hint=f"say it after --: reenact {verb} RUN -- agent.py",
        )
    hint = f"say what to run: reenact {verb} RUN -- agent.py"
    if type(folder) is not str or not os.path.isdir(folder):
        raise UsageError(f"its folder {folder} is not here", hint=hint)
    if not os.path.exists(command[0]):
        raise UsageError(f"{command[0]} is not here", hint=hint)
    if (
        len(command) > 1
        and command[1].endswith(".py")
        and not os.path.exists(os.path.join(folder, command[1]))
    ):
        raise UsageError(f"{command[1]} is not in {folder} any more", hint=hint)
    return Start(_answerable(command, verb), folder)


def is_part(recording: Recording) -> bool:
    """True for a ``with reenact.run(…)`` block of a run: it is started with that one only."""
    start = recording.start.stored_fields if recording.start is not None else {}
    return recording.parent_run is not None and not start.get("command") and Entry.of(recording) is None


def _answerable(command: list[str], verb: str) -> list[str]:
    """Return a command; raise for a Python that is told to pass us by: it would call the model for real."""
    word = says_to_ignore_us(command) if is_python(command[0]) else ""
    if word:
        raise UsageError(
            f"python {word} does not load reenact, so nothing would answer it, and it would run live",
            hint=f"run it without {word}: reenact {verb} RUN -- agent.py",
        )
    return command
