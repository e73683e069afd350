"""Requests written as what was new in them -> the whole request, proved by its chain.

``body()`` gives the stored form (blobs as references, keys escaped). Iterative and bounded, because a
trace is untrusted: cycles, bombs, wrong types and lost bases become findings and gap placeholders.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import lines, schema
from .findings import Note
from .values import copy, drop_at, point, set_at

Load = Callable[[str], "tuple[dict[str, Any], int] | None"]
"""call id -> the fields of its line and the line's size"""

MAX_LINKS = 200_000
"""Requests from the full one to the one asked for."""

MAX_BYTES = 256 << 20
"""Of referenced lines put into one request."""

_KEPT = 8
"""Rebuilt requests remembered, so that going through a run costs only what is new in each."""

_START = bytes(8)


class _Built(NamedTuple):
    line: dict[str, Any]
    """The request as it stands in the file."""
    body: dict[str, Any]
    chain: list[bytes] | None
    """The chain value after each element of the conversation; None once something is missing."""


class _Lost(Exception):
    """A reference that leads nowhere."""


class History:
    """Rebuilds the requests of one run's files."""

    __slots__ = ("_built", "_note", "_request", "_response", "_spent")

    def __init__(self, request: Load, response: Load, note: Note) -> None:
        self._request = request
        self._response = response
        self._note = note
        self._built: dict[str, _Built] = {}
        self._spent = 0

    def body(self, fields: dict[str, Any]) -> Any:
        """Return the whole request body in stored form; shared, so not to be changed."""
        if type(fields.get("body")) is not dict:
            return fields.get("body")
        call = fields.get("call")
        known = self._built.get(call) if type(call) is str else None
        if known is not None and known.line == fields:
            return known.body
        self._spent = 0
        links, built = self._links(fields)
        for link in reversed(links):
            built = self._apply(built, link)
        assert built is not None
        if type(call) is str:
            self._built[call] = built
            if len(self._built) > _KEPT:
                del self._built[next(iter(self._built))]
        return built.body

    def proves(self, fields: dict[str, Any]) -> bool:
        """Rebuild a request; True if it is whole and, where it has a conversation, its chain says so."""
        self.body(fields)
        call = fields.get("call")
        built = self._built.get(call) if type(call) is str else None
        if built is None or built.line != fields:
            return type(fields.get("body")) is not dict
        return built.chain is not None and (not built.chain or type(fields.get("chain")) is str)

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
            return self._follow(element, key)
        except (_Lost, LookupError, TypeError, ValueError, RecursionError) as why:
            self._note("reference-lost", f"a message refers to something that is not there ({why})")
            return {"$gap": 1}

    def _follow(self, element: Any, key: str) -> Any:
        edits: list[dict[str, Any]] = []
        hops = 0
        while type(element) is dict and ("$same" in element or "$answer" in element):
            hops += 1
            if hops > 1000:
                raise _Lost("it goes in circles")
            edits.append(element)
            if "$answer" in element:
                element = self._answer(element)
                break
            element = self._same(element["$same"], key)
        for edit in reversed(edits):
            element = _edited(element, edit)
        return element

    def _answer(self, reference: dict[str, Any]) -> Any:
        call = reference["$answer"]
        got = self._response(call) if type(call) is str else None
        if got is None:
            raise _Lost(f"the answer to call {str(call)[:16]} is lost")
        self._spend(got[1])
        value = point(got[0].get("body"), reference.get("at", ""))
        keys = reference.get("keys")
        if keys is None:
            return value
        return {name: value[name] for name in keys}

    def _same(self, target: object, key: str) -> Any:
        """Return element i of an earlier request, without rebuilding that request."""
        call, i = target if type(target) is list and len(target) == 2 else (None, -1)
        if type(call) is not str or type(i) is not int or i < 0:
            raise _Lost("no call and position")
        for _ in range(MAX_LINKS):
            got = self._request(call)
            if got is None:
                raise _Lost(f"call {call[:16]} is lost")
            self._spend(64)
            link, size = got
            keep = link.get("keep") if "base" in link else None
            much = keep.get(key, 0) if type(keep) is dict else 0
            if much is True or (type(much) is int and i < much):
                call = link["base"]
                if type(call) is not str:
                    raise _Lost("no base")
                continue
            self._spend(size)
            return link["body"][key][i - (much if type(much) is int and much > 0 else 0)]
        raise _Lost("it goes in circles")

    def _spend(self, size: int) -> None:
        self._spent += size
        if self._spent > MAX_BYTES:
            raise _Lost("more is repeated than a request can hold")


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


def _edited(element: Any, reference: dict[str, Any]) -> Any:
    drop, put = reference.get("drop"), reference.get("set")
    if not drop and not put:
        return element
    element = copy(element)
    for pointer in drop or ():
        drop_at(element, pointer)
    for pointer, value in (put or {}).items():
        set_at(element, pointer, value)
    return element


def _short(fields: dict[str, Any]) -> str:
    return str(fields.get("call"))[:16]
