"""``$same`` and ``$answer`` -> the message they stand for, with the small changes they carry.

Iterative and bounded: chains of references, circles and bombs of a hostile file end in ``Lost``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from .values import change, point

Load = Callable[[str], "tuple[dict[str, Any], int] | None"]
"""call id -> the fields of its line and the line's size"""

MAX_BYTES = 256 << 20
"""Of lines read for the references of one request, and of what they lead to."""

MAX_LINKS = 200_000
"""Requests from the full one to the one asked for."""

_EACH = 32 << 20
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

    __slots__ = ("_known", "_known_bytes", "_left", "_line", "_request", "_response")

    def __init__(self, request: Load, response: Load) -> None:
        self._request = request
        self._response = response
        self._left = MAX_BYTES
        self._line = ""
        self._known: dict[_Target, tuple[Any, int]] = {}
        """What a target stands for, and how many bytes that is."""
        self._known_bytes = 0

    def begin(self) -> None:
        """Another request is rebuilt."""
        self._left = min(MAX_BYTES, self._left + _EACH)

    def follow(self, element: Any, key: str) -> Any:
        """Return what an element of the list ``key`` stands for; Lost or LookupError if nothing."""
        way: list[tuple[_Target | None, dict[str, Any]]] = []
        target: _Target | None = None
        size = 0
        while type(element) is dict and ("$same" in element or "$answer" in element):
            self._spend(_HOP)
            if len(way) == _MAX_HOPS:
                raise Lost("it goes in circles")
            way.append((target, element))
            if "$answer" in element:
                element, target = self._answer(element), None
                break
            target = self._target(element["$same"], key)
            if target in self._known:
                element, size = self._known[target]
                break
            element = self._written(target)
        size = size or len(json.dumps(element))
        self._spend(size)
        self._remember(target, element, size)
        for target, reference in reversed(way):
            element = self._edited(element, reference)
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
        call = reference["$answer"]
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
        for _ in range(MAX_LINKS):
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
            return link["body"][key][i - (much if type(much) is int and much > 0 else 0)]
        raise Lost("it goes in circles")

    def _edited(self, element: Any, reference: dict[str, Any]) -> Any:
        if not reference.get("drop") and not reference.get("set"):
            return element
        text = json.dumps(element)
        self._spend(len(text))
        element = json.loads(text)
        change(element, reference)
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
