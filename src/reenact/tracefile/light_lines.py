"""The fields of a line without its largest one, for whoever only counts: most bytes are never parsed.

The recorder writes the largest field of a call last
(a user's own event of that kind has no call id), so a long line is read up to there. Damage further on
goes unseen; ``doctor`` sees it.
"""

from __future__ import annotations

from typing import Any

from .. import extras, lines
from .records import Read, parse

_LONG = 4096
"""A shorter line is parsed as fast as it is looked through."""

_HEAD = lines.heads(rb"(?:(model\.request)|tool\.(?:called|result))", call=rb'[^"\\]*"')
_LARGE = lines.fields_named("body", "args", "result")
_KEEPS_MODEL = lines.fields_named("keep", value=rb'\{[^{}]*"model":true')


def skimmer() -> Read:
    """Return a function from a line to its fields; what a tool got or gave back, and the body of a
    request, may be missing.

    A request is parsed whole unless it has the model of the request it builds upon. orjson, where
    installed, parses three times as fast; what it refuses is given to the parser of everybody else.
    """
    orjson = extras.have("orjson")
    fast = parse if orjson is None else orjson.loads

    def skim(line: bytes) -> dict[str, Any]:
        try:
            fields = fast(_light(line) if len(line) >= _LONG else line)
        except ValueError:
            return parse(line)
        return fields if type(fields) is dict else parse(line)

    return skim


def _light(line: bytes) -> bytes:
    """Return the line without its last field where that is a large one nobody counts."""
    head = _HEAD.match(line)
    large = _LARGE.search(line, head.end()) if head is not None else None
    if head is None or large is None or line.rfind(lines.START) != 0:
        return line
    if head[1] is not None and _KEEPS_MODEL.search(line, head.end(), large.start()) is None:
        return line
    return line[: large.start()] + b"}"
