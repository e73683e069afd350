"""One short line of plain text for any event; terminal escapes and control characters taken out."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from .. import schema
from ..summary import used
from . import dialects

if TYPE_CHECKING:
    from .event import Event

WIDTH = 160

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, clipboard
    r"|\x1b.?|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)


def plain(text: str, width: int = WIDTH) -> str:
    """Return printable text on one line, cut to a width.

    >>> plain("a\\x1b[31mb\\n c")
    'ab c'
    """
    text = " ".join(_ESCAPES.sub("", text[: width * 8]).split())
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= width else text[: width - 1] + "…"


def summary_line(event: Event) -> str:
    """Return what happened, in one line."""
    parts = [event.kind, *_PARTS.get(event.event_type, _other)(event)]
    if event.error is not None:
        parts.append(f"error: {_error(event)}")
    if event._long:
        parts.append("(a line too long to be shown)")
    return plain("  ".join(part for part in parts if part))


def _error(event: Event) -> str:
    error = event.error
    if error is None:
        return ""
    return f"{error.type}: {error}" if error.type and error.type != error else str(error) or "(no text)"


def _request(event: Event) -> list[str]:
    fields = event._raw()
    body = fields.get("body")
    model = body.get("model") if type(body) is dict else None
    if model is None and type(body) is dict and "base" in fields:
        body = event._body()
        model = body.get("model")
    count = fields.get("n")
    if type(count) is not int and type(body) is dict:
        lists = [body[key] for key in schema.LISTS if type(body.get(key)) is list]
        count = len(lists[0]) if lists else None
    messages = f"{count} message{'' if count == 1 else 's'}" if type(count) is int else ""
    attempt = fields.get("attempt")
    again = f"attempt {attempt}" if type(attempt) is int and attempt > 1 else ""
    return [_text(model), messages, again]


def _response(event: Event) -> list[str]:
    fields = event._raw()
    out = used(fields).get("output")
    tokens = f"{out} tokens out" if type(out) is int else ""
    if type(fields.get("output_tokens")) is int:
        tokens = f"{fields.get('input_tokens')} in, {out} out"
    said = event.content if event.error is None and not event._long else None
    model = fields.get("model")
    return [_text(model), _text(fields.get("stop_reason")), tokens, _text(said, 80), _duration(fields)]


def _called(event: Event) -> list[str]:
    fields = event._raw()
    args = next((fields[key] for key in dialects.ARGS_KEYS if key in fields), None)
    return [f"{event.tool_name or '?'}({_json(args)})"]


def _result(event: Event) -> list[str]:
    fields = event._raw()
    result = next((fields[key] for key in ("result", "output", "tool_output") if key in fields), None)
    shown = result.get("head") if type(result) is dict and "$blob" in result else result
    text = "" if shown is None else shown if type(shown) is str else _json(shown)
    return [event.tool_name or "", _text(text, 80), _duration(fields)]


def _run(event: Event) -> list[str]:
    fields = event._raw()
    return [_text(fields.get(key)) for key in ("name", "status", "what", "detail")]


def _other(event: Event) -> list[str]:
    if event.is_bookkeeping:
        return _run(event)
    skip = {*schema.RESERVED, "error", "err"}
    fields = [f"{key}={_json(value)}" for key, value in event._raw().items() if key not in skip]
    return fields[:6]


_PARTS = {
    schema.MODEL_REQUEST: _request,
    schema.MODEL_RESPONSE: _response,
    schema.TOOL_CALLED: _called,
    schema.TOOL_RESULT: _result,
}


def _duration(fields: dict[str, Any]) -> str:
    value = fields.get("duration_ms")
    if not isinstance(value, int | float) or not abs(value) < 1e15:
        return ""
    return f"{value:.0f} ms"


def _text(value: object, width: int = 60) -> str:
    return plain(value, width) if type(value) is str else ""


def _json(value: object) -> str:
    if type(value) is dict and "$blob" in value:
        value = value.get("head")
    if type(value) is str and len(value) > 80:
        value = value[:80] + "…"
    try:
        return plain(json.dumps(value, ensure_ascii=False), 100)
    except (ValueError, RecursionError):
        return "…"
