"""A streamed response as it came: its texts with the times of the chunks that brought them."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

from ..tracefile.events.event import Event
from ..tracefile.events.raw_streams import read_stream
from ..wire.streams import spoken

_REASONS = {
    "no-stream": "The chunks of this response are not recorded.",
    "stream-withheld": "The chunks of this response held a secret and are not recorded.",
    "blob-missing": "The file with the chunks of this response is missing.",
    "blob-damaged": "The file with the chunks of this response is damaged.",
    "redacted": "Secrets were replaced in this stream, so the times of its chunks are not recorded.",
    "cut": "The stream was too long to be recorded whole.",
}


class PlayedPiece(NamedTuple):
    """Texts that one chunk brought."""

    ms: float
    """After the request was sent."""
    sort: str
    """``text``, ``thinking`` or ``tool``."""
    text: str


class PlayedStream(NamedTuple):
    """What can be played of a response."""

    pieces: list[PlayedPiece]
    note: str
    """Why something is missing."""


def is_streamed(event: Event) -> bool:
    """True for a response of which chunks may be recorded."""
    return type(event.stored_fields.get("raw")) is dict


def played_stream(event: Event) -> PlayedStream:
    """Return the pieces of a response; a chunk without text is none."""
    chunks, why = read_stream(event.stored_fields.get("raw"), event.stored_in.blobs)
    found: list[PlayedPiece] = []
    ends, times, size = [], [], 0
    for data, ms in chunks or ():
        size += len(data)
        ends.append(size)
        times.append(ms)
    for end, sort, text in spoken(b"".join(data for data, _ in chunks or ())):
        ms = times[min(bisect_left(ends, end), len(times) - 1)]
        if found and found[-1][:2] == (ms, sort):
            found[-1] = PlayedPiece(ms, sort, found[-1].text + text)
        else:
            found.append(PlayedPiece(ms, sort, text))
    return PlayedStream(found, _REASONS.get(why or "", ""))
