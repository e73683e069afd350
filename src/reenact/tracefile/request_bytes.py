"""A request rebuilt from the bytes of its links, without parsing what it repeats; proved by its chain.

The short way of ``History``: it takes the writer's own spelling for granted and guesses where a value
ends. Nothing is believed that the chain does not prove; then the long way is gone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Set
from hashlib import blake2b
from typing import Any, NamedTuple

from .. import lines, schema
from .earlier_lines import Way
from .records import parse
from .stored_values import change, drop_at, point

# Parts of messages cut out of bytes without parsing: what is sent back of an answer, a marker that went.
#
# Used by ``splice``. The first of a sort is parsed and shows where to cut, the next are cut alike: guessed,
# so only good for whoever proves the result.

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


MAX_BYTES = 256 << 20
"""Of a request that is put together; a message repeated without end is a bomb."""

_LISTS = "|".join(schema.LISTS).encode()
_SAME = rb'\{"\$same":\["([^"\\]*)",(\d+)\](?:,"drop":\["([^"\\]*)"\])?\},?'
_ANSWER = rb'\{"\$answer":"([^"\\]*)"((?:,"at":"[^"\\]*")?(?:,"keys":\[[^\]]*\])?)\},?'
_LINK = re.compile(
    rb', "base": "([^"\\]*)", "keep": \{([^{}0-9]*)(\d*)([^{}]*)\}, "n": (\d+), "chain": "[0-9a-f]{16}"'
    rb'(?:, "lossy": true)?, "body": \{"(%s)":\[(?:%s)?(?:%s)?' % (_LISTS, _SAME, _ANSWER)
)
"""A request that brings nothing but messages; mostly one with a moved marker, an answer, and new ones."""
_REFERENCE = re.compile(rb"(?:%s|%s)" % (_SAME, _ANSWER))
_HOPS = 64
_CHECKPOINT, _MAX_RESTS = 64, 4096
_scan = json.JSONDecoder().raw_decode


Rests = dict[bytes, dict[str, Any]]
"""Values that a request has besides its conversation, by call; of a few along the way."""


class Spliced(NamedTuple):
    """A request that was proved."""

    key: str
    """Of the conversation."""
    text: bytes
    """The conversation, one JSON list."""
    body: dict[str, Any]
    """The other keys, and the conversation's at its place."""
    chain: list[bytes]


class _Same(NamedTuple):
    """An element of an earlier request, with small changes."""

    call: bytes
    position: int
    drop: bytes | None
    edit: dict[str, Any] | None = None


_Element = bytes | _Same


class _Link(NamedTuple):
    """One request of the chain, as far as its line tells."""

    base: bytes | None
    keys: frozenset[str]
    """What it keeps of its base besides the conversation."""
    kept: int
    elements: list[_Element]
    """Of the conversation, from ``kept`` on."""
    rest: dict[str, Any]


class _Unusual(Exception):
    """Not what a recorder of ours writes."""


def splice(fields: dict[str, Any], way: Way, rests: Rests) -> Spliced | None:
    """Return a whole request; None if it has to be rebuilt the long way."""
    count, told = fields.get("n"), fields.get("chain")
    keep, body = fields.get("keep"), fields.get("body")
    if type(count) is not int or type(told) is not str or type(keep) is not dict or type(body) is not dict:
        return None
    key = next((name for name in schema.LISTS if name in keep or name in body), None)
    if key is None:
        return None
    result: dict[str, Any] = dict.fromkeys((*keep, *body))
    try:
        texts = _Splicer(key, way, rests).texts(fields, result)
    except (_Unusual, LookupError, AttributeError, TypeError, ValueError, RecursionError):
        return None
    chain, value = [], bytes(8)
    for text in texts:
        value = blake2b(value + text, digest_size=8).digest()
        chain.append(value)
    if len(chain) != count or value.hex() != told:
        return None
    return Spliced(key, b"[" + b",".join(texts) + b"]", result, chain)


class _Splicer:
    def __init__(self, key: str, way: Way, rests: Rests) -> None:
        self.key = key
        self.way = way
        self.rests = rests
        self.links: dict[bytes, _Link] = {}
        self.keeps: dict[tuple[bytes, bytes, bytes], frozenset[str]] = {}
        self.answers = Answers()
        self.drops = Drops()

    def texts(self, fields: dict[str, Any], result: dict[str, Any]) -> list[bytes]:
        """Return the elements of the conversation, and put the other keys' values into ``result``."""
        found, base, missing = self.walk(fields, result)
        texts = [element if type(element) is bytes else self.text(element) for element in reversed(found)]
        if sum(map(len, texts)) > MAX_BYTES:
            raise _Unusual
        self.follow_rest(base, missing, result)
        return texts

    def walk(
        self, fields: dict[str, Any], result: dict[str, Any]
    ) -> tuple[list[_Element], bytes | None, Set[str]]:
        """Go from base to base until the conversation is found.

        Returns its elements, the last first, and which other keys are still to be sought, from which base on.
        """
        found: list[_Element] = []
        upper, missing = fields["n"], result.keys() - {self.key}
        call, link = fields["call"].encode(), self.parsed(fields)
        while True:
            self.links[call] = link
            base, keys, kept, elements, rest = link
            if kept < upper:
                if kept + len(elements) < upper:
                    raise _Unusual
                found += elements[upper - kept - 1 :: -1]
                upper = kept
            if rest:
                for name in missing & rest.keys():
                    result[name] = rest[name]
                missing = missing - rest.keys()
            if not missing <= keys or base in self.links:
                raise _Unusual
            if not upper:
                return found, base, missing
            if base is None:
                raise _Unusual
            call, link = base, self.link(base)

    def link(self, call: bytes) -> _Link:
        line = _there(self.way.request(call))
        return self.quick(line) or self.parsed(parse(line))

    def follow_rest(self, call: bytes | None, missing: Set[str], result: dict[str, Any]) -> None:
        """Find the values of other keys, which may have been kept for longer than the conversation."""
        passed: list[tuple[bytes, Set[str]]] = []
        seen: set[bytes | None] = set()
        while missing:
            known = self.rests.get(call) if call is not None else None
            if known is not None and missing <= known.keys():
                result |= {name: known[name] for name in missing}
                break
            if call is None or call in seen:
                raise _Unusual
            seen.add(call)
            if len(seen) % _CHECKPOINT == 0:
                passed.append((call, missing))
            call, keys, rest = self.rest_of(call)
            result |= {name: rest[name] for name in missing & rest.keys()}
            missing = missing - rest.keys()
            if not missing <= keys:
                raise _Unusual
        if len(self.rests) > _MAX_RESTS:
            self.rests.clear()
        for call, names in passed:
            self.rests[call] = {name: result[name] for name in names}

    def rest_of(self, call: bytes) -> tuple[bytes | None, frozenset[str], dict[str, Any]]:
        """Return a request's base, and what it keeps of it and brings besides the conversation."""
        link = self.links.get(call)
        if link is None:
            line = _there(self.way.request(call))
            match = _LINK.match(line, line.find(b', "base": "'))
            if match is not None and line.endswith(b"]}}"):
                base, before, _, after, _, key = match.groups()[:6]
                return base, self.kept_keys(before, after, key), {}
            link = self.parsed(parse(line), elements=False)
        return link.base, link.keys, link.rest

    def quick(self, line: bytes) -> _Link | None:
        """Read a link that brings nothing but messages, by its spelling."""
        match = _LINK.match(line, line.find(b', "base": "'))
        if match is None or not line.endswith(b"]}}"):
            return None
        base, before, number, after, n, key, same, position, drop, answer, which = match.groups()
        keys = self.kept_keys(before, after, key)
        elements: list[_Element] = []
        if same is not None:
            elements.append(_Same(same, int(position), drop))
        if answer is not None:
            elements.append(self.answer(answer, which))
        kept = int(number or 0)
        self.split(line, match.end(), int(n) - kept, elements)
        return _Link(base, keys, kept, elements, {})

    def kept_keys(self, before: bytes, after: bytes, key: bytes) -> frozenset[str]:
        """Return what a ``keep`` names besides the conversation; it is mostly the same as last time."""
        keys = self.keeps.get((before, after, key))
        if keys is None:
            keep = json.loads(b"{%s%s%s}" % (before, b"1" if before.endswith(b":") else b"", after))
            keys = frozenset(name for name, much in keep.items() if much is True)
            if key.decode() != self.key or keep.keys() - keys - {self.key} or self.key in keys:
                raise _Unusual
            self.keeps[before, after, key] = keys
        return keys

    def split(self, line: bytes, at: int, count: int, elements: list[_Element]) -> None:
        """Append what stands between ``at`` and the end of a line."""
        text = ""
        while len(elements) < count:
            match = _REFERENCE.match(line, at) if line[at : at + 3] == b'{"$' else None
            if match is not None:
                same, position, drop, answer, which = match.groups()
                elements.append(
                    _Same(same, int(position), drop) if same is not None else self.answer(answer, which)
                )
                at = match.end()
            elif len(elements) == count - 1:
                elements.append(line[at:-3])
                break
            else:
                text = text or line.decode("ascii")
                value, end = _scan(text, at)
                elements.append(self.written(value, line[at:end]))
                at = end + 1

    def parsed(self, fields: dict[str, Any], *, elements: bool = True) -> _Link:
        """The same of any link, parsed whole."""
        body, keep, base = fields["body"], fields.get("keep", {}), fields.get("base")
        much = keep.get(self.key, 0)
        kept = sys.maxsize if much is True else much
        new = body.get(self.key, [])
        if type(kept) is not int or kept < 0 or type(new) is not list:
            raise _Unusual
        keys = frozenset(name for name, much in keep.items() if much is True)
        written = [self.written(element, None) for element in new] if elements else []
        rest = {name: value for name, value in body.items() if name != self.key}
        return _Link(base.encode() if type(base) is str else None, keys, kept, written, rest)

    def written(self, value: Any, text: bytes | None) -> _Element:
        """Return an element as it stands in its line, parsed already."""
        if type(value) is dict and "$same" in value:
            call, position = value["$same"]
            edit = value if "drop" in value or "set" in value else None
            return _Same(call.encode(), position, None, edit)
        if type(value) is dict and "$answer" in value:
            if "drop" in value or "set" in value:
                raise _Unusual
            which = {name: value[name] for name in ("at", "keys") if name in value}
            more = lines.dumps(which).encode()[1:-1]
            return self.answer(value["$answer"].encode(), b"," + more if more else b"")
        return text if text is not None else lines.dumps(value).encode("ascii")

    def answer(self, call: bytes, which: bytes) -> bytes:
        """Return what a request sends back of an answer."""
        return self.answers.text(_there(self.way.response(call)), which)

    def text(self, element: _Element, hops: int = 0) -> bytes:
        """Return an element with its references followed."""
        if isinstance(element, bytes):
            return element
        call, position, drop, edit = element
        link = self.links.get(call)
        if link is None:  # further back than the conversation itself
            link = self.links[call] = self.link(call)
        if hops == _HOPS or position < link.kept:
            raise _Unusual
        text = self.text(link.elements[position - link.kept], hops + 1)
        if drop is not None:
            return self.drops.without(text, drop)
        if edit is None:
            return text
        value = json.loads(text)
        change(value, edit)
        return lines.dumps(value).encode("ascii")


def _there(line: bytes | None) -> bytes:
    if line is None:
        raise _Unusual
    return line
