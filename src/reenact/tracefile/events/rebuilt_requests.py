"""Requests written as what was new in them -> the whole request, proved by its chain.

``body()`` gives the stored form (blobs as references, keys escaped). Iterative and bounded, because a
trace is untrusted: cycles, bombs, wrong types and lost bases become findings and gap placeholders.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import lines, schema
from ..findings import Note
from .stored_values import change, fresh, point, restore

# How a request is written as what was new in it: the fields ``base`` and ``keep`` of its line, and messages
# that refer to others. Whoever needs to know asks these functions; the values are untrusted.

DELTA_FIELDS = ("base", "keep")
"""Fields about how a request is stored, which a rebuilt one does not have."""
PROOF_FIELDS = ("n", "chain")
"""How many messages a request has, and the digest over them."""

ANSWER = "$answer"
"""The key of a message that stands for a response: its value is the call."""


def is_delta(fields: dict[str, Any]) -> bool:
    """True if a request is written as what is new over an earlier one."""
    return "base" in fields


def base_of(fields: dict[str, Any]) -> str | None:
    """Return the call whose request this one builds on."""
    base = fields.get("base")
    return base if type(base) is str else None


def kept(fields: dict[str, Any]) -> dict[str, Any]:
    """Return how much of each value of the base is kept: True for all of it, else a number of elements."""
    keep = fields.get("keep")
    return keep if type(keep) is dict else {}


def kept_messages(fields: dict[str, Any]) -> int:
    """Return how many messages of its base a request begins with."""
    keep, length = kept(fields), fields.get("n")
    for name in schema.LISTS:
        much = length if keep.get(name) is True else keep.get(name)
        if type(much) is int:
            return much
    return 0


def messages_of(body: Any) -> list[Any]:
    """Return the messages in a body, rebuilt or as it is written."""
    found = [body.get(name) for name in schema.LISTS] if type(body) is dict else []
    return next((elements for elements in found if type(elements) is list), [])


def is_reference(element: Any) -> bool:
    """True if a written message stands for another one."""
    return type(element) is dict and ("$same" in element or ANSWER in element)


def answer_named(element: Any) -> str | None:
    """Return the call whose answer a written message stands for."""
    call = element.get(ANSWER) if type(element) is dict else None
    return call if type(call) is str else None


def repeated(element: Any) -> tuple[str, Any] | None:
    """Return the call and the position of the message that a written message repeats."""
    same = element.get("$same") if type(element) is dict else None
    return (same[0], same[1]) if type(same) is list and len(same) == 2 and type(same[0]) is str else None


def repeat_of(call: str, position: int) -> dict[str, Any]:
    """Return how a message is written that repeats one of an earlier request."""
    return {"$same": [call, position]}


def is_repeated(element: Any) -> bool:
    """True if a written message repeats one of an earlier request, maybe with small changes."""
    return type(element) is dict and "$same" in element


def has_nothing_new(element: Any) -> bool:
    """True if a written message repeats one of an earlier request and adds nothing to it."""
    return is_repeated(element) and "set" not in element


# ``$same`` and ``$answer`` -> the message they stand for, with the small changes they carry.
#
# Iterative and bounded: chains of references, circles and bombs of a hostile file end in ``Lost``.

Load = Callable[[str], "tuple[dict[str, Any], int] | None"]
"""call id -> the fields of its line and the line's size"""

Outline = Callable[[str], "dict[str, Any]"]
"""call id -> the fields before the body of its request; empty where they cannot be read alone"""

MAX_BYTES = 256 << 20
"""Of lines read for the references of one request, and of what they lead to."""

MAX_LINKS = 200_000
"""Requests from the full one to the wanted one."""

_EACH = 8 << 20
"""What every further request may spend of it; so a file of nothing but bombs is read in bounded time too."""

_HOP = 1 << 10
"""What following one reference counts, besides the bytes it leads to."""
_MAX_HOPS = 1000
_KNOWN, _KNOWN_BYTES = 50_000, 16 << 20

_Target = tuple[str, str, int]
"""call, key of the body, position"""


class Lost(Exception):
    """A reference that leads nowhere."""


class References:
    """Follows the references of one run's requests; what was followed once is remembered for a while."""

    __slots__ = ("_known", "_known_bytes", "_left", "_line", "_origins", "_request", "_response")

    def __init__(self, request: Load, response: Load) -> None:
        self._request = request
        self._response = response
        self._left = MAX_BYTES
        self._line = ""
        self._known: dict[_Target, tuple[Any, int]] = {}
        """What a target stands for, and how many bytes that is."""
        self._known_bytes = 0
        self._origins: dict[_Target, str] = {}
        """The call in whose line a target is written, through all requests that only kept it."""

    def begin(self) -> None:
        """Another request is rebuilt."""
        self._left = min(MAX_BYTES, self._left + _EACH)

    def follow(self, element: Any, key: str) -> Any:
        """Return what an element of the list ``key`` stands for; Lost or LookupError if nothing."""
        way: list[tuple[_Target | None, dict[str, Any]]] = []
        target: _Target | None = None
        size = 0
        while is_reference(element):
            self._spend(_HOP)
            if len(way) == _MAX_HOPS:
                raise Lost("it goes in circles")
            way.append((target, element))
            if ANSWER in element:
                element, target = self._answer(element), None
                break
            target = self._target(element["$same"], key)
            if target in self._known:
                element, size = self._known[target]
                break
            element = self._written(target)
        size = size or len(marshal.dumps(element, 2))
        self._spend(size)
        self._remember(target, element, size)
        for target, reference in reversed(way):
            element = self._edited(element, reference, size)
            self._remember(target, element, size)
        return element

    def _remember(self, target: _Target | None, element: Any, size: int) -> None:
        if target is None:
            return
        if len(self._known) > _KNOWN or self._known_bytes > _KNOWN_BYTES:
            self._known.clear()
            self._known_bytes = 0
        self._known[target] = element, size
        self._known_bytes += size

    def _answer(self, reference: dict[str, Any]) -> Any:
        call = reference[ANSWER]
        got = self._response(call) if type(call) is str else None
        if got is None:
            raise Lost(f"the answer to call {str(call)[:16]} is lost")
        self._spend_line(call, got[1])
        value = point(got[0].get("body"), reference.get("at", ""))
        keys = reference.get("keys")
        if keys is None:
            return value
        return {name: value[name] for name in keys}

    def _target(self, same: object, key: str) -> _Target:
        call, i = same if type(same) is list and len(same) == 2 else (None, -1)
        if type(call) is not str or type(i) is not int or i < 0:
            raise Lost("no call and position")
        return call, key, i

    def _written(self, target: _Target) -> Any:
        """Return element i of an earlier request as it stands in a line, without rebuilding that request."""
        call, key, i = target
        passed: set[str] = set()
        while call not in passed and len(passed) < MAX_LINKS:
            call = self._origins.get((call, key, i), call)
            passed.add(call)
            got = self._request(call)
            if got is None:
                raise Lost(f"call {call[:16]} is lost")
            self._spend(64)
            link, size = got
            keep = link.get("keep") if "base" in link else None
            much = keep.get(key, 0) if type(keep) is dict else 0
            if much is True or (type(much) is int and i < much):
                call = link["base"]
                if type(call) is not str:
                    raise Lost("no base")
                continue
            self._spend_line(call, size)
            if len(self._origins) > _KNOWN:
                self._origins.clear()
            self._origins.update(dict.fromkeys(((one, key, i) for one in passed), call))
            return link["body"][key][i - (much if type(much) is int and much > 0 else 0)]
        raise Lost("it goes in circles")

    def _edited(self, element: Any, reference: dict[str, Any], size: int) -> Any:
        if not reference.get("drop") and not reference.get("set"):
            return element
        self._spend(size)
        element = fresh(element)
        change(element, reference)
        lines.cut_deep(element)
        return element

    def _spend_line(self, call: str, size: int) -> None:
        """References to one line come in groups, for which it is read once."""
        if call != self._line:
            self._spend(size)
            self._line = call

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Lost("more is repeated than a request can hold")


Blob = Callable[[object], "str | None"]

_KEPT = 8
"""Rebuilt requests remembered, so that going through a run costs only what is new in each."""

_START = bytes(8)


class _Built(NamedTuple):
    """A rebuilt request."""

    line: dict[str, Any]
    """As it stands in the file."""
    body: dict[str, Any]
    """In stored form; shared, so not to be changed."""
    chain: list[bytes] | None
    """The chain value after each element of the conversation; None once something is missing."""


class History:
    """Rebuilds the requests of one run's files."""

    __slots__ = ("_built", "_note", "_outline", "_references", "_request")

    def __init__(self, request: Load, outline: Outline, response: Load, note: Note) -> None:
        self._request = request
        self._outline = outline
        self._references = References(request, response)
        self._note = note
        self._built: dict[str, _Built] = {}

    def body(self, fields: dict[str, Any]) -> Any:
        """Return the whole request body in stored form; shared, so not to be changed."""
        if type(fields.get("body")) is not dict:
            return fields.get("body")
        return self._build(fields).body

    def message(self, written: Any, fields: dict[str, Any]) -> Any:
        """Return one message of a request in stored form, without the others; shared."""
        self._references.begin()
        known = {*kept(fields), *(fields["body"] if type(fields.get("body")) is dict else ())}
        name = next((name for name in schema.LISTS if name in known), schema.LISTS[0])
        return self._element(written, name) if type(written) is dict else written

    def fresh(self, fields: dict[str, Any], blob: Blob) -> Any:
        """Return the whole request body as the agent had it, the caller's own."""
        return restore(self.body(fields), blob)

    def proves(self, fields: dict[str, Any]) -> bool:
        """Rebuild a request; True if it is whole and, where it has a conversation, its chain says so."""
        if type(fields.get("body")) is not dict:
            return True
        chain = self._build(fields).chain
        return chain is not None and (not chain or type(fields.get("chain")) is str)

    def _build(self, fields: dict[str, Any]) -> _Built:
        call = fields.get("call")
        built = self._built.get(call) if type(call) is str else None
        if built is not None and built.line == fields:
            return built
        self._references.begin()
        links, below = self._links(fields)
        body = None if below is None else below.body
        chain = below.chain if below is not None else None if "base" in links[-1][0] else []
        for link, room in reversed(links):
            body, intact = self._apply(body, link, room)
            if chain is not None:
                del chain[intact:]
        assert body is not None
        built = _Built(fields, body, self._prove(fields, body, chain))
        if type(call) is str:
            self._built.pop(call, None)
            self._built[call] = built
            if len(self._built) > _KEPT:
                del self._built[next(iter(self._built))]
        return built

    def _links(
        self, fields: dict[str, Any]
    ) -> tuple[list[tuple[dict[str, Any], _Room | None]], _Built | None]:
        """Return the requests to apply, newest first, and what was already built below them.

        Beside each stands what the ones above keep of it. Requests of other conversations, which only pass
        that on from further below, stay out and are not parsed whole.
        """
        room: _Room | None = None
        links, link, seen = [(fields, room)], fields, {str(fields.get("call"))}
        while "base" in link:
            base = link["base"]
            if type(base) is str and (built := self._built.get(base)) is not None:
                chain = None if built.chain is None else list(built.chain)
                body = {key: list(v) if type(v) is list else v for key, v in built.body.items()}
                return links, _Built({}, body, chain)
            if type(base) is not str or base in seen or len(seen) >= MAX_LINKS:
                self._note("cycle", f"call {_short(fields)} builds on a request that builds on itself")
                break
            above, room = room, _room(link, room)
            seen.add(base)
            if room == above:  # nothing of this one is needed, and probably nothing of the next
                outline = self._outline(base)
                if "base" in outline and _room(outline, room) == room:
                    link = outline
                    continue
            got = self._request(base)
            if got is None or type(got[0].get("body")) is not dict:
                message = f"call {_short(link)} builds on call {base[:16]}, which is lost; it shows gaps"
                self._note("base-lost", message)
                break
            link = got[0]
            links.append((link, room))
        return links, None

    def _apply(
        self, old: dict[str, Any] | None, link: dict[str, Any], room: _Room | None
    ) -> tuple[dict[str, Any], int]:
        """Put one request on top of the body below it, whose lists may be changed in place.

        Return its body, and how many messages are those of the one below. A reference is not followed in
        what a request above cuts off again.
        """
        body, keep = link["body"], link.get("keep")
        result: dict[str, Any] = {}
        if "base" in link and type(keep) is dict:
            for key, much in keep.items():
                result[key] = _kept(old or {}, key, much, lost=old is None)
        name = next((key for key in schema.LISTS if key in result or key in body), None)
        intact = len(result[name]) if name in result and type(result[name]) is list else 0
        for key, value in body.items():
            if type(value) is not list:
                result[key] = value
                continue
            before = result.get(key)
            is_longer = type(before) is list and type(keep) is dict and type(keep.get(key)) is int
            start = before if is_longer and before is not None else []
            stays = _stay(room, key, len(start), len(value))
            new = [self._element(item, key) if type(item) is dict else item for item in value[:stays]]
            result[key] = start
            start += new
            start += value[stays:]
            intact = 0 if key == name and not is_longer else intact
        return result, intact

    def _prove(
        self, link: dict[str, Any], body: dict[str, Any], chain: list[bytes] | None
    ) -> list[bytes] | None:
        """Fold the new messages into the chain and compare with what the writer wrote."""
        elements = next((body[name] for name in schema.LISTS if name in body), None)
        if type(elements) is not list:
            return []
        if chain is None:
            return None  # already reported: something below is lost
        value = chain[-1] if chain else _START
        try:
            for element in elements[len(chain) :]:
                text = lines.dumps(element).encode("ascii")
                value = hashlib.blake2b(value + text, digest_size=8).digest()
                chain.append(value)
        except (ValueError, RecursionError):
            return None
        digest, count = link.get("chain"), link.get("n")
        if (type(count) is int and count != len(chain)) or (type(digest) is str and digest != value.hex()):
            self._note("chain", f"the rebuilt request of call {_short(link)} is not what was written")
            return None
        return chain

    def _element(self, element: dict[str, Any], key: str) -> Any:
        """Return a list element with its references followed and their small changes made."""
        if not is_reference(element):
            return element
        try:
            return self._references.follow(element, key)
        except (Lost, LookupError, TypeError, ValueError, RecursionError) as why:
            self._note("reference-lost", f"a message refers to something that is not there ({why})")
            return {"$gap": 1}


_Room = dict[str, int | None]
"""How many elements of each list the requests above one keep, None for all; a list not named is not kept."""


def _room(link: dict[str, Any], above: _Room | None) -> _Room:
    """Return what is kept of the request below one, of which in turn so much is kept."""
    room: _Room = {}
    for key, much in kept(link).items():
        if above is None or key in above:
            most = None if above is None else above[key]
            count = max(much, 0) if type(much) is int else 0
            room[key] = most if much is True else count if most is None else min(count, most)
    return room


def _stay(room: _Room | None, key: str, before: int, length: int) -> int:
    """Return how many of the elements after others stay."""
    most = None if room is None else room.get(key, 0)
    return length if most is None else max(0, min(length, most - before))


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
