"""Requests as the file holds them: what a later request can build on.

Used by History. A base is a list of our own copies; a pure continuation extends it in place.
"""

from __future__ import annotations

from _operator import ne
from itertools import compress, count

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .copies import Copy


class Element:
    """One message of a conversation that stands in the file."""

    __slots__ = ("copy", "origin", "touched")

    def __init__(self, copy: Copy, origin: tuple[str, int], touched: bool) -> None:
        self.copy = copy
        self.origin = origin
        """The request and position where a reader finds it."""
        self.touched = touched
        """True if what stands in the file differs from what the agent sent: redacted or moved to a blob."""


class Base:
    """A request as the file holds it; a pure continuation extends it in place."""

    __slots__ = ("call", "chains", "copies", "elements", "key", "lane", "rest")

    def __init__(self, key: str, lane: str) -> None:
        self.key = key
        self.lane = lane
        self.call = ""
        self.elements: list[Element] = []
        self.copies: list[Copy] = []
        self.chains = bytearray()
        """Eight bytes after every element."""
        self.rest: dict[str, Copy] = {}

    def chain(self, n: int) -> bytes:
        return bytes(self.chains[8 * n - 8 : 8 * n]) if n else bytes(8)

    def common(self, raw: list[Any]) -> int:
        """Return how many leading elements are equal."""
        try:
            differ = map(ne, raw, self.copies)
            return next(compress(count(), differ), min(len(raw), len(self.copies)))
        except Exception as exc:  # an element whose == raises
            guard.pass_on(exc)
            return 0
