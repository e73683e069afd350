"""One event on a page: what a person reads first, then all of its fields."""

from __future__ import annotations

from collections.abc import Iterator

from ... import schema
from ...recording.calls import Call
from ...recording.derived_events import DerivedEvent
from ...recording.prompt import Piece, answer_pieces
from ...recording.recording import Recording
from ...tracefile.dialects import ARGS_KEYS, RESULT_KEYS
from ...tracefile.events.event import ErrorText, Event
from ...tracefile.events.event_text import address, describe
from ...tracefile.events.text import count, milliseconds, offset_text, plain
from ...wire.neutral import REASONING, RESULT, TOOL
from ...wire.results import CONTRADICTED, OTHER_FORM, result_text
from ..comparison.changed_text import LeftOut, folded, value_text
from ..html import Child, Html, join, line, tag
from .json_tree import json_tree

_BESIDE = frozenset((*schema.ENVELOPE, *schema.LISTS, "tot", "chain", "frames"))
"""Fields that the card shows in its head, or that are about storage."""


def event_card(recording: Recording, event: Event, left_out: LeftOut) -> Html:
    """Return an event: a head, how it failed, its text or values, and the rest folded."""
    found = describe(event)
    where = recording.index.nearby(event.index or 0)
    turn, lane = where if where is not None else (0, "")
    facts = [
        plain(event.kind, 60),
        f"turn {turn}" if turn else "",
        f"lane {plain(lane, 60)}" if lane not in ("", "main") else "",
        offset_text(event.timestamp, recording.started),
        f"{found.tokens} tokens" if found.tokens else "",
        found.duration,
        _first_token(event),
        found.source,
    ]
    at = address(event, recording.first_writer)
    return tag(
        "article",
        tag(
            "div",
            tag("a", at, href=f"#/e/{at}", class_="address", title="link to this event"),
            tag("h2", line(_title(event, found.text))),
            class_="title",
        ),
        tag("div", *(tag("span", fact, class_="soft") for fact in facts if fact), class_="facts"),
        _error(event.error) if event.error is not None else None,
        *_read_first(recording, event, left_out),
        class_="event",
        data_turn=str(turn) if turn else None,
    )


def _first_token(event: Event) -> str:
    ttft = event.stored_fields.get("ttft_ms") if event.event_type == schema.MODEL_RESPONSE else None
    return f"first token after {milliseconds(ttft)}" if isinstance(ttft, int | float) else ""


def _title(event: Event, text: str) -> str:
    names = {
        schema.MODEL_REQUEST: "Request to the model",
        schema.MODEL_RESPONSE: "Response of the model",
        schema.LLM_CALL: "Model call",
    }
    if event.event_type in (schema.TOOL_CALLED, schema.TOOL_RESULT):
        what = "called" if event.event_type == schema.TOOL_CALLED else "returned"
        return f"{plain(event.tool_name or 'tool', 80)} {'failed' if event.error is not None else what}"
    return names.get(event.event_type, plain(text, 120) or plain(event.kind, 60))


def _error(error: ErrorText) -> Html:
    kind = f"{plain(error.type, 80)}: " if error.type else ""
    frames = [tag("li", line(str(frame))) for frame in error.frames[:12]]
    return tag(
        "div",
        tag("pre", tag("b", kind), str(error)[:4_000]),
        tag("ul", *frames, class_="frames") if frames else None,
        class_="failure",
    )


def _read_first(recording: Recording, event: Event, left_out: LeftOut) -> Iterator[Child]:
    """Yield the part of an event that a person reads first."""
    if event.is_partial:
        yield tag(
            "p", "The line of this event is longer than 64 MB; `reenact cat` passes it on.", class_="soft"
        )
    elif event.event_type == schema.MODEL_REQUEST:
        yield from _request(event)
    elif event.event_type in (schema.MODEL_RESPONSE, schema.LLM_CALL):
        yield from (piece_html(piece, left_out) for piece in answer_pieces(event))
    elif event.event_type in (schema.TOOL_CALLED, schema.TOOL_RESULT):
        yield from _tool(recording, event, left_out)


def _request(event: Event) -> Iterator[Child]:
    body = event.stored_fields.get("body")
    settings = {
        key: value
        for key, value in (body.items() if type(body) is dict else ())
        if key not in schema.LISTS and key not in ("system", "tools", "instructions")
    }
    number = event.stored_fields.get("n")
    if type(number) is int:
        yield tag("p", f"{count(number, 'message')} in its context", class_="soft")
    if settings:
        yield tag("section", tag("h3", "New or changed settings"), json_tree(settings))


def piece_html(piece: Piece, left_out: LeftOut) -> Html:
    """Return one text, tool use, result or thought; thoughts are folded."""
    if piece.sort == REASONING:
        body = tag("pre", left_out.cut(piece.text))
        return tag(
            "details", tag("summary", f"thinking, {len(piece.text):,} characters"), body, class_="thought"
        )
    sort = "use" if piece.sort == TOOL else "result" if piece.sort == RESULT else "text"
    failed = " failed" if piece.failed else ""
    return tag("div", folded(piece.text, left_out), class_=f"piece {sort}{failed}")


def _tool(recording: Recording, event: Event, left_out: LeftOut) -> Iterator[Child]:
    """Yield the arguments and the result of a call, at its beginning as at its end."""
    fields = event.whole_fields
    call = _call_of(recording, event)
    args = next((fields[key] for key in ARGS_KEYS if fields.get(key) is not None), None)
    args = call.args if args is None and call is not None else args
    if args is not None:
        yield tag("section", tag("h3", "Arguments"), _value(args, left_out))
    keys = [key for key in RESULT_KEYS if fields.get(key) is not None]
    result = fields[keys[0]] if keys else call.result if call is not None else None
    if call is not None and call.sent is not None and call.verdict in (CONTRADICTED, OTHER_FORM):
        yield _both(call, result, left_out)
    elif result is not None:
        yield tag("section", tag("h3", "Result"), _value(result, left_out))
    elif call is not None and call.error is not None and event.error is None:
        yield _error(call.error)
    if call is not None and call.end is not None:
        root = recording.first_writer
        ends = [("called", call.event), ("ended", call.end)]
        links = [
            join(f" {word} at ", tag("a", address(end, root), href=f"#/e/{address(end, root)}"))
            for word, end in ends
        ]
        yield tag("p", *links, class_="soft")


def _call_of(recording: Recording, event: Event) -> Call | None:
    """Return the call that a tool's event belongs to, where that does not take reading a large run."""
    if isinstance(event, DerivedEvent):
        return event.call
    if recording.is_small:
        call = recording.index.call_of(event)
        ended = None if call is None or call.end is None else recording.entries.ended_at(call.end)
        return ended or call
    return recording.entries.ended_at(event)


def _both(call: Call, result: object, left_out: LeftOut) -> Html:
    """Return what a tool returned beside what the model was sent for it."""
    assert call.sent is not None
    differs = call.verdict == CONTRADICTED
    returned = call.error if call.error is not None else result
    return tag(
        "div",
        tag("section", tag("h3", "Returned by the tool"), _value(returned, left_out)),
        tag(
            "section",
            tag(
                "h3",
                "Sent to the model",
                tag("span", " differs", class_="badge different") if differs else None,
            ),
            folded(result_text(call.sent.value), left_out),
        ),
        class_="pair",
    )


def _value(value: object, left_out: LeftOut) -> Html:
    if isinstance(value, dict | list) and value:
        return json_tree(value)
    return folded(str(value) if isinstance(value, ErrorText) else value_text(value), left_out)


def all_fields(event: Event) -> Html:
    """Return every field of an event as a tree, and its line as it is stored; both folded."""
    fields = {key: value for key, value in event.payload.items() if key not in _BESIDE}
    tree = tag("details", tag("summary", "All fields"), json_tree(fields))
    if event.derived_number is not None:
        note = "Derived from the model traffic: no line of its own is stored."
        return join(tree, tag("p", note, class_="soft"))
    source, offset = event.stored_in.at(event.stored_at)
    raw = source.line(offset)[: _MOST_RAW + 1].decode("utf-8", "replace")
    more = " …" if len(raw) > _MOST_RAW else ""
    return join(
        tree, tag("details", tag("summary", "Stored line"), tag("pre", raw[:_MOST_RAW] + more, class_="raw"))
    )


_MOST_RAW = 20_000
