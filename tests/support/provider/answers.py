"""What goes back over the wire: a head and pieces, and what the scenario's faults make of them."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .scenario import Scenario
from .script import Turn


@dataclass(slots=True)
class Answer:
    """A response; `length` is None when the body has no length of its own and goes out chunked."""

    pieces: Iterable[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as a dialect sees it."""

    method: str
    path: str
    """Without the scenario's prefix, unquoted."""
    query: str
    headers: dict[str, str]
    body: bytes
    scenario: Scenario
    attempt: int
    """Which request of this scenario it is, from 1."""

    @property
    def base(self) -> str:
        return f"http://{self.headers['host']}{self.scenario.path}"

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one provider writes a model's turn; each function gets the turn and the request's JSON."""

    rounds: Callable[[Any], int]
    """How many rounds of tool results the request carries."""
    whole: Callable[[Turn, Any], Any]
    stream: Callable[[Turn, Any], list[bytes]]
    failure: Callable[[int], tuple[Any, dict[str, str]]]
    """The error body of a status, and the headers that come with it."""
    broken: bytes
    """The provider's error in the middle of a stream."""
    garbage: bytes
    stream_type: str = "text/event-stream; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def sse(value: Any, event: str | None = None) -> bytes:
    head = b"" if event is None else b"event: " + event.encode() + b"\n"
    return head + b"data: " + (value if isinstance(value, bytes) else compact(value)) + b"\n\n"


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return whole_answer(compact(value), "application/json", status, headers)


def whole_answer(
    body: bytes, content_type: str, status: int = 200, headers: dict[str, str] | None = None
) -> Answer:
    """A body of known length, in two pieces, so that it can be cut in the middle."""
    half = len(body) // 2
    head = {"content-type": content_type, **(headers or {})}
    return Answer([body[:half], body[half:]], status, head, len(body))


def refusal(dialect: Dialect, ask: Ask) -> Answer | None:
    """The error status the scenario asks for, if it does for this attempt."""
    status = ask.scenario.number("status", 500)
    times = ask.scenario.number("times")
    if status is None or (times is not None and ask.attempt > times):
        return None
    body, headers = dialect.failure(status)
    if status in (429, 503, 529) or "after" in ask.scenario:
        wait = ask.scenario.number("after") or 1
        headers = {"retry-after": str(-(-wait // 1000)), "retry-after-ms": str(wait), **headers}
    return json_answer(body, status, headers)


def speak(dialect: Dialect, ask: Ask, turn: Turn, body: Any, *, streamed: bool) -> Answer:
    """A turn of the model in its dialect."""
    if not streamed:
        return json_answer(dialect.whole(turn, body), headers=dialect.headers)
    pieces = _spoiled(dialect.stream(turn, body), dialect, ask.scenario)
    return Answer(pieces, 200, {"content-type": dialect.stream_type, **dialect.headers})


def _spoiled(pieces: list[bytes], dialect: Dialect, scenario: Scenario) -> Iterable[bytes]:
    """A stream with what is wrong inside its content."""
    at = scenario.number("malformed", 2)
    if at is not None:
        pieces[at : at + 1] = [dialect.garbage]
    at = scenario.number("error", 3)
    if at is not None:
        pieces[at:] = [dialect.broken]
    if "restart" in scenario:
        pieces.insert(0, pieces[0])
    tail = scenario.number("endless")
    if tail is not None:
        kept = pieces[:-tail]
        return itertools.chain(kept, itertools.repeat(kept[len(kept) // 2]))
    return pieces


def encoded(answer: Answer, scenario: Scenario) -> Answer:
    """The pieces as bytes of the body: compressed and cut to size where the scenario says so."""
    if "gzip" in scenario and isinstance(answer.pieces, Sequence):
        answer.headers["content-encoding"] = "gzip"
        answer.pieces = _gzipped(answer.pieces)
        if answer.length is not None:
            answer.length = sum(map(len, answer.pieces))
    size = scenario.number("shred", 7)
    if size is not None and isinstance(answer.pieces, Sequence):
        body = b"".join(answer.pieces)
        answer.pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return answer


def _gzipped(pieces: Sequence[bytes]) -> list[bytes]:
    """One gzip member, flushed after every piece, so that each can be read as it arrives."""
    squeeze = zlib.compressobj(wbits=31)
    done = [squeeze.compress(piece) + squeeze.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
    done[-1] += squeeze.flush()
    return done
