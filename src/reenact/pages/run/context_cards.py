"""The context window on a page: one card per message that the model saw, and what happened to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...recording.kept_conversations import NOT_SENT
from ...recording.prompt import Context, ContextDelta, ContextPart, context_of, delta_of, pieces_of
from ...recording.recording import Recording
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import address
from ...tracefile.events.text import compact, count, plain, short_json
from ...wire.messages import message_parts, role_of
from ...wire.neutral import Image
from ..comparison.changed_text import LeftOut, folded
from ..html import Child, Html, join, line, tag
from .event_card import piece_html

_MOST_CARDS = 120
"""Messages on one page: the first few and the last; the others are counted, unless all are wanted."""
_FIRST = 4
_ROLES = frozenset(("system", "developer", "tools", "user", "assistant", "model", "tool"))
_MARKS = (("<redacted:", "redacted"), ('"$cut"', "truncated"), ('"$blob"', "truncated"))
"""What the text of a stored message holds where something of it is missing."""
_MOST_IMAGE = 4 << 20


def context_cards(
    recording: Recording, event: Event, left_out: LeftOut, *, only_new: bool = False, everything: bool = False
) -> Html:
    """Return what the model saw in the request that led to an event."""
    context = context_of(recording, event)
    if context is None:
        return tag("p", "No request to a model led to this event.", class_="soft")
    delta = delta_of(recording, event)
    new = {part.number for part in delta.parts} if delta is not None else set()
    root = recording.first_writer
    parts = [part for part in context.parts if not only_new or part.number in new]
    cards = [
        _card(part, context, root, left_out, is_new=part.number in new) for part in _few(parts, everything)
    ]
    hidden = len(parts) - len(cards)
    if hidden:
        words = f"… {count(hidden, 'message')} between"
        more = tag("button", words, class_="more", data_all="1", type="button")
        cards.insert(len(parts[:_FIRST]), more)
    return tag(
        "div",
        _head(context, delta, len(new), root),
        *(_dropped(delta.lost, left_out) if delta is not None else ()),
        *cards,
        class_="context",
    )


def _few(parts: list[ContextPart], everything: bool) -> list[ContextPart]:
    if everything or len(parts) <= _MOST_CARDS:
        return parts
    return [*parts[:_FIRST], *parts[_FIRST - _MOST_CARDS :]]


def _head(context: Context, delta: ContextDelta | None, new: int, root: str | None) -> Html:
    facts = [count(sum(part.is_sent for part in context.messages), "message")]
    facts += [f"{context.tokens:,} tokens"] if context.tokens is not None else []
    facts.append(f"{new:,} new")
    at = address(context.request, root)
    gone = delta.gone if delta is not None else 0
    changed = ", ".join(plain(key, 30) for key in delta.changed) if delta is not None else ""
    return tag(
        "div",
        tag("a", f"request {at}", href=f"#/e/{at}"),
        *(tag("span", fact, class_="soft") for fact in facts),
        tag("span", f"{count(gone, 'message')} dropped or changed", class_="mark dropped") if gone else None,
        tag("span", f"changed: {changed}", class_="mark") if changed else None,
        tag("p", plain(str(context.kept), 300), class_="soft") if context.kept is not None else None,
        class_="facts",
    )


def _card(part: ContextPart, context: Context, root: str | None, left_out: LeftOut, *, is_new: bool) -> Html:
    is_new = is_new and part.number is not None
    role = part.role if part.role in _ROLES else "other"
    marks = ["new"] if is_new else []
    marks += [] if part.is_sent else [NOT_SENT]
    marks += marks_of(part.value)
    number = "" if part.number is None else f"{part.number} "
    size = f"{context.share(part):.0%} · {compact(part.size)} chars"
    head = tag(
        "div",
        tag("h3", number, line(plain(part.role, 40))),
        *(tag("span", mark, class_=f"mark {mark.replace(' ', '-')}") for mark in marks),
        tag("span", size, class_="soft"),
        _origin(part, root),
        class_="facts",
    )
    state = " is-new" if is_new else "" if part.is_sent else " is-not-sent"
    return tag("article", head, *_body(part, left_out), class_=f"message role-{role}{state}")


def marks_of(value: Any) -> list[str]:
    """Return what of a message is not as it was: redacted, truncated."""
    text = short_json(value, 1 << 20)
    return list(dict.fromkeys(name for sign, name in _MARKS if sign in text))


def _origin(part: ContextPart, root: str | None) -> Html | None:
    if part.origin is None:
        return None
    places = [address(event, root) for event in part.origin.events[:4]]
    links = [join(" ", tag("a", at, href=f"#/e/{at}")) for at in places]
    how = {"answer": "from response", "tool": "from tool", "request": "since request"}
    return tag("span", how.get(part.origin.how, "from"), *links, class_="soft origin")


def _body(part: ContextPart, left_out: LeftOut) -> Iterator[Child]:
    if part.number is None:
        yield folded(part.text, left_out)
        return
    pieces = pieces_of(part.value)
    yield from (piece_html(piece, left_out) for piece in pieces)
    yield from _images(part.value, left_out)
    if not pieces and part.text:
        yield folded(part.text, left_out)


def _images(message: Any, left_out: LeftOut) -> Iterator[Html]:
    """Yield the pictures that are in a message; one at an address elsewhere is named, never fetched."""
    for part in message_parts(message):
        if not isinstance(part, Image):
            continue
        if part.data is None:
            yield tag("p", f"image at {plain(part.url or '?', 200)}, not loaded", class_="soft")
            continue
        try:
            if len(part.data) > _MOST_IMAGE:
                raise ValueError
            yield tag(
                "img", src=f"data:{part.media_type or ''};base64,{part.data}", alt="image in the message"
            )
        except ValueError:  # no picture that a browser shows, or too large a one
            kind = plain(part.media_type or "of unknown type", 60)
            yield tag("p", f"image {kind}, {len(part.data):,} characters, not shown", class_="soft")


def _dropped(messages: Sequence[Any], left_out: LeftOut) -> Iterator[Html]:
    """Yield the messages of the previous request that are no longer there, folded into one."""
    if not messages:
        return
    cards = [
        tag(
            "article",
            tag("div", tag("h3", line(plain(role_of(message), 40))), class_="facts"),
            *(piece_html(piece, left_out) for piece in pieces_of(message)),
            class_="message is-dropped",
        )
        for message in messages[:_MOST_CARDS]
    ]
    words = f"{count(len(messages), 'message')} of the previous request, dropped or changed"
    yield tag("details", tag("summary", words), *cards, class_="dropped-list")
