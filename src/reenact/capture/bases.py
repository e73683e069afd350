"""Requests as the file holds them: what a later request can build on.

Used by History. A base is a list of our own copies; a pure continuation extends it in place.
"""

from __future__ import annotations

from _operator import ne
from itertools import compress, count

from .. import schema
from ..lines import is_plain
from . import guard
from .copies import plain_of, small_change
from .import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .copies import Copy


FEW = 2
"""Elements at a list's end that a moved cache marker changes; up to here a list counts as continued."""


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


def goes_on(base: Base | None, kept: int, raw: list[Any]) -> str | None:
    """Return the lane of the conversation that a request goes on with, None for a new one."""
    if (
        base is None
        or raw is None
        or not kept
        or len(raw) < len(base.copies)
        or kept + FEW < len(base.copies)
    ):
        return None
    for copy, element in zip(base.copies[kept:], raw[kept:], strict=False):
        if not is_plain(element) or not _says_the_same(copy, element):
            return None  # only the beginning is the same, a system prompt for instance
    return base.lane


def _says_the_same(copy: Copy, element: Any) -> bool:
    """True if only a marker was moved: another text in the same place is another conversation."""
    with import_lock:
        from ..wire.reading import text

    return small_change(copy, element) is not None and text(plain_of(copy)) == text(element)


def copy_equal(raw: Any, copy: Copy) -> bool:
    try:
        return bool(raw == copy)
    except Exception as exc:
        guard.pass_on(exc)
        return False


def conversation_key(body: Any) -> str | None:
    """Return which key of a body holds the conversation as a list."""
    if type(body) is dict:
        for name in schema.LISTS:
            if type(body.get(name)) is list:
                return name
    return None
