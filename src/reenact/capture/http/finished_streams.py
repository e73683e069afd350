"""Streams that are complete, although the agent has neither read them to their end nor closed them.

Some clients stop at a stream's last event and let the collector close the response, long after the agent has
gone on: it has called the tools of the response by then. Such a response is recorded when its last event
comes in one piece (``is_last``), else before the next request of its thread, so that both stand in order.
"""

from __future__ import annotations

from _thread import _local
from _weakref import ref

from .. import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .exchange import Exchange

LAST_EVENTS = (b"[DONE]", b'"message_stop"', b'"response.completed"')
_TAIL, _HEAD = 4_096, 100
_SHORT = 50
"""Last events of a few bytes; that of OpenAI's Responses holds the response, and its clients read on."""
_MOST_STREAMS = 16
"""What is noted; a server with a thousand streams at once must not look at each of them for each request."""

_here = _local()
"""``streams`` of a thread: another one may be reading its own at this moment."""


def note_stream(exchange: Exchange) -> None:
    """The answer to this is a stream."""
    _here.streams = [*getattr(_here, "streams", ()), ref(exchange)][-_MOST_STREAMS:]


def record_whole_streams() -> None:
    """Record what has come to its last event in this thread. Never raises."""
    streams = getattr(_here, "streams", ())
    if not streams:
        return
    _here.streams = []
    with guard.Swallowing("record a stream that nobody closed"):
        for each in streams:
            exchange = each()
            if exchange is None or exchange.is_over:
                continue
            if not exchange.is_whole and is_whole(exchange.arrived.tail(_TAIL)):
                exchange.end()
            else:
                note_stream(exchange)


def is_last(piece: bytes) -> bool:
    """True if this piece of a stream ends with its last event, which is all in it."""
    return (
        piece.endswith(b"\n\n") and any(each in piece[-_SHORT:] for each in LAST_EVENTS) and is_whole(piece)
    )


def is_whole(tail: bytes) -> bool:
    """True if a stream of events ends with the one that is its last."""
    if not tail.endswith(b"\n\n"):
        return False
    event = tail.rstrip().rpartition(b"\n\n")[2].rpartition(b"data:")[2]
    return any(each in event[:_HEAD] for each in LAST_EVENTS)
