"""Parts of messages cut out of bytes without parsing: what is sent back of an answer, a marker that went.

Used by ``splice``. The first of a sort is parsed and shows where to cut, the next are cut alike: guessed,
so only good for whoever proves the result.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .. import lines
from .records import parse
from .values import drop_at, point

_BODY = b', "body": '


class Answers:
    """The sorts of answers met so far."""

    __slots__ = ("_shapes",)

    def __init__(self) -> None:
        self._shapes: dict[bytes, _Shape] = {}

    def text(self, line: bytes, which: bytes) -> bytes:
        """Return a part of the answer in a line; ``which`` is ``,"at":…,"keys":…`` as a reference has it."""
        shape = self._shapes.get(which)
        text = shape.cut(line) if shape is not None else None
        return text if text is not None else self._learn(line, which)

    def _learn(self, line: bytes, which: bytes) -> bytes:
        told = json.loads(b"{%s}" % which[1:])
        at, names = told.get("at", ""), told.get("keys")
        values = point(parse(line)["body"], at)
        if names is not None:
            values = {name: values[name] for name in names}
        shape = _Shape.of(line, at, values, names)
        if shape is not None:
            self._shapes[which] = shape
        return lines.dumps(values).encode("ascii")


class _Shape(NamedTuple):
    """Between which bytes the values of an answer stand in its line."""

    around: list[tuple[bytes, bytes, bool]]
    """What stands before and after each value, and whether it can hold the like of what stands after."""
    has_keys: bool

    @classmethod
    def of(cls, line: bytes, at: str, values: Any, names: list[str] | None) -> _Shape | None:
        around = []
        for name in [at.rpartition("/")[2]] if names is None else names:
            value = lines.dumps(values if names is None else values[name])
            prefix = f"{lines.quote(name)}:".encode()
            begin = line.find(prefix + value.encode(), line.find(_BODY))
            if begin < 0:
                return None
            end = begin + len(prefix) + len(value)
            stop = line.find(b":", end) + 1 or len(line)
            around.append((prefix, line[end:stop], value[0] in "[{"))
        return cls(around, names is not None)

    def cut(self, line: bytes) -> bytes | None:
        """Return the answer's text; None if this line is not written alike."""
        at = line.find(_BODY)
        parts = []
        for prefix, suffix, holds_more in self.around:
            begin = line.find(prefix, at)
            end = line.rfind(suffix, begin) if holds_more else line.find(suffix, begin)
            if at < 0 or begin < 0 or end < 0:
                return None
            parts.append(line[begin if self.has_keys else begin + len(prefix) : end])
        return b"{%s}" % b",".join(parts) if self.has_keys else parts[0]


class Drops:
    """Keys that were taken off messages, with the values they had."""

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[bytes, bytes] = {}

    def without(self, text: bytes, pointer: bytes) -> bytes:
        """Return a message's text without what a pointer leads to: a cache marker, always the same."""
        cut = self._texts.get(pointer)
        if cut is not None and text.count(cut) == 1:
            return text.replace(cut, b"")
        value, way = json.loads(text), pointer.decode()
        name, gone = lines.quote(way.rpartition("/")[2]), lines.dumps(point(value, way))
        self._texts[pointer] = f",{name}:{gone}".encode("ascii")
        drop_at(value, way)
        return lines.dumps(value).encode("ascii")
