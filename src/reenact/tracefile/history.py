"""Requests written as what was new in them -> the whole request, proved by its chain.

``body()`` gives the stored form (blobs as references, keys escaped). Iterative and bounded, because a
trace is untrusted: cycles, bombs, wrong types and lost bases become findings and gap placeholders.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from .. import lines, schema
from .findings import Note
from .references import MAX_LINKS, Load, Lost, References
from .splice import Rests, Spliced, splice
from .values import restore
from .way import Way

Blob = Callable[[object], "str | None"]

_KEPT = 8
"""Rebuilt requests remembered, so that going through a run costs only what is new in each."""

_START = bytes(8)


class _Built:
    """A rebuilt request; one that was spliced is decoded only where another builds on it."""

    __slots__ = ("_body", "_parts", "chain", "line")

    def __init__(self, line: dict[str, Any], body: dict[str, Any], chain: list[bytes] | None) -> None:
        self.line = line
        """As it stands in the file."""
        self.chain = chain
        """The chain value after each element of the conversation; None once something is missing."""
        self._body = body
        self._parts: Spliced | None = None

    @classmethod
    def spliced(cls, line: dict[str, Any], parts: Spliced) -> _Built:
        self = cls(line, parts.body, parts.chain)
        self._parts = parts
        return self

    @property
    def body(self) -> dict[str, Any]:
        """In stored form; shared, so not to be changed."""
        if self._parts is not None:
            self._body[self._parts.key] = json.loads(self._parts.text)
            self._parts = None
        return self._body

    def fresh(self, blob: Blob) -> dict[str, Any]:
        """Return the body as the agent had it, the caller's own."""
        parts = self._parts
        body: dict[str, Any] = restore(self._body, blob)
        if parts is not None:
            messages = json.loads(parts.text)
            body[parts.key] = restore(messages, blob) if _may_have_marks(parts.text) else messages
        return body


class History:
    """Rebuilds the requests of one run's files."""

    __slots__ = ("_built", "_note", "_references", "_request", "_rests", "_way")

    def __init__(self, request: Load, response: Load, way: Callable[[int], Way], note: Note) -> None:
        self._request = request
        self._references = References(request, response)
        self._way = way
        self._note = note
        self._built: dict[str, _Built] = {}
        self._rests: Rests = {}

    def body(self, fields: dict[str, Any], place: int | None = None) -> Any:
        """Return the whole request body in stored form; shared, so not to be changed. Faster by its place."""
        if type(fields.get("body")) is not dict:
            return fields.get("body")
        return self._build(fields, place).body

    def fresh(self, fields: dict[str, Any], place: int, blob: Blob) -> Any:
        """Return the whole request body as the agent had it, the caller's own."""
        if type(fields.get("body")) is not dict:
            return restore(fields.get("body"), blob)
        return self._build(fields, place).fresh(blob)

    def proves(self, fields: dict[str, Any], place: int) -> bool:
        """Rebuild a request; True if it is whole and, where it has a conversation, its chain says so."""
        if type(fields.get("body")) is not dict:
            return True
        chain = self._build(fields, place).chain
        return chain is not None and (not chain or type(fields.get("chain")) is str)

    def _build(self, fields: dict[str, Any], place: int | None) -> _Built:
        call = fields.get("call")
        built = self._built.get(call) if type(call) is str else None
        if built is not None and built.line == fields:
            return built
        built = self._spliced(fields, place) or self._long_way(fields)
        if type(call) is str:
            self._built.pop(call, None)
            self._built[call] = built
            if len(self._built) > _KEPT:
                del self._built[next(iter(self._built))]
        return built

    def _spliced(self, fields: dict[str, Any], place: int | None) -> _Built | None:
        """Rebuild a request from bytes, unless the one below it is at hand."""
        base = fields.get("base")
        if place is None or type(base) is not str or base in self._built:
            return None
        try:
            parts = splice(fields, self._way(place), self._rests)
        except OSError:
            return None
        return _Built.spliced(fields, parts) if parts is not None else None

    def _long_way(self, fields: dict[str, Any]) -> _Built:
        self._references.begin()
        links, built = self._links(fields)
        for link in reversed(links):
            built = self._apply(built, link)
        assert built is not None
        return built

    def _links(self, fields: dict[str, Any]) -> tuple[list[dict[str, Any]], _Built | None]:
        """Return the requests to apply, newest first, and what was already built below them."""
        links, seen = [fields], {str(fields.get("call"))}
        while "base" in links[-1]:
            base = links[-1]["base"]
            if type(base) is str and (built := self._built.get(base)) is not None:
                chain = None if built.chain is None else list(built.chain)
                body = {key: list(v) if type(v) is list else v for key, v in built.body.items()}
                return links, _Built({}, body, chain)
            if type(base) is not str or base in seen or len(links) >= MAX_LINKS:
                self._note("cycle", f"call {_short(fields)} builds on a request that builds on itself")
                break
            got = self._request(base)
            if got is None or type(got[0].get("body")) is not dict:
                message = f"call {_short(links[-1])} builds on call {base[:16]}, which is lost; it shows gaps"
                self._note("base-lost", message)
                break
            seen.add(base)
            links.append(got[0])
        return links, None

    def _apply(self, below: _Built | None, link: dict[str, Any]) -> _Built:
        """Put one request on top of the one below it, whose lists may be changed in place."""
        body, keep = link["body"], link.get("keep")
        old = below.body if below is not None else {}
        result: dict[str, Any] = {}
        if "base" in link and type(keep) is dict:
            for key, much in keep.items():
                result[key] = _kept(old, key, much, lost=below is None)
        name = next((key for key in schema.LISTS if key in result or key in body), None)
        intact = len(result[name]) if name in result and type(result[name]) is list else 0
        for key, value in body.items():
            if type(value) is list:
                new = [self._element(item, key) if type(item) is dict else item for item in value]
                if type(result.get(key)) is list and type(keep) is dict and type(keep.get(key)) is int:
                    result[key].extend(new)
                    continue
                result[key] = new
                intact = 0 if key == name else intact
            else:
                result[key] = value
        chain = self._prove(link, result.get(name or ""), below, intact)
        return _Built(link, result, chain)

    def _prove(
        self, link: dict[str, Any], elements: object, below: _Built | None, intact: int
    ) -> list[bytes] | None:
        """Fold the new elements into the chain and compare with what the writer wrote."""
        if type(elements) is not list:
            return []
        if "base" in link and (below is None or below.chain is None):
            return None  # already said: something below is lost
        chain = below.chain if below is not None and below.chain is not None else []
        del chain[intact:]
        value = chain[-1] if chain else _START
        try:
            for element in elements[len(chain) :]:
                text = lines.dumps(element).encode("ascii")
                value = hashlib.blake2b(value + text, digest_size=8).digest()
                chain.append(value)
        except (ValueError, RecursionError):
            return None
        told, count = link.get("chain"), link.get("n")
        if (type(count) is int and count != len(chain)) or (type(told) is str and told != value.hex()):
            self._note("chain", f"the rebuilt request of call {_short(link)} is not what was written")
            return None
        return chain

    def _element(self, element: dict[str, Any], key: str) -> Any:
        """Return a list element with its references followed and their small changes made."""
        if "$answer" not in element and "$same" not in element:
            return element
        try:
            return self._references.follow(element, key)
        except (Lost, LookupError, TypeError, ValueError, RecursionError) as why:
            self._note("reference-lost", f"a message refers to something that is not there ({why})")
            return {"$gap": 1}


def _may_have_marks(text: bytes) -> bool:
    """False if no key in a compact JSON text begins with ``$``, a mark of ours or an escaped one."""
    at = text.find(b"$")
    for _ in range(10_000):
        if at < 0:
            return False
        if text[at - 1] == 0x22 and text[at - 2] in b"{,":
            return True
        at = text.find(b"$", at + 1)
    return True


def _kept(old: dict[str, Any], key: str, much: object, *, lost: bool) -> Any:
    """Return what is kept of the value below, with a placeholder for what is not there."""
    value = old.get(key)
    if much is True:
        return value if key in old else {"$gap": 1}
    count = max(much, 0) if type(much) is int else 0
    have = value if type(value) is list else []
    if len(have) < count and (lost or key in old or count):
        return [*have, {"$gap": count - len(have)}]
    del have[count:]
    return have


def _short(fields: dict[str, Any]) -> str:
    return str(fields.get("call"))[:16]
