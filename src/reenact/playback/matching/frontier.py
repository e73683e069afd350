"""Match each request with the recorded call that answers it: equal in content, in order, once; never a guess.

A recorded call is eligible once all calls of its lane that had ended before it began have been requested: in
order where the recording was sequential, in any order where calls overlapped. Thread-safe.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from ...wire.json_differences import likeness
from ...wire.reading import conversation_key
from .modes import REBASE, STRICT
from .request import TOOL, Request
from .tape import NEVER, RecordedCall

if TYPE_CHECKING:
    from .processes import Shared


# The pending calls of a tape: by lane for their order, by begin for what an answer waits for.
#
# Not thread-safe; ``Frontier`` holds the lock.

OPEN, DISPLACED, OPTIONAL, SERVED = 0, 1, 2, 3
"""Pending; pending, but another request seems to have taken its place, so nothing waits for it; may be made
or not; used up."""


class _Lane:
    """The calls of one lane."""

    def __init__(self, state: list[int]) -> None:
        self.calls: list[RecordedCall] = []
        self.first = 0
        """All before it are used up."""
        self._ends: list[tuple[float, int]] = []
        self._state = state

    def add(self, call: RecordedCall) -> None:
        self.calls.append(call)
        heapq.heappush(self._ends, (call.end, call.number))

    def eligible(self) -> Iterator[RecordedCall]:
        """Yield the unused calls that began before any pending call had ended."""
        while self._ends and self._state[self._ends[0][1]] != OPEN:
            heapq.heappop(self._ends)
        limit = self._ends[0][0] if self._ends else NEVER
        for call in self.rest():
            if call.begin > limit:
                break
            yield call

    def rest(self) -> Iterator[RecordedCall]:
        """Yield the unused calls in the order they began."""
        while self.first < len(self.calls) and self._state[self.calls[self.first].number] == SERVED:
            self.first += 1
        for at in range(self.first, len(self.calls)):
            if self._state[self.calls[at].number] != SERVED:
                yield self.calls[at]


class Remaining:
    """The calls that are not used up."""

    def __init__(self, calls: Iterable[RecordedCall]) -> None:
        self.calls = sorted(calls, key=lambda call: call.begin)
        self._state = [SERVED] * (max((call.number for call in self.calls), default=-1) + 1)
        self._lanes: dict[tuple[str, str], _Lane] = {}
        for call in self.calls:
            self._state[call.number] = OPEN
            self._lanes.setdefault(call.lane, _Lane(self._state)).add(call)
        self._next = 0
        """All before it are used up."""

    def state(self, call: RecordedCall) -> int:
        return self._state[call.number] if call.number < len(self._state) else SERVED

    def serve(self, call: RecordedCall) -> None:
        """Use a call up: it answers no second request."""
        self._state[call.number] = SERVED

    def displace(self, call: RecordedCall) -> None:
        """Let nothing wait for a call any more; it may still be requested, else it is reported missing."""
        if self.state(call) == OPEN:
            self._state[call.number] = DISPLACED

    def displace_before(self, call: RecordedCall) -> None:
        """Displace all calls that should have been requested before this one: each is awaited only once."""
        for each in self._lanes[call.lane].rest():
            if each.begin >= call.begin:
                break
            if each.end < call.begin:
                self.displace(each)

    def excuse(self, call: RecordedCall) -> None:
        """Make a call optional."""
        if self.state(call) in (OPEN, DISPLACED):
            self._state[call.number] = OPTIONAL

    def eligible(self) -> list[RecordedCall]:
        """Return the calls that may be requested now without skipping any before them."""
        found: list[RecordedCall] = []
        for name, lane in list(self._lanes.items()):
            found += lane.eligible()
            if lane.first == len(lane.calls):
                del self._lanes[name]
        found.sort(key=lambda call: call.begin)
        return found

    def all(self) -> list[RecordedCall]:
        """Return the unused calls in the order they began."""
        return [call for call in self.calls[self._over() :] if self._state[call.number] != SERVED]

    def to_come(self) -> list[RecordedCall]:
        """Return the calls that still have to be requested."""
        return [call for call in self.calls[self._over() :] if self._state[call.number] <= DISPLACED]

    def to_come_before(
        self,
        position: float,
        abandoned: Container[int] = (),
        counts: Callable[[RecordedCall], bool] | None = None,
    ) -> RecordedCall | None:
        """Return the first pending call that began before a position and that ``counts`` accepts."""
        for at in range(self._over(), len(self.calls)):
            if self.calls[at].begin >= position:
                return None
            call = self.calls[at]
            if self._state[call.number] == OPEN and call.number not in abandoned:
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
"""Verdicts; their spelling is stable for other programs."""

ALIKE = 0.6
"""Likeness from which a request counts as changed, not as new."""
_SAME_QUESTION = 0.3
"""Likeness of two conversations, whatever the prompt around them, to count as the same call."""
_LOOKED_AT = 32
"""How many calls are compared with a request to find the nearest."""


class Served(NamedTuple):
    """The recorded call that answers a request."""

    call: RecordedCall
    notes: tuple[str, ...] = ()
    """``ambiguous-duplicate``, ``reordered``, ``drift``: answered, but not with certainty.

    The first only once for equal requests."""


class Early(NamedTuple):
    """A request that came too early: calls before it are pending and may be under way."""

    call: RecordedCall


class Miss(NamedTuple):
    """A request that nothing in the recording answers."""

    code: str
    request: Request
    nearest: RecordedCall | None
    """The most similar recorded call, or the equal one that is out of order."""
    likeness: float
    number: int
    """The number of the request in the run, from 1."""


class Frontier:
    """Matches the requests of one execution with the calls of a tape.

    ``calls`` are those to answer, without the calls that run live. ``inside`` returns the calls made inside a
    tool: they become optional when its recorded result is returned. ``shared`` knows the other processes that
    use the same tape.
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
        self._requests = 0
        self._served: dict[str, int] = {}
        """How often a request was answered, by its L1 fingerprint."""
        self._guessed: set[str] = set()
        """Requests with an answer that may be another's, by the same."""
        self.log: list[Served | Miss] = []
        """The result of every request, in order."""

    def ask(self, request: Request) -> Served | Miss:
        """Return the call that answers a request and use it up, or a miss with the reason."""
        found = self.match_or_wait(request, patient=False)
        assert not isinstance(found, Early)
        return found

    def match_or_wait(self, request: Request, *, patient: bool = True) -> Served | Miss | Early:
        """Return the same, or ``Early`` if the caller should ask again later; then nothing has changed."""
        digest = request.fingerprint.l1
        with self._lock, self._synced():
            found = self._find(request, patient)
            if isinstance(found, Early):
                return found
            self._requests += 1
            if isinstance(found, Served):
                self._use(found.call)
                if self._shared is not None:
                    self._shared.take(found.call)
                self._served[digest] = self._served.get(digest, 0) + 1
                if AMBIGUOUS in found.notes and digest in self._guessed:
                    found = found._replace(notes=())
                elif AMBIGUOUS in found.notes:
                    self._guessed.add(digest)
            self.log.append(found)
            return found

    def first_equal(self, request: Request, promised: int = 0) -> RecordedCall | None:
        """Return the first unused call that equals a request.

        ``promised`` is how many such requests have come or will come: each takes one of these calls.
        """
        with self._lock, self._synced():
            to_come = max(promised - self._served.get(request.fingerprint.l1, 0), 0)
            equal = (call for call in self._remaining.all() if is_same_request(call, request))
            return next(islice(equal, to_come, None), None)

    def count_equal(self, request: Request) -> int:
        """Return how many unused calls equal a request."""
        with self._lock, self._synced():
            return sum(is_same_request(call, request) for call in self._remaining.all())

    def missing(self) -> list[RecordedCall]:
        """Return the recorded calls not requested so far; at the end of a run each is a ``missing-call``."""
        with self._lock, self._synced():
            return self._remaining.to_come()

    def to_come_before(self, position: float, abandoned: Container[int]) -> RecordedCall | None:
        """Return the first pending call that began before a position in the recording.

        ``abandoned`` are the numbers of calls to ignore.
        """
        with self._lock:
            if self._shared is None:
                return self._remaining.to_come_before(position, abandoned)
            ours = self._shared.is_only_maker_of
            found = self._remaining.to_come_before(position, abandoned, ours)
            if found is not None:
                with self._synced():
                    found = self._remaining.to_come_before(position, abandoned, ours)
            return found

    def has_other_processes(self) -> bool:
        """True if another process may still make a call that comes before one of this process."""
        return self._shared is not None and self._shared.may_come()

    @property
    def is_child_process(self) -> bool:
        """True in a process that another process of the run started and may end."""
        return self._shared is not None and not self._shared.is_first

    def _synced(self) -> Any:
        """Return a context with the calls of other processes up to date and locked."""
        return nullcontext() if self._shared is None else self._shared.held(self._use)

    @property
    def misses(self) -> list[Miss]:
        return [found for found in self.log if isinstance(found, Miss)]

    def _find(self, request: Request, patient: bool) -> Served | Miss | Early:
        eligible = self._remaining.eligible()
        equal = [call for call in eligible if is_same_request(call, request)]
        if equal:
            same_use = [call for call in equal if is_same_use(call, request)]
            equal = same_use or equal
            candidates = [call for call in equal if is_same_caller(call, request)]
            if not candidates and not same_use and any(call.who is not None for call in equal):
                candidates = self._next_of_caller(request)
            candidates = candidates or equal
            return _first(candidates if self._shared is None else self._shared.nearest(candidates), request)
        later = next((call for call in self._remaining.all() if is_same_request(call, request)), None)
        if later is not None:
            if patient:
                return Early(later)
            if self.mode == STRICT:
                return Miss(REORDERED, request, later, 1.0, self._requests + 1)
            self._remaining.displace_before(later)
            return Served(later, (REORDERED,))
        if self.mode == REBASE:
            drifted = self._drifted(eligible, request)
            if drifted is not None:
                return Served(drifted, (DRIFT,))
        return self._miss(eligible, request)

    def _next_of_caller(self, request: Request) -> list[RecordedCall]:
        """Return the next call of the caller of a request, if that equals the request.

        Equal requests of several callers may have come one after the other by chance.
        """
        calls = (call for call in self._remaining.all() if is_same_caller(call, request))
        return [call for call in islice(calls, 1) if is_same_request(call, request)]

    def _use(self, call: RecordedCall) -> None:
        self._remaining.serve(call)
        if call.kind == TOOL and self._inside is not None:
            for each in self._inside(call):
                self._remaining.excuse(each)

    def _drifted(self, eligible: list[RecordedCall], request: Request) -> RecordedCall | None:
        """Return the recorded call that a changed request replaces: same site, same roles, first in order.

        A request about something else is a new call and must not take this one's answer.
        """
        for call in [*eligible, *self._remaining.all()]:
            other_size = request.size is not None and call.size not in (None, request.size)
            if call.kind != request.kind or other_size or not same_site(call, request):
                continue
            if request.kind == TOOL:
                return call
            is_same_course = call.roles == request.roles
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
            # Arguments are short: one word may be all of them. A part of a request has no true likeness.
            is_like = (
                score >= ALIKE or request.kind == TOOL or (nearest is not None and nearest.request_lossy)
            )
            code = CHANGED if is_like and wanted.l1 not in self._served else EXTRA
        if code == CHANGED and nearest is not None and self.mode != STRICT:
            self._remaining.displace(nearest)  # calls after it must not wait for it
        return Miss(code, request, nearest, score, self._requests + 1)

    def _nearest(self, eligible: list[RecordedCall], request: Request) -> tuple[RecordedCall | None, float]:
        """Return the most similar call among the eligible ones and a few after them."""
        kind, size = request.fingerprint.kind, request.size
        eligible_numbers = {call.number for call in eligible}
        others = (
            each
            for each in self._remaining.all()
            if each.kind == kind and each.number not in eligible_numbers
        )
        near = [call for call in eligible if call.kind == kind] + list(islice(others, _LOOKED_AT))
        if size is not None:  # rebuilding pays only for conversations of about the same length
            near.sort(key=lambda call: abs((call.size or size) - size))
        if not near:
            return (eligible[0] if eligible else None), 0.0
        # A request recorded only in part may be the same one: the report must say so.
        scores = [
            (call.request_lossy and call.number in eligible_numbers, alike(call.request, request), -at, call)
            for at, call in enumerate(near[:_LOOKED_AT])
        ]
        best = max(scores, key=lambda score: score[:3])
        return best[3], best[1][0]


def is_same_request(call: RecordedCall, request: Request) -> bool:
    """True if a recorded call equals a request. Compares sizes first: most calls need no rebuilding."""
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


def is_same_caller(call: RecordedCall, request: Request) -> bool:
    """True if the same thread, task or work item made a recorded call and makes a request."""
    return call.who is not None and call.who == request.who


def is_same_use(call: RecordedCall, request: Request) -> bool:
    """True if both are for one tool use. Some providers number the uses of each response anew."""
    return call.tool_id is not None and call.tool_id == request.tool_id


def _first(equal: list[RecordedCall], request: Request) -> Served:
    """Return the first of equal calls in the order they began; prefer one with identical bytes.

    One caller makes its calls in order. Of several that called at once any may be the one at hand.
    """
    exactly = [call for call in equal if call.fingerprint.l0 == request.fingerprint.l0] or equal
    chosen = exactly[0]
    rivals = [call for call in exactly[1:] if _overlap(call, chosen)]
    if is_same_caller(chosen, request):  # then all are; in another process or run it is another caller
        rivals = [each for each in rivals if each.event.writer != chosen.event.writer or _block(each, chosen)]
    if any(call.answer.body != chosen.answer.body for call in rivals):
        return Served(chosen, (AMBIGUOUS,))
    return Served(chosen)


def _block(*calls: RecordedCall) -> bool:
    """True if each keeps its caller waiting to its end: made at once, they have two callers of one name.

    So do threads of anyio, which have the name of their run.
    """
    return all(call.kind != TOOL and not call.is_stream and call.has_response for call in calls)


def _overlap(one: RecordedCall, other: RecordedCall) -> bool:
    return one.begin < other.end and other.begin < one.end


def alike(recorded: Request, now: Request) -> tuple[float, float]:
    """Return the likeness of the conversations of two requests, and of the whole requests."""
    one, other = recorded.plain(), now.plain()
    key = conversation_key(other)
    whole = likeness(one, other)
    return (whole if key is None else likeness(one.get(key), other[key])), whole
