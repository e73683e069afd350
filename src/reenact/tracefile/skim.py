"""The fields of a line without its largest one, for whoever only counts: most bytes are never parsed.

In a line of ours ``, "name": `` stands at the top level and nowhere else: nested values are written
compact, and inside a text every quote is escaped. So the end of a line can be left out unread.
"""

from __future__ import annotations

import re
from typing import Any

from .records import parse

_HEAD = re.compile(
    rb'\{"ts": [^"]{1,40}"run": "[^"\\]*", "w": "[^"\\]*", "step": \d+, "kind": "'
    rb"(?:(model\.request)|tool\.(?:called|result))\""
)
_LARGE = re.compile(rb', "(?:body|args|result)": ')
_MORE = re.compile(rb', "[^,\]}:]')
_KEEPS_MODEL = re.compile(rb', "keep": \{[^{}]*"model":true')


def skim(line: bytes) -> dict[str, Any]:
    """Return a line's fields; what a tool was given or gave back, and a request's body, may be missing.

    A request is parsed whole unless it has the model of the request it builds upon.
    """
    head = _HEAD.match(line)
    large = _LARGE.search(line, head.end()) if head is not None else None
    if head is None or large is None or _MORE.search(line, large.end()) is not None:
        return parse(line)
    if head[1] is not None and _KEEPS_MODEL.search(line, head.end(), large.start()) is None:
        return parse(line)
    return parse(line[: large.start()] + b"}")
