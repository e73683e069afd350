"""The fields of a line without its largest one, for whoever only counts: most bytes are never parsed.

The recorder writes the largest field of a call last (a user's own event of that kind has no call id), so a
long line is read up to there. Damage further on goes unseen; ``doctor`` sees it.
"""

from __future__ import annotations

import json
from typing import Any

from .. import extras, lines, schema
from .records import Read, parse

_LONG = 4096
"""A shorter line is parsed as fast as it is looked through."""

LARGEST = {
    schema.MODEL_REQUEST: lines.field_start("body"),
    schema.MODEL_RESPONSE: lines.field_start("body"),
    schema.TOOL_CALLED: lines.field_start("args"),
    schema.TOOL_RESULT: lines.field_start("result"),
}
"""The field that the recorder writes last in such a line, but for its sums."""
_SUMS, _FIELD = lines.field_start("tot"), lines.field_start("")[:3]

WHOLE = frozenset((schema.LLM_CALL, schema.TOOL_CALL, schema.OLD_TOOL_RESULT, schema.ERROR))
_ERROR = (b'"err', b"\\u006", b"\\u007")
"""Without these no key of a line is ``error`` or ``err``, however it is spelled."""

_HEAD = lines.heads(rb"(model\.request|tool\.(?:called|result))", call=rb'[^"\\]*"')
_KEEPS_MODEL = lines.fields_named("keep", value=rb'\{[^{}]*"model":true')
_decode = json.JSONDecoder().raw_decode


def _large_field(line: bytes, kind: str, at: int) -> int:
    """Return where the largest field of a call begins, if it is the last one but for the sums; else -1."""
    name = LARGEST[kind]
    large = line.find(name, at)
    after = line.find(_FIELD, large + len(name))
    is_last = after < 0 or (line.startswith(_SUMS, after) and line.find(_FIELD, after + 1) < 0)
    return large if is_last else -1


def links_and_sums(line: bytes, kind: str, at: int) -> dict[str, Any]:
    """Return the fields after ``at``, where the envelope ends; those that neither link nor count may miss."""
    if kind in LARGEST:
        large = _large_field(line, kind, at)
        if large > 0:
            fields: dict[str, Any] = _decode(f"{{{line[at + 2 : large].decode()}}}")[0]
            if kind != schema.MODEL_RESPONSE or "usage" in fields:
                return fields  # else the tokens may stand in the body
    elif kind not in WHOLE and not any(needle in line for needle in _ERROR):
        return {}
    return parse(line)


def skimmer() -> Read:
    """Return a function from a line to its fields; what a tool got or gave back, and the body of a
    request, may be missing.

    A request is parsed whole unless it has the model of the request it builds upon. orjson, where
    installed, parses three times as fast; what it refuses goes to the parser of everybody else.
    """
    orjson = extras.have("orjson")
    fast = parse if orjson is None else orjson.loads
    cut_deep = lines.cut_deep

    def skim(line: bytes) -> dict[str, Any]:
        try:
            text = _skimmed(line) if len(line) >= _LONG else line
            fields = fast(text)
            cut_deep(fields, text)
        except ValueError:
            return parse(line)
        return fields if type(fields) is dict else parse(line)

    return skim


def _skimmed(line: bytes) -> bytes:
    """Return the line without its last field where that is a large one nobody counts."""
    head = _HEAD.match(line)
    large = -1 if head is None else _large_field(line, head[1].decode(), head.end())
    if head is None or large < 0 or line.rfind(lines.START) != 0:
        return line
    if head[1] == b"model.request" and _KEEPS_MODEL.search(line, head.end(), large) is None:
        return line
    return line[:large] + b"}"
