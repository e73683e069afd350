"""What happened in an event, in words: a sign, the text, tokens, duration, the error.

The one place that words an event: for ``Event.summary()``, the commands and the debugger. Parses the event
it is given and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ... import schema
from ...totals import used
from ...wire import reading
from ..dialects import ARGS_KEYS, RESULT_KEYS
from .rebuilt_requests import is_delta
from .text import arguments, call_text, compact, milliseconds, one_line, plain, short_json

if TYPE_CHECKING:
    from .event import ErrorText, Event

_WIDE = 400
"""Text made per event before it is cut to the terminal."""


_CHEAP_LINKS = 200
"""How long a chain may be to look up a name that is only nice to have."""


class EventText(NamedTuple):
    """An event in words."""

    sign: str
    text: str
    tokens: str = ""
    duration: str = ""
    error: str = ""
    source: str = ""
    """Where a tool call comes from, if it was not reported."""


def describe(event: Event) -> EventText:
    """Return what happened in an event."""
    if event.is_partial:
        return EventText("·", f"{plain(event.kind, 60)}  (a line of over 64 MB; `reenact cat` passes it on)")
    fields = event.stored_fields
    text = _TEXTS.get(event.event_type, _other)(event, fields)
    error = event.error
    if error is None:
        return text
    is_all = event.event_type in (schema.ERROR, schema.MODEL_RESPONSE)
    return text._replace(sign="✗", error=error_text(error), text="" if is_all else text.text)


def summary_line(event: Event) -> str:
    """Return the kind of an event and what happened, in one line."""
    found = describe(event)
    text = found.text.removeprefix(plain(event.kind, 60)).strip()
    error = f"error: {found.error}" if found.error else ""
    parts = (event.kind, text, found.tokens, error, found.duration)
    return one_line("  ".join(part for part in parts if part))


def address(event: Event, root: str | None) -> str:
    """Return how to name the event: its step, with its writer if that is not the first."""
    step = "?" if event.step is None else str(event.step)
    step += "" if event.derived_number is None else f".{event.derived_number}"
    return step if root is None or event.writer == root else f"p{event.writer[:4]}:{step}"


def event_dict(event: Event, turn: int | None, root: str | None) -> dict[str, Any]:
    """Return the line of an event, as ``--json`` prints it."""
    error, found = event.error, describe(event)
    return {
        "address": address(event, root),
        "ts": event.timestamp,
        "kind": event.kind,
        "turn": turn,
        "summary": found.text or found.error,
        "duration_ms": event.duration_ms,
        "error": None if error is None else error_dict(error),
    }


def error_dict(error: ErrorText) -> dict[str, Any]:
    """Return an error, as ``--json`` prints it."""
    return {"type": error.type, "message": str(error), "frames": error.frames}


def error_text(error: ErrorText) -> str:
    """Return type and message of an error on one line; of a long message the last line stays."""
    kind = plain((error.type or "").rpartition(".")[2], 60)
    message = plain(str(error), _WIDE)
    if message.endswith("…") and len(message) == _WIDE:
        last = plain(str(error).rstrip()[-_WIDE // 2 :].rpartition("\n")[2], _WIDE // 2)
        message = f"{plain(str(error), _WIDE - len(last) - 1)} {last}"
    return f"{kind}: {message}" if kind and message and kind != message else message or kind or "(no text)"


def _request(event: Event, fields: dict[str, Any]) -> EventText:
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
    return EventText("→", ", ".join(parts) or "request")


def _model(event: Event, fields: dict[str, Any]) -> str | None:
    """Return the model a request asks for; kept from an earlier one, it is looked up where that is cheap."""
    shelf = event.stored_in
    is_cheap = not is_delta(fields) or not shelf.is_large(event.stored_at)
    return shelf.requested_model(fields, {}, links=_CHEAP_LINKS if is_cheap else 0)


def _response(event: Event, fields: dict[str, Any]) -> EventText:
    usage = used(fields)
    out = usage.get("output")
    known = [usage[key] for key in ("input", "cache_read", "cache_write") if type(usage.get(key)) is int]
    tokens = f"{compact(sum(known))}+{compact(out)}" if known and type(out) is int else ""
    text = plain(event.content or "", _WIDE)
    stop = fields.get("stop_reason")
    if event.kind == schema.LLM_CALL or stop not in (None, "end_turn", "tool_use"):
        words = [fields.get("model"), stop] if event.kind == schema.LLM_CALL else [stop]
        text = "  ".join([plain(word, 60) for word in words if type(word) is str] + [text])
    return EventText("←", text.strip() or "(nothing)", tokens, milliseconds(fields.get("duration_ms")))


def _called(event: Event, fields: dict[str, Any]) -> EventText:
    source = fields.get("source")
    return EventText("▸", tool_text(event), source=plain(source, 20) if type(source) is str else "")


def tool_text(event: Event, width: int = _WIDE) -> str:
    """Return a tool with its arguments, like a call."""
    fields = event.stored_fields
    args = next((fields[key] for key in ARGS_KEYS if fields.get(key) is not None), None)
    return call_text(event.tool_name, args, width)


def _result(event: Event, fields: dict[str, Any]) -> EventText:
    duration = milliseconds(fields.get("duration_ms"))
    if event.derived_number is not None and (most := milliseconds(fields.get("at_most_ms"))):
        duration = f"≤ {most}"
    result = next((fields[key] for key in RESULT_KEYS if key in fields), None)
    shown = "" if result is None else short_json(result, _WIDE)
    if event.kind == schema.TOOL_CALL:
        return EventText("◂", f"{tool_text(event, 120)} {shown}".rstrip(), duration=duration)
    name = plain(event.tool_name or "", 60)
    return EventText("◂", f"{name} {shown}".strip(), duration=duration)


def _error(event: Event, fields: dict[str, Any]) -> EventText:
    where = fields.get("where")
    return EventText("✗", f"in {plain(where, 40)}" if type(where) is str else "")


def _final(event: Event, fields: dict[str, Any]) -> EventText:
    return EventText("✓", f"final  {plain(event.content or '', _WIDE)}")


def _server_exit(event: Event, fields: dict[str, Any]) -> EventText:
    code, name = plain(str(fields.get("code", "?")), 20), fields.get("signal")
    how = f"was ended by {plain(name, 20)}" if type(name) is str else f"exited with code {code}"
    lines = fields.get("stderr")
    lines = [plain(line, _WIDE) for line in lines if type(line) is str] if type(lines) is list else []
    where = "the shared file of its stderr" if fields.get("shared") else "its stderr"
    # The last line comes first: it is the error, and a long text is cut.
    text = f"MCP server {plain(str(fields.get('server')), 120)} {how}"
    text += f"; {where} ends with: {lines[-1]}" if lines else ""
    text += "\n".join(["", "and before that:", *lines[-_STDERR_LINES:-1]]) if lines[1:] else ""
    return EventText("✗", "", error=text)


_STDERR_LINES = 4
"""Of those recorded; ``cat`` has all."""


def _other(event: Event, fields: dict[str, Any]) -> EventText:
    skip = {*schema.RESERVED, "error", "err"} - ({"v"} if not event.is_bookkeeping else set())
    if event.is_bookkeeping:
        skip |= {"python", "argv0", "policy", "host", "overhead_us", "unseen", "dropped", "redacted"}
    shown = {key: value for key, value in fields.items() if key not in skip}
    set_apart = fields.get("fields")
    if type(set_apart) is dict:
        shown |= set_apart
    duration = milliseconds(shown.pop("duration_ms", None))
    return EventText("·", f"{plain(event.kind, 60)}  {arguments(shown, _WIDE)}".rstrip(), duration=duration)


_TEXTS = {
    schema.MODEL_REQUEST: _request,
    schema.MODEL_RESPONSE: _response,
    schema.TOOL_CALLED: _called,
    schema.TOOL_RESULT: _result,
    schema.ERROR: _error,
    schema.FINAL: _final,
    schema.MCP_EXIT: _server_exit,
}
