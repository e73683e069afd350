"""Verbs that start a command on the run at hand, from the event at the cursor: fork, replay, test.

The command asks for permission and prints as it does when it is typed in a shell.
"""

from __future__ import annotations

import shlex
import subprocess
import sys

from ...errors import UsageError
from ...tracefile.events.text import clean
from .session import Group, Session

ACT = Group("act")


@ACT.verb(
    "fork", "[OPTIONS]", "change something from this event on and continue live: fork --set system=Short."
)
def _fork(session: Session, argument: str) -> None:
    _start(session, "fork", ["--at", session.view.address(session.stepper.event)], argument)


@ACT.verb("replay", "[OPTIONS]", "run the agent's own code against this recording; no model is called")
def _replay(session: Session, argument: str) -> None:
    _start(session, "replay", [], argument)


@ACT.verb("test", "[OPTIONS]", "turn this run into a pytest test: test -o tests")
def _test(session: Session, argument: str) -> None:
    _start(session, "test", [], argument)


def _start(session: Session, command: str, options: list[str], typed: str) -> None:
    try:
        words = shlex.split(typed)
    except ValueError as why:
        raise UsageError(f"{command}: {why}", hint="a quote has no pair") from None
    recording = session.stepper.recording
    run = ["--run", recording.run_id] if recording.run_id else []
    argv = [sys.executable, "-m", "reenact", command, recording.path, *run, *options, *words]
    session.out.stdout.flush()

    def start() -> int:
        """Show what is started, as one would type it, and start it."""
        print(clean(f"\n$ {shlex.join(['reenact', *argv[3:]])}"), file=sys.stderr, flush=True)
        return subprocess.call(argv)  # noqa: S603 - our own command

    code = session.runs_command(start)
    session.failed = session.failed or code != 0
    session.view.note(f"{command} ended with exit code {code}")
