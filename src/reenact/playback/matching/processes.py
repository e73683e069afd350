"""The processes of one execution: what each may be answered, and what none of them has asked for."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ... import schema
from ...capture.runs.location import how_started
from ...recording.recording import Recording
from ..replay.deferred import claims_of
from ..replay.mcp_servers import server_processes
from .claims import CALL, WRITER, Claims
from .divergence import Divergence, never_made
from .frontier import Frontier
from .tape import RecordedCall, Tape

if TYPE_CHECKING:
    from ...recording.recording import Recording
    from .tape import RecordedCall


# One recording for several processes: which call is whose.
#
# The first process makes the calls of the first that was recorded. All others share the rest: who was which
# then is told by how a process was started, else by the calls it makes, and a pool may spread its work over
# its workers in another way.


class Shared:
    """What one process knows of the calls that it and others have made; for its frontier, under its lock."""

    def __init__(
        self,
        claims: Claims,
        calls: list[RecordedCall],
        origins: Origins | None = None,
        root: str | None = None,
    ) -> None:
        self._claims = claims
        self._calls = {call.number: call for call in calls}
        self._origins = origins
        self._root = root
        self.is_first = origins is None
        self._seen = 0
        self._made_by: dict[str, set[int]] = {}
        """Recorded processes, and who has made calls of theirs now."""

    @contextmanager
    def held(self, use: Callable[[RecordedCall], None]) -> Iterator[None]:
        """Let no other process make a call; those that were made meanwhile are used up first."""
        with self._claims:
            made = self._claims.calls[self._seen :]
            self._seen += len(made)
            for pid, number in made:
                call = self._calls.get(number)
                if call is not None:
                    self._made_by.setdefault(call.process, set()).add(pid)
                    if pid != self._claims.pid:
                        use(call)
            yield

    def take(self, call: RecordedCall) -> None:
        """Tell all that a call is over; held."""
        self._claims.add(CALL, call.number)
        self._made_by.setdefault(call.process, set()).add(self._claims.pid)

    def nearest(self, equal: list[RecordedCall]) -> list[RecordedCall]:
        """Return those of equal calls that this process is most likely to be making."""
        first = [call for call in equal if self.is_first and call.process == self._root]
        if first:
            return first
        for is_near in (self._is_ours, self._is_alike, self._is_nobodys):
            near = [call for call in equal if is_near(call.process)]
            if near:
                return near
        return equal

    def is_alone_with(self, call: RecordedCall) -> bool:
        """True if this process, and no other, makes the calls of that recorded one."""
        return self._made_by.get(call.process) == {self._claims.pid}

    def writer(self) -> str | None:
        """Return the recorded process that this one is now, None if it is told by nothing."""
        if self._origins is None:
            return self._root
        made = [writer for writer, pids in list(self._made_by.items()) if self._claims.pid in pids]
        return self._origins.take(self._claims, made)

    def may_come(self) -> bool:
        """True if another process is there that may yet make a call that is waited for."""
        return self._claims.others_alive()

    def _is_ours(self, writer: str) -> bool:
        made_by = self._made_by.get(writer, set())
        return self._claims.pid in made_by or self._claims.writers.get(writer) == self._claims.pid

    def _is_alike(self, writer: str) -> bool:
        return self._origins is not None and self._is_nobodys(writer) and self._origins.is_like_this(writer)

    def _is_nobodys(self, writer: str) -> bool:
        return writer not in self._made_by and writer not in self._claims.writers


class Origins:
    """The recorded processes but the first, and which of them was started as this one is."""

    def __init__(self, recording: Recording) -> None:
        self._started: dict[str, Any] = {}
        for at, kind in enumerate(recording.event_types(system=True)):
            if kind == schema.PROC_START:
                event = recording.lines[at]
                self._started.setdefault(event.writer, _label(event.stored_fields))
        self._here: Any = None

    def is_like_this(self, writer: str) -> bool:
        """True if that one had the same name among its siblings, or else the same command."""
        if self._here is None:
            self._here = _label(how_started())
        return bool(self._started.get(writer) == self._here)

    def take(self, claims: Claims, made: list[str]) -> str | None:
        """Return the recorded process that this one is now, so that no other is it; None if none is left.

        ``made`` are those whose calls it has made.
        """
        with claims:
            mine = [writer for writer, pid in claims.writers.items() if pid == claims.pid]
            if mine:
                return mine[0]
            left = [writer for writer in (*made, *self._started) if writer not in claims.writers]
            found = next((writer for writer in left if writer in made or self.is_like_this(writer)), None)
            if found is not None:
                claims.add(WRITER, found)
            return found


def _label(start: dict[str, Any]) -> Any:
    return start.get("process") or start.get("command")


def calls_of(tape: Tape, *, is_first: bool, live: Container[str]) -> list[RecordedCall]:
    """Return the calls that the first process may make, or else those that all others may."""
    root = tape.recording.first_writer
    return [call for call in tape.calls if (call.process == root) == is_first and call.tool not in live]


def shared_by(tape: Tape, calls: list[RecordedCall], claims: Claims, *, is_first: bool) -> Shared:
    """Return what one process knows of the others."""
    root = tape.recording.first_writer
    return Shared(claims, calls, None if is_first else Origins(tape.recording), root)


def what_was_made(
    recording: Recording, scratch: str, live: Container[str], mode: str
) -> tuple[int, list[Divergence]]:
    """Return how many calls all processes together were given, and those that none of them has asked for."""
    claims, tape = claims_of(scratch), Tape(recording)
    absent = server_processes(recording)
    calls = [call for call in tape.calls if call.tool not in live and call.event.writer not in absent]
    frontier = Frontier(calls, mode=mode, inside=tape.inside, shared=Shared(claims, calls))
    missing = never_made(frontier, tape)
    return len(claims.calls), missing
