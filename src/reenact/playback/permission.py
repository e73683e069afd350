"""Whether a recorded program may run again, or a recorded request be sent again, without a question.

A trace says what to execute, and somebody may have sent it. So ``replay``, ``fork`` and ``test`` start only
what this user has recorded or allowed before (``capture/runs/allowed_programs.py``), and ``fork --one-call``
sends only to hosts that the user knows. Nothing in a trace grants permission; its owner, its host and a
program that is not Python can only take it away.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from ..capture.runs import allowed_programs
from ..errors import UsageError
from ..recording.recording import Recording
from .fork.api_keys import is_known_host
from .launch import Start
from .refusal import YES, Need, refuse
from .replay.entry import Entry, located


@dataclass(frozen=True, slots=True)
class Question:
    """What will run or be sent, and why somebody has to allow it."""

    what: str
    """The program with its arguments and folder, or ``module:function``; the request and where it goes."""
    reasons: tuple[str, ...]
    key: tuple[str, ...]
    is_remembered: bool
    """True if the answer holds for the next time; a foreign file or program asks each time."""
    verb: str = "start"

    @property
    def refusal(self) -> str:
        """The message if nobody allows it."""
        return f"not {'sent' if self.verb == 'send' else 'started'}: {self.what}"


def question(recording: Recording, start: Start) -> Question | None:
    """Return the permission that a run needs before it starts again; None if none.

    A command that the user typed needs no permission.
    """
    if not start.is_recorded:
        return None
    key = _key(recording, start)
    lasting = _lasting_reasons(recording, start)
    if not lasting and allowed_programs.is_allowed(key):
        return None
    reasons = lasting or ["it was not recorded or allowed here before"]
    return Question(described(start), tuple(reasons), tuple(key), is_remembered=not lasting)


def question_about_host(recording: Recording, what: str, host: str) -> Question | None:
    """Return the permission that a recorded request to a host needs; None if none."""
    key = ["host", host]
    lasting = _foreign_reasons(recording)
    if is_known_host(host) or (not lasting and allowed_programs.is_allowed(key)):
        return None
    reasons = ["only the recording names that host", *lasting]
    return Question(what, tuple(reasons), tuple(key), is_remembered=not lasting, verb="send")


def described(start: Start) -> str:
    """Return what will run, for the line before it does."""
    what = start.entry or shlex.join(start.command)
    return f"{what} in {start.folder or os.getcwd()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a user allows: ``--yes``, or an answer at the terminal."""

    yes: bool = False
    ask: Callable[[Question], bool] | None = None
    """Asks at a terminal; None where there is none."""
    announce: Callable[[str], None] | None = None
    """Prints what starts or is sent, if it comes from a recording and not from the user."""
    code_folder: str | None = None
    """The folder that recorded functions may be imported from, ``--from``; None for the current one."""

    def need(self, recording: Recording, start: Start) -> Need | None:
        """Return what is needed to start a run without a terminal."""
        return self._need(question(recording, start), _LOOK)

    def require(self, recording: Recording, start: Start) -> None:
        """Raise UsageError if a run must not start: it needs permission, and nobody grants it."""
        self._require(question(recording, start), _LOOK)
        if self.announce is not None and start.is_recorded:
            self.announce(f"running {described(start)}")

    def require_host(self, recording: Recording, what: str, host: str) -> None:
        """Raise UsageError if a recorded request must not be sent to a host."""
        hint = f"if that host is yours, name it: OPENAI_BASE_URL=https://{host}"
        self._require(question_about_host(recording, what, host), hint)
        if self.announce is not None:
            self.announce(f"sending {what}")

    def _need(self, needed: Question | None, hint: str) -> Need | None:
        if needed is None or self.yes or self.ask is not None:
            return None
        why = f"{needed.refusal} ({'; '.join(needed.reasons)})"
        return Need(why, YES, hint=f"{hint}; {YES} {needed.verb}s it")

    def _require(self, needed: Question | None, hint: str) -> None:
        refuse([self._need(needed, hint)])
        if needed is None:
            return
        if not self.yes and self.ask is not None and not self.ask(needed):
            raise UsageError(needed.refusal)
        if needed.is_remembered:
            allowed_programs.allow(needed.key)


_LOOK = "look at what it does first"
NO_PERMISSION = Permission()
"""Only what the user has recorded or allowed before starts."""


def permission_in_python(yes: bool, code_folder: str | os.PathLike[str] | None) -> Permission:
    """Return what the arguments of a public function allow."""
    return Permission(yes=yes, code_folder=None if code_folder is None else os.fspath(code_folder))


def _key(recording: Recording, start: Start) -> list[str]:
    entry = Entry.of(recording) if start.entry is not None else None
    if entry is not None:
        return allowed_programs.entry_key(entry.entry, located(entry, start.code_folder).source)
    return allowed_programs.command_key(start.command, start.folder or os.getcwd())


def _lasting_reasons(recording: Recording, start: Start) -> list[str]:
    """Return reasons that no earlier permission removes."""
    reasons = _foreign_reasons(recording)
    if start.entry is None and not _is_python_program(start):
        reasons.append("it is not a Python program, so what it does cannot be blocked")
    return reasons


def _foreign_reasons(recording: Recording) -> list[str]:
    reasons = []
    try:
        owner = os.stat(recording.path).st_uid
    except OSError:
        owner = os.geteuid()
    if owner != os.geteuid():
        reasons.append("the trace file belongs to another user")
    host = recording.start_fields.get("host")
    if type(host) is str and host != os.uname().nodename:
        reasons.append(f"it was recorded on another machine, {host}")
    return reasons


def _is_python_program(start: Start) -> bool:
    """True for a Python with a program, and for an installed command that is a Python script (``pytest``)."""
    program = start.command[0]
    if allowed_programs.is_python(program):
        return bool(allowed_programs.python_program(start.command))
    try:
        with open(os.path.join(start.folder or "", program), "rb") as file:
            first = os.fsdecode(file.readline(256))
    except OSError:
        return False
    return first.startswith("#!") and any(map(allowed_programs.is_python, first[2:].split()))
