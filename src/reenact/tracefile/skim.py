"""The fields of a line without its largest one, for whoever only counts: most bytes are never parsed.

In a line of ours ``, "name": `` stands at the top level and nowhere else: nested values are written
compact, and inside a text every quote is escaped. The recorder writes the largest field of a call last
(a user's own event of that kind has no call id), so a long line is read up to there.
"""

from __future__ import annotations

import re
from typing import Any

from .records import parse

_LONG = 4096
"""A shorter line is parsed as fast as it is looked through."""

_HEAD = re.compile(
    rb'\{"ts": [^"]{1,40}"run": "[^"\\]*", "w": "[^"\\]*", "step": \d+, "kind": "'
    rb'(?:(model\.request)|tool\.(?:called|result))", "call": "'
)
_LARGE = re.compile(rb', "(?:body|args|result)": ')
_KEEPS_MODEL = re.compile(rb', "keep": \{[^{}]*"model":true')


def skim(line: bytes) -> dict[str, Any]:
    """Return a line's fields; what a tool was given or gave back, and a request's body, may be missing.

    A request is parsed whole unless it has the model of the request it builds upon.
    """
    head = _HEAD.match(line) if len(line) >= _LONG else None
    large = _LARGE.search(line, head.end()) if head is not None else None
    if head is None or large is None or line.rfind(b'{"ts": ') != 0:
        return parse(line)
    if head[1] is not None and _KEEPS_MODEL.search(line, head.end(), large.start()) is None:
        return parse(line)
    return parse(line[: large.start()] + b"}")
