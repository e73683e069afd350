"""One event as one line for reading: a sign, what happened, tokens, duration, the error.

Shared by ``show``, ``tail``, ``grep`` and ``demo``. Parses the event it is given and nothing else.
"""

from __future__ import annotations

import textwrap
from typing import Any, NamedTuple

from ... import schema
from ...totals import used
from ...tracefile.dialects import ARGS_KEYS, RESULT_KEYS
from ...tracefile.event import ErrorText, Event
from ...tracefile.models import is_large, requested_model
from ...tracefile.requests import is_delta
from ...tracefile.text import arguments, compact, cut, milliseconds, plain, seconds, short_json, width_of
from ...wire import reading
from ..output import Cell, Output

_WIDE = 400
"""Text made per event before it is cut to the terminal."""


_CHEAP_LINKS = 200
"""How long a chain may be to look up a name that is only nice to have."""


_NARROW = 20
"""Columns an error gets in any case."""


class Told(NamedTuple):
    """What a line says of an event."""

    sign: str
    text: str
    tokens: str = ""
    duration: str = ""
    error: str = ""


def is_huge(event: Event) -> bool:
    """True for an event too long to be parsed for a mere line about it."""
    return event.is_partial


def describe(event: Event) -> Told:
    """Return what happened in an event."""
    if is_huge(event):
        return Told("·", f"{plain(event.kind, 60)}  (a line of over 64 MB; `reenact cat` passes it on)")
    fields = event.stored_fields
    told = _TELL.get(event.event_type, _other)(event, fields)
    error = event.error
    if error is None:
        return told
    said = "" if event.event_type in (schema.ERROR, schema.MODEL_RESPONSE) else told.text
    return told._replace(sign="✗", error=error_text(error), text=said)


def error_text(error: ErrorText) -> str:
    """Return type and message of an error on one line."""
    kind = plain((error.type or "").rpartition(".")[2], 60)
    message = plain(str(error), _WIDE)
    return f"{kind}: {message}" if kind and message and kind != message else message or kind or "(no text)"


def _request(event: Event, fields: dict[str, Any]) -> Told:
    body = fields.get("body")
    model = _model(event, fields)
    number = fields.get("n")
    if type(number) is not int:
        key = reading.conversation_key(body)
        number = len(body[key]) if type(body) is dict and key else None
    parts = [plain(model, 60)] if model else []
    if type(number) is int:
        parts.append(f"{number:,} message{'' if number == 1 else 's'}")
    if type(fields.get("attempt")) is int and fields["attempt"] > 1:
        parts.append(f"attempt {fields['attempt']}")
    return Told("→", ", ".join(parts) or "request")


def _model(event: Event, fields: dict[str, Any]) -> str | None:
    """Return the model a request asks for; kept from an earlier one, it is sought where that is cheap."""
    is_cheap = not is_delta(fields) or not is_large(event.stored_in, event.stored_at)
    return requested_model(fields, event.stored_in, {}, links=_CHEAP_LINKS if is_cheap else 0)


def _response(event: Event, fields: dict[str, Any]) -> Told:
    usage = used(fields)
    out = usage.get("output")
    known = [usage[key] for key in ("input", "cache_read", "cache_write") if type(usage.get(key)) is int]
    tokens = f"{compact(sum(known))}+{compact(out)}" if known and type(out) is int else ""
    said = plain(event.content or "", _WIDE)
    stop = fields.get("stop_reason")
    if event.kind == schema.LLM_CALL or stop not in (None, "end_turn", "tool_use"):
        words = [fields.get("model"), stop] if event.kind == schema.LLM_CALL else [stop]
        said = "  ".join([plain(word, 60) for word in words if type(word) is str] + [said])
    return Told("←", said.strip() or "(nothing)", tokens, milliseconds(fields.get("duration_ms")))


def _called(event: Event, fields: dict[str, Any]) -> Told:
    return Told("▸", tool_text(event))


def tool_text(event: Event, width: int = _WIDE) -> str:
    """Return a tool with its arguments, like a call."""
    fields = event.stored_fields
    args = next((fields[key] for key in ARGS_KEYS if fields.get(key) is not None), None)
    return f"{plain(event.tool_name or '?', 60)}({arguments(args, width)})"


def _result(event: Event, fields: dict[str, Any]) -> Told:
    duration = milliseconds(fields.get("duration_ms"))
    result = next((fields[key] for key in RESULT_KEYS if key in fields), None)
    shown = "" if result is None else short_json(result, _WIDE)
    if event.kind == schema.TOOL_CALL:
        return Told("◂", f"{tool_text(event, 120)} {shown}".rstrip(), duration=duration)
    name = plain(event.tool_name or "", 60)
    return Told("◂", f"{name} {shown}".strip(), duration=duration)


def _error(event: Event, fields: dict[str, Any]) -> Told:
    where = fields.get("where")
    return Told("✗", f"in {plain(where, 40)}" if type(where) is str else "")


def _final(event: Event, fields: dict[str, Any]) -> Told:
    return Told("✓", f"final  {plain(event.content or '', _WIDE)}")


def _other(event: Event, fields: dict[str, Any]) -> Told:
    skip = {*schema.RESERVED, "error", "err"} - ({"v"} if not event.is_bookkeeping else set())
    if event.is_bookkeeping:
        skip |= {"python", "argv0", "policy", "host", "overhead_us", "unseen", "dropped", "redacted"}
    shown = {key: value for key, value in fields.items() if key not in skip}
    set_apart = fields.get("fields")
    if type(set_apart) is dict:
        shown |= set_apart
    duration = milliseconds(shown.pop("duration_ms", None))
    return Told("·", f"{plain(event.kind, 60)}  {arguments(shown, _WIDE)}".rstrip(), duration=duration)


_TELL = {
    schema.MODEL_REQUEST: _request,
    schema.MODEL_RESPONSE: _response,
    schema.TOOL_CALLED: _called,
    schema.TOOL_RESULT: _result,
    schema.ERROR: _error,
    schema.FINAL: _final,
}
_STYLES = {"→": "cyan", "←": "cyan", "▸": "blue", "◂": "blue", "✗": "red", "✓": "green", "·": "dim"}


def offset_text(ts: float | None, started: float | None) -> str:
    """Return when an event happened, counted from the beginning of its run."""
    if ts is None or started is None or not abs(ts - started) < 1e9:
        return ""
    passed = ts - started
    return f"+{passed:.2f}s" if 0 <= passed < 60 else f"+{seconds(passed)}" if passed >= 0 else "before"


def address(event: Event, root: str | None) -> str:
    """Return how to name the event: its step, with its writer if that is not the first."""
    step = "?" if event.step is None else str(event.step)
    return step if root is None or event.writer == root else f"p{event.writer[:4]}:{step}"


def event_dict(event: Event, turn: int | None, root: str | None) -> dict[str, Any]:
    """Return an event's line as ``--json`` gives it."""
    error, told = event.error, describe(event)
    return {
        "address": address(event, root),
        "ts": event.timestamp,
        "kind": event.kind,
        "turn": turn,
        "summary": told.text or told.error,
        "duration_ms": event.duration_ms,
        "error": None if error is None else error_dict(error),
    }


def error_dict(error: ErrorText) -> dict[str, Any]:
    """Return an error as ``--json`` gives it."""
    return {"type": error.type, "message": str(error), "frames": error.frames}


def event_lines(event: Event, out: Output, *, root: str | None, started: float | None) -> list[str]:
    """Return the line of an event as columns; an error may take two more."""
    told = describe(event)
    left = f"{address(event, root):>7} {offset_text(event.timestamp, started):>8}  "
    right = "  ".join(part for part in (told.tokens, told.duration) if part)
    room = out.width - width_of(left) - 2 - (width_of(right) + 2 if right else 0)
    style = _STYLES[told.sign]
    cells: list[Cell] = [(left, "dim"), (told.sign + " ", style)]
    if told.error:
        return _with_error(told, cells, left, right, room, out)
    text = cut(told.text, room)
    space = " " * (room - width_of(text) + 2) if right else ""
    cells += [(text, "dim" if told.sign == "·" else ""), (space + right, "dim")]
    return [out.cells(cells).rstrip()]


def _with_error(told: Told, cells: list[Cell], left: str, right: str, room: int, out: Output) -> list[str]:
    whole = f"{told.text}  {told.error}".strip() if told.text else told.error
    if room < _NARROW:  # the error is worth more than how long it took
        room, right = max(_NARROW, out.width - width_of(left) - 2), ""
    wrapped = textwrap.wrap(whole, room, max_lines=3, placeholder=" …") or [""]
    space = " " * (room - width_of(wrapped[0]) + 2) if right else ""
    first = out.cells([*cells, (wrapped[0], "red"), (space + right, "dim")])
    indent = " " * (width_of(left) + 2)
    return [first.rstrip(), *(out.paint(indent + line, "red") for line in wrapped[1:])]
