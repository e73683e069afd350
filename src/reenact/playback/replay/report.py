"""What the processes of a re-run report to whoever started it: one dataclass per kind, one JSON line each.

The agent's processes append to one file while they run; the supervisor watches it, and reads it in the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ...errors import Diverged as DivergedError

if TYPE_CHECKING:
    from ..matching.divergence import Divergence


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that a process reports."""

    kind: ClassVar[str] = ""

    def plain(self) -> Any:
        """Return it as plain data: a note of one field is the value of that field."""
        values = {
            name: list(value) if type(value) is tuple else value for name, value in asdict(self).items()
        }
        return next(iter(values.values())) if len(values) == 1 else values


@dataclass(frozen=True, slots=True)
class Began(Note):
    """A process is ready: its calls are answered from now on."""

    kind = "began"
    pid: int


@dataclass(frozen=True, slots=True)
class Diverged(Note):
    """A call that the recording does not answer."""

    kind = "diverged"
    divergence: Divergence

    def plain(self) -> dict[str, Any]:
        """Return the divergence as plain data."""
        return self.divergence.as_dict()


@dataclass(frozen=True, slots=True)
class Refused(Note):
    """Something that was blocked: a connection, a file, a program."""

    kind = "refused"
    what: str
    where: str | None
    """The place in the agent's code."""
    by: str
    """``agent``, or ``library`` for what a library does on its own."""


@dataclass(frozen=True, slots=True)
class StandIn(Note):
    """A tool's result that was returned, but not exactly as it was."""

    kind = "stand_in"
    tool: str
    call: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inexact(Note):
    """A response that is not complete in the recording."""

    kind = "inexact"
    call: str
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Unknown(Note):
    """A recorded call whose answer the recording does not hold."""

    kind = "unknown"
    why: str


@dataclass(frozen=True, slots=True)
class Doubt(Note):
    """A call that was answered, perhaps with another call's answer."""

    kind = "doubt"
    call: str
    why: str


@dataclass(frozen=True, slots=True)
class Input(Note):
    """A part of the recorded input that is not as it was."""

    kind = "input"
    what: str


@dataclass(frozen=True, slots=True)
class Unusable(Note):
    """Why the recorded function could not be called."""

    kind = "unusable"
    text: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Passed(Note):
    """A fork has reached its cut."""

    kind = "passed"
    call: str


@dataclass(frozen=True, slots=True)
class Live(Note):
    """A request of a fork that leaves this machine's recording and goes out."""

    kind = "live"
    url: str
    sort: str


@dataclass(frozen=True, slots=True)
class WentLive(Note):
    """A process of a test made a call that is not recorded, and may."""

    kind = "went_live"
    pid: int


@dataclass(frozen=True, slots=True)
class Halted(Note):
    """Why a fork was stopped."""

    kind = "halted"
    why: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class Edited(Note):
    """What an edit could not do to a request, or removed from it."""

    kind = "edit"
    note: str


@dataclass(frozen=True, slots=True)
class Decided(Note):
    """Why a tool ran after a fork's cut, where the user's settings decided."""

    kind = "decided"
    note: str


_KINDS: dict[str, type[Note]] = {
    kind.kind: kind
    for kind in (
        Began, Diverged, Refused, StandIn, Inexact, Unknown, Doubt, Input, Unusable,
        Passed, Live, WentLive, Halted, Edited, Decided,
    )
}  # fmt: skip
_INCOMPLETE = Unknown("a line of the agent's report is incomplete: is the disk full?")

Listener = Callable[[Note], None]


def encode(note: Note) -> bytes:
    """Return a note as a line."""
    return json.dumps({"kind": note.kind, **asdict(note)}).encode() + b"\n"


def decode(line: str | bytes) -> Note:
    """Return the note of a line; one that is cut off is reported as something unknown."""
    try:
        values = json.loads(line)
        kind = _KINDS[values.pop("kind")]
        if kind is Diverged:
            from ..matching.divergence import Divergence  # a process that never diverges does not load it

            return Diverged(Divergence.from_dict(values["divergence"]))
        return kind(
            **{name: tuple(value) if type(value) is list else value for name, value in values.items()}
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return _INCOMPLETE


def read(path: str) -> list[Note]:
    """Return all that was reported, once the processes have ended; nothing if none has begun."""
    try:
        with open(path, "rb") as file:
            return [decode(line) for line in file]
    except FileNotFoundError:
        return []


class Growing:
    """A report that processes still write to: each look returns what is new; an unfinished line waits."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._size = 0

    def new(self) -> list[Note]:
        """Return the notes that were added since the last look."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._size)
                lines = [line for line in file if line.endswith(b"\n")]
        except FileNotFoundError:
            return []
        self._size += sum(map(len, lines))
        return [decode(line) for line in lines]


def append(path: str, data: bytes) -> int:
    """Add to a file that several processes write to, in one write; returns its size then."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, data)
        return os.fstat(file).st_size
    finally:
        os.close(file)


class Report:
    """The end of a report that the agent's processes write to."""

    def __init__(self, path: str, process: str | None = None) -> None:
        self._path = path
        self._process = process
        """The command of this process, None for the first."""

    def diverged(self, divergence: Divergence) -> None:
        """Write a divergence at once: what is raised next may end the process."""
        self.note(Diverged(replace(divergence, process=self._process)))

    def note(self, note: Note) -> None:
        """Write a note; ``Diverged`` if that is not possible, since nobody would learn of it."""
        try:
            append(self._path, encode(note))
        except OSError as exc:  # an SDK would take it for a broken connection
            raise DivergedError(f"the report of this run cannot be written: {exc}") from exc
