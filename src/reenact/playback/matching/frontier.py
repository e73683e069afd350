"""Which recorded call answers a request made again: equal in content, in its turn, once; never a guess.

A call may be asked for as soon as all that had ended before it began, in its lane, have been asked for: in
order where the recording was sequential, in any order where calls overlapped. Thread-safe.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from ...wire.reading import conversation_key
from .differences import likeness
from .request import TOOL, Request
from .rules import REBASE, STRICT
from .tape import NEVER, RecordedCall

if TYPE_CHECKING:
    from .processes import Shared


# Which calls of a tape are still to come: by lane for order, by begin for what may be waited for.
#
# Not thread-safe; ``frontier`` holds the lock.

OPEN, DISPLACED, OPTIONAL, SERVED = 0, 1, 2, 3
"""To come; to come, but another request seems to have come in its place, so nothing waits for it; may come or
not; over."""


class _Lane:
    """The calls of one lane."""

    def __init__(self, state: list[int]) -> None:
        self.calls: list[RecordedCall] = []
        self.first = 0
        """All before it are over."""
        self._ends: list[tuple[float, int]] = []
        self._state = state

    def add(self, call: RecordedCall) -> None:
        self.calls.append(call)
        heapq.heappush(self._ends, (call.end, call.number))

    def eligible(self) -> Iterator[RecordedCall]:
        """Yield what is not over and began before any that is still to come had ended."""
        while self._ends and self._state[self._ends[0][1]] != OPEN:
            heapq.heappop(self._ends)
        limit = self._ends[0][0] if self._ends else NEVER
        for call in self.rest():
            if call.begin > limit:
                break
            yield call

    def rest(self) -> Iterator[RecordedCall]:
        """Yield all that is not over, in the order it began."""
        while self.first < len(self.calls) and self._state[self.calls[self.first].number] == SERVED:
            self.first += 1
        for at in range(self.first, len(self.calls)):
            if self._state[self.calls[at].number] != SERVED:
                yield self.calls[at]


class Remaining:
    """The calls that are not over."""

    def __init__(self, calls: Iterable[RecordedCall]) -> None:
        self.calls = sorted(calls, key=lambda call: call.begin)
        self._state = [SERVED] * (max((call.number for call in self.calls), default=-1) + 1)
        self._lanes: dict[tuple[str, str], _Lane] = {}
        for call in self.calls:
            self._state[call.number] = OPEN
            self._lanes.setdefault(call.lane, _Lane(self._state)).add(call)
        self._next = 0
        """All before it are over."""

    def state(self, call: RecordedCall) -> int:
        return self._state[call.number] if call.number < len(self._state) else SERVED

    def serve(self, call: RecordedCall) -> None:
        """It is over: no second time."""
        self._state[call.number] = SERVED

    def displace(self, call: RecordedCall) -> None:
        """Let nothing wait for a call any more; it may still be asked for, and is missed if it is not."""
        if self.state(call) == OPEN:
            self._state[call.number] = DISPLACED

    def displace_before(self, call: RecordedCall) -> None:
        """The same for all that should have been asked for before a call, so that each is waited for once."""
        for each in self._lanes[call.lane].rest():
            if each.begin >= call.begin:
                break
            if each.end < call.begin:
                self.displace(each)

    def excuse(self, call: RecordedCall) -> None:
        """A call need not come any more."""
        if self.state(call) in (OPEN, DISPLACED):
            self._state[call.number] = OPTIONAL

    def eligible(self) -> list[RecordedCall]:
        """Return the calls that may be asked for now without leaving out any before them."""
        found: list[RecordedCall] = []
        for name, lane in list(self._lanes.items()):
            found += lane.eligible()
            if lane.first == len(lane.calls):
                del self._lanes[name]
        found.sort(key=lambda call: call.begin)
        return found

    def all(self) -> list[RecordedCall]:
        """Return all that is not over, in the order it began."""
        return [call for call in self.calls[self._over() :] if self._state[call.number] != SERVED]

    def to_come(self) -> list[RecordedCall]:
        """Return all that has to be asked for yet."""
        return [call for call in self.calls[self._over() :] if self._state[call.number] <= DISPLACED]

    def to_come_before(
        self,
        position: float,
        given_up: Container[int] = (),
        counts: Callable[[RecordedCall], bool] | None = None,
    ) -> RecordedCall | None:
        """Return the first call to come, of those that count, that had begun before a position."""
        for at in range(self._over(), len(self.calls)):
            if self.calls[at].begin >= position:
                return None
            call = self.calls[at]
            if self._state[call.number] == OPEN and call.number not in given_up:
                if counts is None or counts(call):
                    return call
        return None

    def _over(self) -> int:
        while self._next < len(self.calls) and self._state[self.calls[self._next].number] == SERVED:
            self._next += 1
        return self._next


REORDERED, CHANGED, WRONG_KIND = "reordered", "changed-request", "wrong-kind"
EXTRA, EXHAUSTED, MISSING_CALL = "extra-call", "exhausted", "missing-call"
AMBIGUOUS, DRIFT = "ambiguous-duplicate", "drift"
"""Verdicts; their spelling is stable, so that other programs can go by them."""

ALIKE = 0.6
"""From here on a request is a changed one rather than a new one."""
_SAME_QUESTION = 0.3
"""How alike two conversations must be, whatever the prompt around them, to stand in the same place."""
_LOOKED_AT = 32
"""Calls that are compared with a request in search of the nearest."""


class Served(NamedTuple):
    """The recorded call that answers a request."""

    call: RecordedCall
    notes: tuple[str, ...] = ()
    """``ambiguous-duplicate``, ``reordered``, ``drift``: it was answered, but not without a doubt."""


class Early(NamedTuple):
    """A request whose turn has not come: others have to be made before it, which may be under way."""

    call: RecordedCall


class Miss(NamedTuple):
    """A request that nothing in the recording answers."""

    code: str
    request: Request
    nearest: RecordedCall | None
    """The recorded call most like it, or the one it equals but for its turn."""
    likeness: float
    number: int
    """Which request of the run this was, from 1."""


class Frontier:
    """Matches the requests of one execution with the calls of a tape.

    ``calls`` are those that will be answered; what runs live must be left out. ``inside`` tells which calls a
    tool had made: they need not come where its result is given. ``shared`` tells of other processes that make
    calls of the same tape.
    """

    def __init__(
        self,
        calls: Iterable[RecordedCall],
        *,
        mode: str = STRICT,
        inside: Callable[[RecordedCall], Iterable[RecordedCall]] | None = None,
        shared: Shared | None = None,
    ) -> None:
        self._remaining = Remaining(calls)
        self._shared = shared
        self.mode = mode
        self._inside = inside
        self._lock = Lock()
        self._asked = 0
        self._served: dict[str, int] = {}
        """How often a request was answered, by its L1."""
        self.log: list[Served | Miss] = []
        """What became of every request, in order."""

    def ask(self, request: Request) -> Served | Miss:
        """Return the call that answers a request and use it up, or why there is none."""
        found = self.ask_patiently(request, patient=False)
        assert not isinstance(found, Early)
        return found

    def ask_patiently(self, request: Request, *, patient: bool = True) -> Served | Miss | Early:
        """Return the same, or that it is too early to say; then nothing is changed and it may ask again."""
        seen = request.fingerprint.l1
        with self._lock, self._news():
            found = self._find(request, patient)
            if isinstance(found, Early):
                return found
            self._asked += 1
            if isinstance(found, Served):
                self._use(found.call)
                if self._shared is not None:
                    self._shared.take(found.call)
                self._served[seen] = self._served.get(seen, 0) + 1
            self.log.append(found)
            return found

    def first_equal(self, request: Request, promised: int = 0) -> RecordedCall | None:
        """Return the first call that is not over and asks what a request asks.

        ``promised`` is how many such requests are known to come or have come: each has one of these calls.
        """
        with self._lock, self._news():
            to_come = max(promised - self._served.get(request.fingerprint.l1, 0), 0)
            equal = (call for call in self._remaining.all() if asks_the_same(call, request))
            return next(islice(equal, to_come, None), None)

    def count_equal(self, request: Request) -> int:
        """Return how many calls that are not over ask what a request asks."""
        with self._lock, self._news():
            return sum(asks_the_same(call, request) for call in self._remaining.all())

    def missing(self) -> list[RecordedCall]:
        """Return the recorded calls nobody has asked for; at the end of a run each is a ``missing-call``."""
        with self._lock, self._news():
            return self._remaining.to_come()

    def to_come_before(self, position: float, given_up: Container[int]) -> RecordedCall | None:
        """Return the first call nobody has asked for that had begun before a position in the recording.

        ``given_up`` are the numbers of calls that need not be told of.
        """
        with self._lock:
            if self._shared is None:
                return self._remaining.to_come_before(position, given_up)
            ours = self._shared.is_alone_with
            found = self._remaining.to_come_before(position, given_up, ours)
            if found is not None:
                with self._news():
                    found = self._remaining.to_come_before(position, given_up, ours)
            return found

    def has_company(self) -> bool:
        """True if another process may yet make a call that has to come before one of this process."""
        return self._shared is not None and self._shared.may_come()

    @property
    def is_one_of_many(self) -> bool:
        """True in a process that another one of the run has started, and may end."""
        return self._shared is not None and not self._shared.is_first

    def _news(self) -> Any:
        """Return what is to be held while the calls that others have made may not change."""
        return nullcontext() if self._shared is None else self._shared.held(self._use)

    @property
    def misses(self) -> list[Miss]:
        return [found for found in self.log if isinstance(found, Miss)]

    def _find(self, request: Request, patient: bool) -> Served | Miss | Early:
        eligible = self._remaining.eligible()
        equal = [call for call in eligible if asks_the_same(call, request)]
        if equal:
            return _first(equal if self._shared is None else self._shared.nearest(equal), request)
        later = next((call for call in self._remaining.all() if asks_the_same(call, request)), None)
        if later is not None:
            if patient:
                return Early(later)
            if self.mode == STRICT:
                return Miss(REORDERED, request, later, 1.0, self._asked + 1)
            self._remaining.displace_before(later)
            return Served(later, (REORDERED,))
        if self.mode == REBASE:
            stood_there = self._drifted(eligible, request)
            if stood_there is not None:
                return Served(stood_there, (DRIFT,))
        return self._miss(eligible, request)

    def _use(self, call: RecordedCall) -> None:
        self._remaining.serve(call)
        if call.kind == TOOL and self._inside is not None:
            for each in self._inside(call):
                self._remaining.excuse(each)

    def _drifted(self, eligible: list[RecordedCall], request: Request) -> RecordedCall | None:
        """Return the call that stood in this place: same site, same course of talk, first in order.

        One that asks something else altogether is a new call, which must not take another's answer.
        """
        for call in [*eligible, *self._remaining.all()]:
            other_size = request.size is not None and call.size not in (None, request.size)
            if call.kind != request.kind or other_size or not same_site(call, request):
                continue
            if request.kind == TOOL:
                return call
            is_same_course = call.shape.roles == request.shape.roles
            if is_same_course and alike(call.request, request)[0] >= _SAME_QUESTION:
                return call
        return None

    def _miss(self, eligible: list[RecordedCall], request: Request) -> Miss:
        wanted = request.fingerprint
        nearest, score = self._nearest(eligible, request)
        if nearest is not None and nearest.fingerprint.content == wanted.content:
            code = WRONG_KIND  # a stream for a plain call, or the other way round
        elif not self._remaining.to_come():
            code = EXHAUSTED
        elif not any(same_site(call, request) for call in eligible if call.kind == wanted.kind):
            code = WRONG_KIND if wanted.l1 not in self._served else EXTRA
        else:
            # Arguments are short: one word may be all of them. Of a part nobody can say how like it is.
            is_like = (
                score >= ALIKE or request.kind == TOOL or (nearest is not None and nearest.request_lossy)
            )
            code = CHANGED if is_like and wanted.l1 not in self._served else EXTRA
        if code == CHANGED and nearest is not None and self.mode != STRICT:
            self._remaining.displace(nearest)  # what follows it must not be held up
        return Miss(code, request, nearest, score, self._asked + 1)

    def _nearest(self, eligible: list[RecordedCall], request: Request) -> tuple[RecordedCall | None, float]:
        """Return the call most like a request among those whose turn it is, and a few after them."""
        kind, size = request.fingerprint.kind, request.size
        its_turn = {call.number for call in eligible}
        others = (each for each in self._remaining.all() if each.kind == kind and each.number not in its_turn)
        near = [call for call in eligible if call.kind == kind] + list(islice(others, _LOOKED_AT))
        if size is not None:  # of a long conversation only those about as long are worth rebuilding
            near.sort(key=lambda call: abs((call.size or size) - size))
        if not near:
            return (eligible[0] if eligible else None), 0.0
        # One of which only a part is recorded may be the very same: that is what has to be told.
        scores = [
            (call.request_lossy and call.number in its_turn, alike(call.request, request), -at, call)
            for at, call in enumerate(near[:_LOOKED_AT])
        ]
        best = max(scores, key=lambda score: score[:3])
        return best[3], best[1][0]


def asks_the_same(call: RecordedCall, request: Request) -> bool:
    """True if a recorded call asked the same; its size tells most apart without rebuilding it."""
    wanted = request.fingerprint
    if call.kind != wanted.kind or (call.kind == TOOL and call.tool != request.name):
        return False
    if call.size is not None and request.size is not None and call.size != request.size:
        return False
    return call.fingerprint.l1 == wanted.l1 or call.is_cut_upload_of(request)


def same_site(call: RecordedCall, request: Request) -> bool:
    if call.kind == TOOL:
        return call.tool == request.name
    return (
        call.fingerprint.site == request.fingerprint.site and call.is_stream == request.fingerprint.is_stream
    )


def _first(equal: list[RecordedCall], request: Request) -> Served:
    """Return the first of equal calls, in the order they began; before it, one that sent the very same."""
    exactly = [call for call in equal if call.fingerprint.l0 == request.fingerprint.l0] or equal
    chosen = exactly[0]
    rivals = [call for call in exactly[1:] if call.begin < chosen.end and chosen.begin < call.end]
    if any(call.answer.body != chosen.answer.body for call in rivals):
        return Served(chosen, (AMBIGUOUS,))
    return Served(chosen)


def alike(recorded: Request, now: Request) -> tuple[float, float]:
    """Return how alike the conversations of two requests are, and how alike all of them is."""
    one, other = recorded.plain(), now.plain()
    key = conversation_key(other)
    whole = likeness(one, other)
    return (whole if key is None else likeness(one.get(key), other[key])), whole
