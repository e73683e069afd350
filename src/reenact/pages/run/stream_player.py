"""A streamed response to be played as it came: buttons, a timeline of its pieces, and the place of the text.

The script moves the time; without it the whole text is there.
"""

from __future__ import annotations

from math import ceil

from ...recording.played_streams import PlayedPiece, PlayedStream, is_streamed
from ...tracefile.events.event import Event
from ...tracefile.events.text import clean, count, milliseconds
from ..html import Html, tag

_SPEEDS = ("0.25", "1", "4", "16")
_MOST_TICKS = 600
_WIDE = 1_000


def stream_offer(event: Event) -> Html | None:
    """Return the place where a response is played, with a button; None for any other event."""
    if not is_streamed(event):
        return None
    return tag("div", tag("button", "play the stream (s)", type="button", data_stream="1"), id="stream")


def stream_player(stream: PlayedStream) -> Html:
    """Return the player of a stream, at its end."""
    if not stream.pieces:
        return tag(
            "section", tag("p", stream.note or "The chunks hold no text.", class_="soft"), class_="player"
        )
    total = max(1, ceil(stream.pieces[-1].ms))
    first = stream.pieces[0].ms
    longest = max((b.ms - a.ms for a, b in zip(stream.pieces, stream.pieces[1:], strict=False)), default=0.0)
    facts = [
        f"first token after {milliseconds(first)}",
        f"{count(len(stream.pieces), 'piece')} in {milliseconds(total)}",
        f"longest wait between them {milliseconds(longest)}" if longest else "",
    ]
    speeds = [tag("option", f"{value} \u00d7", value=value, selected=value == "1") for value in _SPEEDS]
    controls = tag(
        "div",
        tag("button", "play", type="button", data_play="1"),
        tag(
            "input",
            type="range",
            min="0",
            max=str(total),
            value=str(total),
            step="any",
            aria_label="time",
        ),
        tag("select", *speeds, aria_label="speed"),
        tag("output", milliseconds(total)),
        _ticks(stream.pieces, total),
        class_="controls",
    )
    return tag(
        "section",
        tag("div", *(tag("span", fact, class_="soft") for fact in facts if fact), class_="facts"),
        tag("p", stream.note, class_="soft") if stream.note else None,
        controls,
        tag("pre", "".join(clean(piece.text) for piece in stream.pieces), class_="played"),
        class_="player",
        aria_label="the stream of this response",
    )


def _ticks(pieces: list[PlayedPiece], total: float) -> Html:
    """Return when each piece came, the longer the higher."""
    top = max(len(piece.text) for piece in pieces)
    every = -(-len(pieces) // _MOST_TICKS)
    ticks = [
        tag(
            "rect",
            x=f"{(_WIDE - 3) * piece.ms / total:.1f}",
            y=f"{20 - max(4.0, 20 * len(piece.text) / top):.1f}",
            width="2",
            height="20",
            class_=piece.sort,
        )
        for piece in pieces[::every]
    ]
    return tag(
        "svg",
        *ticks,
        viewBox=f"0 0 {_WIDE} 20",
        preserveAspectRatio="none",
        class_="ticks",
        aria_hidden="true",
    )
