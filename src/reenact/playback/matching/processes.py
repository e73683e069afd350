"""One recording shared by the processes of one execution: who uses which call, and which are missing."""

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
from .divergence import Divergence, missing_calls
from .frontier import Frontier
from .tape import RecordedCall, Tape

if TYPE_CHECKING:
    from ...recording.recording import Recording
    from .tape import RecordedCall


# Which process uses which calls.
#
# The first process uses the calls of the first recorded one. All others share the rest: a process is
# recognised by how it was started, else by the calls it makes, and a pool may spread its work differently
# over its workers.


class Shared:
    """The calls used by this process and by others; for its frontier, under its lock."""

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
        self._users: dict[str, set[int]] = {}
        """Recorded processes, and the pids that have used their calls."""

    @contextmanager
    def held(self, use: Callable[[RecordedCall], None]) -> Iterator[None]:
        """Keep other processes from using a call; first ``use`` the calls that they have used meanwhile."""
        with self._claims:
            claimed = self._claims.calls[self._seen :]
            self._seen += len(claimed)
            for pid, number in claimed:
                call = self._calls.get(number)
                if call is not None:
                    self._users.setdefault(call.process, set()).add(pid)
                    if pid != self._claims.pid:
                        use(call)
            yield

    def take(self, call: RecordedCall) -> None:
        """Claim a call; the claims must be held."""
        self._claims.add(CALL, call.number)
        self._users.setdefault(call.process, set()).add(self._claims.pid)

    def nearest(self, equal: list[RecordedCall]) -> list[RecordedCall]:
        """Return those of equal calls that most likely belong to this process."""
        first = [call for call in equal if self.is_first and call.process == self._root]
        if first:
            return first
        for is_near in (self._is_ours, self._is_alike, self._is_unclaimed):
            near = [call for call in equal if is_near(call.process)]
            if near:
                return near
        return equal

    def is_only_maker_of(self, call: RecordedCall) -> bool:
        """True if only this process uses calls of the recorded process that made this call."""
        return self._users.get(call.process) == {self._claims.pid}

    def writer(self) -> str | None:
        """Return the recorded process that this one stands for, None if nothing shows it."""
        if self._origins is None:
            return self._root
        used = [writer for writer, pids in list(self._users.items()) if self._claims.pid in pids]
        return self._origins.take(self._claims, used)

    def may_come(self) -> bool:
        """True if another process is alive and may still make a call."""
        return self._claims.has_other_live()

    def _is_ours(self, writer: str) -> bool:
        users = self._users.get(writer, set())
        return self._claims.pid in users or self._claims.writers.get(writer) == self._claims.pid

    def _is_alike(self, writer: str) -> bool:
        return (
            self._origins is not None
            and self._is_unclaimed(writer)
            and self._origins.is_started_alike(writer)
        )

    def _is_unclaimed(self, writer: str) -> bool:
        return writer not in self._users and writer not in self._claims.writers


class Origins:
    """The recorded processes after the first, and which of them was started like this one."""

    def __init__(self, recording: Recording) -> None:
        self._started: dict[str, Any] = {}
        for at, kind in enumerate(recording.event_types(system=True)):
            if kind == schema.PROC_START:
                event = recording.lines[at]
                self._started.setdefault(event.writer, _label(event.stored_fields))
        self._here: Any = None

    def is_started_alike(self, writer: str) -> bool:
        """True if the recorded process had the same name among its siblings, or else the same command."""
        if self._here is None:
            self._here = _label(how_started())
        return bool(self._started.get(writer) == self._here)

    def take(self, claims: Claims, used: list[str]) -> str | None:
        """Claim and return the recorded process that this one stands for; None if none is left.

        ``used`` are the recorded processes that made the calls used here.
        """
        with claims:
            mine = [writer for writer, pid in claims.writers.items() if pid == claims.pid]
            if mine:
                return mine[0]
            left = [writer for writer in (*used, *self._started) if writer not in claims.writers]
            found = next((writer for writer in left if writer in used or self.is_started_alike(writer)), None)
            if found is not None:
                claims.add(WRITER, found)
            return found


def _label(start: dict[str, Any]) -> Any:
    return start.get("process") or start.get("command")


def calls_of(tape: Tape, *, is_first: bool, live: Container[str]) -> list[RecordedCall]:
    """Return the calls for the first process, or else those for all others."""
    root = tape.recording.first_writer
    return [call for call in tape.calls if (call.process == root) == is_first and call.tool not in live]


def shared_by(tape: Tape, calls: list[RecordedCall], claims: Claims, *, is_first: bool) -> Shared:
    """Return the shared state of one process."""
    root = tape.recording.first_writer
    return Shared(claims, calls, None if is_first else Origins(tape.recording), root)


def count_calls(
    recording: Recording, scratch: str, live: Container[str], mode: str
) -> tuple[int, list[Divergence]]:
    """Return how many calls were answered in all processes, and the reports of those that are missing."""
    claims, tape = claims_of(scratch), Tape(recording)
    absent = server_processes(recording)
    calls = [call for call in tape.calls if call.tool not in live and call.event.writer not in absent]
    frontier = Frontier(calls, mode=mode, inside=tape.inside, shared=Shared(claims, calls))
    missing = missing_calls(frontier, tape)
    return len(claims.calls), missing
