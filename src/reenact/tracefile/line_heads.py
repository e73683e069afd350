"""What the first bytes of a line tell: call, lane, parent, tool, and whether it can be an error.

Stepping and looking for breakpoints ask this of very many events, of which few are parsed whole. Safe on
our own lines: only at their top level does a space follow the colon, and quotes in texts are escaped.
"""

from __future__ import annotations

import json
from typing import Any

from .. import lines, schema
from . import dialects
from .event import Event

_WHOLE = 4096
"""Bytes of a line that are looked at; a shorter one is seen whole."""

_KEYS = ("call", "lane", "parent", "tool", "attempt")
_LINKS = lines.fields_named(*_KEYS, value=rb'(?:("[^"\\]*(?:\\.[^"\\]*)*")|(\d{1,9})[,}])')
_LARGE = lines.fields_named("body", "args", "result", "error", value=b"(?!null)")
"""Where values begin that may be long; the writer puts what links events before them."""

_NO_ERROR = lines.field_start("error") + b"null"
_MAY_BE_ERROR = lines.field_start("err").rstrip(b'": ')
"""Also of ``error`` and ``error_type``."""
_MODEL_BEGINS = frozenset((schema.MODEL_REQUEST, schema.LLM_CALL))
_TOOL_BEGINS = frozenset((schema.TOOL_CALLED, schema.TOOL_CALL))


def links_of(event: Event) -> dict[str, Any]:
    """Return those of ``call lane parent tool attempt`` that the event has."""
    if event.is_ours and not event.is_parsed:
        data = _head(event)
        large = _LARGE.search(data)
        data = data[: large.start()] if large is not None else data
        return {
            found[1].decode(): int(found[3]) if found[2] is None else _text(found[2])
            for found in _LINKS.finditer(data)
        }
    fields = event.stored_fields
    links = {key: fields[key] for key in _KEYS if type(fields.get(key)) in (str, int)}
    if (tool := event.tool_name) is not None:
        links["tool"] = tool
    return links


def _text(quoted: bytes) -> str:
    text = quoted[1:-1].decode("utf-8", "replace")
    if "\\" not in text:
        return text
    try:
        return str(json.loads(quoted))
    except ValueError:
        return text


def text_link(links: dict[str, Any], key: str) -> str | None:
    """Return a link that is a text and not empty."""
    value = links.get(key)
    return value if type(value) is str and value else None


def base_kind(event: Event) -> str:
    """Return the kind with the spellings of other dialects made one, without parsing the line."""
    return dialects.event_type(event.kind)


def is_model_begin(event: Event) -> bool:
    """True for a request and for a model call written as one line."""
    return base_kind(event) in _MODEL_BEGINS


def is_tool_begin(event: Event) -> bool:
    """True where a tool begins, or was called and ended in one line."""
    return base_kind(event) in _TOOL_BEGINS


def is_turn_begin(event: Event) -> bool:
    """True for the event that opens a turn: a model call that is no retry."""
    return is_model_begin(event) and links_of(event).get("attempt") in (None, 1)


def is_error(event: Event) -> bool:
    """True if the event is an error; most are told from their first bytes."""
    if event.is_ours and not event.is_parsed and event.kind != schema.ERROR:
        data = _head(event)
        if _NO_ERROR in data or (len(data) < _WHOLE and _MAY_BE_ERROR not in data):
            return False
    return event.error is not None


def _head(event: Event) -> bytes:
    source, offset = event.stored_in.at(event.stored_at)
    return source.head(offset)
