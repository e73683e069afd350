"""How a recorded agent is started again: by the command that was recorded, or the one that is given."""

from __future__ import annotations

import os
from typing import NamedTuple

from ..errors import UsageError
from ..tracefile.recording import Recording
from .commands.run import command_line


class Start(NamedTuple):
    """What to execute, and where."""

    command: list[str]
    folder: str | None
    """None for the current one."""


def start_of(recording: Recording, given: list[str], verb: str) -> Start:
    """Return how a run is started again; ``given`` is the user's own command, ``verb`` ours, for hints."""
    start = recording.start._raw() if recording.start is not None else {}
    if given:
        return Start(command_line(given), None)
    command, folder = start.get("command"), start.get("cwd")
    if type(command) is not list or not all(type(word) is str for word in command) or not command:
        raise UsageError(
            f"{recording.name} was not recorded by reenact run, so how to start it is not known",
            hint=f"say it after --: reenact {verb} RUN -- agent.py",
        )
    hint = f"say what to run: reenact {verb} RUN -- agent.py"
    if type(folder) is not str or not os.path.isdir(folder):
        raise UsageError(f"its folder {folder} is not here", hint=hint)
    if not os.path.exists(command[0]):
        raise UsageError(f"{command[0]} is not here", hint=hint)
    return Start(command, folder)
