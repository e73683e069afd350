"""Starts a recorded agent again and supervises it until it ends.

The agent's parent is this process (``supervise_here``, for commands) or one of its own (``Apart``, for
programs that call us: their signals, streams and other children are not ours to touch).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from dataclasses import asdict, dataclass, field
from typing import Any

from ..capture.seams.coverage import says_to_ignore_us
from ..errors import UsageError
from ..recording.recording import Recording
from ..recording.run_addresses import locate
from ..supervise.command import command_line
from ..supervise.supervisor import Supervised
from ..wire.equality_rules import PLACEHOLDER
from .replay.entry import Entry, located
from .replay.report import Diverged, Growing, Halted, Unknown
from .replay.side_effect_guard import is_python

ENTER = "reenact.playback.replay.entry"
TRY_ELSEWHERE = (
    "name another folder, and the run by its path: REENACT_DIR=DIR reenact … (in Python: folder=DIR)"
)
_HEAD = ("entry", "entry_from")


def recording_of(
    run: Recording | str | os.PathLike[str], run_id: str | None = None, blobs: str | None = None
) -> Recording:
    """Return a run by what a caller has of it: itself, a path, or an address such as ``@last``."""
    if isinstance(run, Recording):
        return run
    text = os.fspath(run)
    if os.path.isfile(text) or not isinstance(run, str):
        return Recording.load(text, run_id, blobs=blobs)
    path, found = locate(text)
    return Recording.load(path, run_id or found, blobs=blobs)


# How a recorded agent is started: by the recorded command or entry, or by the caller's own command.


@dataclass(frozen=True, slots=True)
class Start:
    """What to execute, and where."""

    command: list[str]
    folder: str | None
    """None for the current one."""
    entry: str | None = None
    """The function or application that the command calls, if it was not a program that was recorded."""
    head: dict[str, Any] = field(default_factory=dict)
    """Fields for the first line of the new run."""
    is_recorded: bool = True
    """False for a command of the caller's own."""
    code_folder: str | None = None
    """The user's folder that the entry is imported from."""


def start_of(
    recording: Recording,
    command: Sequence[str],
    verb: str,
    folder: str | None = None,
    code_folder: str | None = None,
) -> Start:
    """Return how a run is started again. ``command`` is the caller's own, if any; ``folder`` where it runs;
    ``verb`` our command, for hints. A recorded function must be in ``code_folder``, by default the current
    one."""
    start = recording.start_fields
    if command:
        words = command_line(list(command), folder or "")
        return Start(_answerable(words, verb), folder, is_recorded=False)
    recorded, recorded_folder = start.get("command"), start.get("cwd")
    entry = Entry.of(recording)
    if entry is not None:
        code_folder = located(entry, code_folder).folder  # raises, before anything runs, if it is not there
        head = {name: start[name] for name in _HEAD if name in start}
        head["input"] = entry.input
        is_below = type(recorded_folder) is str and _is_below(recorded_folder, str(code_folder))
        words = [sys.executable, "-P", "-m", ENTER]  # -P: nothing is imported from where it runs
        here = recorded_folder if is_below else code_folder
        return Start(words, here, entry.entry, head, code_folder=code_folder)
    if type(recorded) is not list or not all(type(word) is str for word in recorded) or not recorded:
        raise _not_startable(recording, verb)
    if not all(map(_may_be_argument, recorded)):
        raise UsageError(
            "the recorded command has characters that no command can have", hint=_name_command(verb)
        )
    if secret := redacted_argument(recorded):
        words = recorded[1:] if is_python(recorded[0]) else recorded
        shown = " ".join(shlex.quote(word) for word in words)
        raise UsageError(
            f"the argument {secret} is a secret that was not recorded, so the command cannot be started",
            hint=f"say it again: reenact {verb} RUN -- {_QUOTED_PLACEHOLDER.sub('…', shown)}",
        )
    hint = _name_command(verb)
    if type(recorded_folder) is not str or not os.path.isdir(recorded_folder):
        raise UsageError(f"its folder {recorded_folder} is not here", hint=hint)
    if not os.path.exists(recorded[0]):
        raise UsageError(f"{recorded[0]} is not here", hint=hint)
    is_script = len(recorded) > 1 and recorded[1].endswith(".py")
    if is_script and not os.path.exists(os.path.join(recorded_folder, recorded[1])):
        raise UsageError(f"{recorded[1]} is not in {recorded_folder} any more", hint=hint)
    return Start(_answerable(recorded, verb), recorded_folder)


def _may_be_argument(word: str) -> bool:
    try:
        return b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:  # half a character, which a line of JSON may hold
        return False


_QUOTED_PLACEHOLDER = re.compile(f"'?{PLACEHOLDER.pattern}'?")


def redacted_argument(command: Sequence[str]) -> str | None:
    """Return the argument of a recorded command that was a secret, after its flag; None if there is none."""
    for number, word in enumerate(command):
        if PLACEHOLDER.search(word):
            before = command[number - 1] if number else ""
            return f"{before} {word}" if before.startswith("-") and PLACEHOLDER.fullmatch(word) else word
    return None


def start_in(folder: str, words: Sequence[str]) -> Start:
    """Return the start of a recorded command whose words were made portable: ``agent.py --fast``."""
    if words[0].endswith(".py") and not os.path.exists(os.path.join(folder, words[0])):
        raise UsageError(f"{words[0]} is not in {folder} any more", hint="start it where the code is")
    return Start(command_line(list(words), folder), folder)


def _is_below(folder: str, other: str) -> bool:
    return os.path.isdir(folder) and f"{os.path.realpath(folder)}{os.sep}".startswith(other + os.sep)


def _name_command(verb: str) -> str:
    return f"say what to run: reenact {verb} RUN -- agent.py (in Python: command=['agent.py'])"


def _not_startable(recording: Recording, verb: str) -> UsageError:
    if is_part(recording):
        return UsageError(
            f"{recording.name} is part of another run and cannot be started alone",
            hint=f"take all of it: reenact {verb} {str(recording.parent_run)[:12]}",
        )
    return UsageError(
        f"{recording.name} was not recorded by reenact run, so how to start it is not known",
        hint=_name_command(verb),
    )


def is_part(recording: Recording) -> bool:
    """True for a ``with reenact.run(…)`` block of a run: it is started with that one only."""
    is_program = bool(recording.start_fields.get("command")) or Entry.of(recording) is not None
    return recording.parent_run is not None and not is_program


def _answerable(command: list[str], verb: str) -> list[str]:
    """Return a command; raise for a Python with a flag that keeps us out: it would run live."""
    word = says_to_ignore_us(command) if is_python(command[0]) else ""
    if word:
        raise UsageError(
            f"python {word} does not load reenact, so nothing would answer it, and it would run live",
            hint=f"run it without {word}: reenact {verb} RUN -- agent.py",
        )
    return command


# One agent process and its parent. What crosses between the two are these dataclasses.


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """An agent to start: plain data, for the process that becomes its parent."""

    command: list[str]
    folder: str | None
    name: str
    meta: dict[str, Any]
    variables: dict[str, str]
    head: dict[str, Any]
    workspace: str | None
    restored_from: str | None
    report: str
    """Where the agent's processes report."""
    claims: str
    is_watched: bool
    """True if an agent that diverged and does not end is interrupted."""

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), default=repr)

    @classmethod
    def from_text(cls, text: str) -> Launch:
        """Return what ``text`` encoded."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How an agent ended."""

    exit: int
    """Its exit code, or minus the signal that ended it."""
    run_id: str
    path: str
    """Its own trace."""
    status: str
    is_recorded: bool
    stdout: str = ""
    stderr: str = ""
    """What it wrote, if that was captured."""

    def text(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), default=repr)

    @classmethod
    def from_text(cls, text: str, **more: Any) -> Finished:
        """Return what ``text`` encoded, with further fields."""
        return cls(**{**json.loads(text), **more})


Supervise = Callable[[Launch], Finished]

_QUIET = 10.0
"""Seconds without progress, after a divergence, until an agent is interrupted."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Overseer:
    """Watches the report of a run, and says when to interrupt an agent that diverged and does not end.

    ``multiprocessing.Pool`` is one: it starts another worker for the one that ended, and waits for ever. So
    is code that catches whatever is raised and tries again.
    """

    def __init__(self, report: str, others: Sequence[str] = ()) -> None:
        self._report = Growing(report)
        self._others = others
        self._went_on = self._went_wrong = 0
        """Notes of progress, and of what ends a run: repeated, they do not count as progress."""
        self._progress: list[int] = []
        self._since = time.monotonic()
        self._sent = 0

    def __call__(self) -> int | None:
        """Return the signal to send now: as Ctrl-C does, so that pools are taken down; then for good."""
        for note in self._report.new():
            if isinstance(note, Diverged | Unknown | Halted):
                self._went_wrong += 1
            else:
                self._went_on += 1
        progress = [self._went_on, *map(_size, self._others)]
        if progress != self._progress:
            self._progress, self._since = progress, time.monotonic()
        if self._sent == len(_SIGNALS) or time.monotonic() - self._since < _QUIET:
            return None
        self._since = time.monotonic()
        if not self._went_wrong:
            return None
        self._sent += 1
        return _SIGNALS[self._sent - 1]


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def supervise_here(launch: Launch, also_oversee: Callable[[], int | None] | None = None) -> Finished:
    """Start an agent as a child of this process, which gives it its streams and signals, and wait for it.

    Only for a process that has nothing else to do. ``also_oversee`` may name a signal, as an Overseer.
    """
    agent = Supervised(
        launch.command,
        launch.name,
        launch.meta,
        launch.variables,
        launch.head,
        workspace=launch.workspace,
        restored_from=launch.restored_from,
        must_join=True,
    )
    overseers = [Overseer(launch.report, [launch.claims])] if launch.is_watched else []
    all_overseers: list[Callable[[], int | None]] = [
        *overseers,
        *([also_oversee] if also_oversee is not None else []),
    ]
    if all_overseers:
        agent.overseer = lambda: next(filter(None, [each() for each in all_overseers]), None)
    with chdir(launch.folder or os.curdir):
        agent.run()
    return Finished(
        exit=agent.exit,
        run_id=agent.run_id,
        path=agent.path,
        status=agent.status,
        is_recorded=agent.is_recorded,
    )


_PATIENCE = 5.0
"""Seconds that an agent has to end when it is interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Starts an agent below a process of its own, in a session of its own: nobody is asked for permission at
    a terminal, and signals, streams and children of the caller are untouched."""

    env: Mapping[str, str] | None = None
    """The agent's environment; None for the caller's."""
    folder: str | None = None
    """Where the new run is written; None for ``$REENACT_DIR`` or ``./.reenact``."""
    is_captured: bool = False
    """True if what the agent writes is returned and not shown."""

    def __call__(self, launch: Launch) -> Finished:
        env = dict(os.environ if self.env is None else self.env)
        if self.folder is not None:
            env["REENACT_DIR"] = os.path.abspath(self.folder)
        result = os.path.join(os.path.dirname(launch.report), "finished.json")
        output = subprocess.PIPE if self.is_captured else None
        with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(launch.report), suffix=".json") as file:
            file.write(launch.text())
            file.flush()
            child = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", "reenact.playback.launch", file.name, result],
                env=env,
                stdout=output,
                stderr=output,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            try:
                stdout, stderr = child.communicate()
            except BaseException:  # an interrupt, which does not reach the other session
                _end(child)
                raise
        try:
            with open(result, encoding="utf-8") as file:
                return Finished.from_text(file.read(), stdout=stdout or "", stderr=stderr or "")
        except FileNotFoundError:
            last = (stderr or "").strip().rpartition("\n")[2]
            raise UsageError(
                f"the agent could not be started: {last or f'exit {child.returncode}'}"
            ) from None


def _end(child: subprocess.Popen[str]) -> None:
    """End an agent and its parent: as Ctrl-C would, then for good."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(_PATIENCE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


class _Orphaned:
    """Says how to end the agent once the caller is gone: a fork would go on calling a model for nobody."""

    def __init__(self) -> None:
        self._caller = os.getppid()
        self._signals = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]

    def __call__(self) -> int | None:
        is_gone = os.getppid() != self._caller
        return self._signals.pop() if is_gone and self._signals else None


def main(source: str, result: str) -> None:
    """Be the parent of one agent, for ``Apart``: read a Launch from one file, write Finished to another."""
    with open(source, encoding="utf-8") as file:
        launch = Launch.from_text(file.read())
    finished = supervise_here(launch, _Orphaned())
    with open(f"{result}.part", "w", encoding="utf-8") as file:
        file.write(finished.text())
    os.rename(f"{result}.part", result)


if __name__ == "__main__":
    main(*sys.argv[1:])
