"""Numbers for lines that are equal but for what differs from run to run: clocks, counters, sums, ids.

An id counts by how many others came since it was last seen, so that lines which refer to different calls are
not equal. Inside of arguments and results everything counts. A regular expression takes about as long as
parsing a short line, and a fraction of it for a long one.
"""

from __future__ import annotations

import re
from typing import Any

from .. import schema
from .events.rebuilt_requests import ANSWER

BEGINS = REQUEST, CALLED = schema.MODEL_REQUEST.encode(), schema.TOOL_CALLED.encode()
ENDS = RESPONSE, RESULT = schema.MODEL_RESPONSE.encode(), schema.TOOL_RESULT.encode()

_VALUE = rb'"[^"\\]*"|[\d.]+|\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}'
_FIELDS = rb"(?:call|parent|base|tool_id|lane|attempt|keep|n)"
_CHANGING = rb"(?:chain|duration_ms|ttft_ms|request_id|usage|headers|tot|who)"
"""Fields of a line that no comparison looks at."""
_IDS = rb'(?:%s|(?:tool_use_|tool_call_|call_)id|id(?=":"(?:msg|toolu|call|chatcmpl|resp|fc|rs|gen)[_-]))'
"""Names of ids in a body: of an answer that is repeated, of tool uses, and what providers give out."""
_OF_TOOL = re.compile(rb'"(?:(%s": )(%s)|%s": (?:%s))' % (_FIELDS, _VALUE, _CHANGING, _VALUE))
_OF_MODEL = re.compile(
    rb'"(?:(%s": |%s":)(%s)|%s": (?:%s)|usage":\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})'
    % (_FIELDS, _IDS % re.escape(ANSWER).encode(), _VALUE, _CHANGING, _VALUE)
)
_KEPT = re.compile(rb'"(?:%s)":(\d+)' % "|".join(schema.LISTS).encode())
_MAIN = b'"main"'
_HIDDEN = re.compile(rb'"\$(?:cut|none)')


class LinePrints:
    """Makes the numbers of the lines of one run, which must come in order."""

    def __init__(self) -> None:
        self.call = ""
        """Of the latest line: the id of its call."""
        self.length = 0
        """Of the latest line: the messages of its request."""
        self.tool_ids: set[str] = set()
        """Of all tools that were called."""
        self.is_one_lane = True
        self._seen: dict[bytes, int] = {}
        """When an id was last seen, counted in ids."""
        self._clock = 0
        self._length_of: dict[bytes, int] = {}

    def other(self, line: bytes) -> None:
        """Take in a line of another kind, which has no number."""
        self.is_one_lane = self.is_one_lane and b'"lane"' not in line

    def of(self, kind: bytes, line: bytes, at: int) -> int | None:
        """Return a number for all lines that are equal to this one behind ``at``, where its envelope ends.

        None for an attempt that belongs to an earlier call, and for values that were redacted, cut or not
        recorded: where two of these are equal, what they stand for may differ.
        """
        parts: list[Any] = (_OF_MODEL if kind in (REQUEST, RESPONSE) else _OF_TOOL).split(line[at:])
        seen, call, base, is_first = self._seen, b"", 0, True
        self.length = 0
        for place in range(1, len(parts), 3):
            name, value = parts[place], parts[place + 1]
            if name is None:
                continue
            if name == b'n": ':
                self.length = self._length_of[call] = int(value)
                parts[place + 1] = 0
            elif name == b'keep": ':
                if (kept := _KEPT.search(value)) is not None:  # what counts is how many are left out
                    parts[place + 1] = value[: kept.start(1)], base - int(kept[1]), value[kept.end(1) :]
            elif name == b'lane": ':
                self.is_one_lane = self.is_one_lane and value == _MAIN
            elif name == b'attempt": ':
                is_first = False
            else:
                self._clock = clock = self._clock + 1
                parts[place + 1] = clock - seen.get(value, clock)
                seen[value] = clock
                if name == b'call": ':
                    call = value
                elif name == b'base": ':
                    base = self._length_of.get(value, 0)
                elif name == b'tool_id": ' and kind == CALLED:
                    self.tool_ids.add(value[1:-1].decode())
        self.call = call[1:-1].decode()
        is_whole = b"<redacted:" not in line and (b'"$' not in line or _HIDDEN.search(line) is None)
        return hash((kind, *parts)) if is_first and is_whole else None
