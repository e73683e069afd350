"""Digests of the parts of a request, each worked out once: a conversation is sent again with every turn.

A part is known again by its bytes as ``marshal`` writes them, which costs a fraction of its JSON and tells 1,
1.0 and true apart; nothing is ever read back from them.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

from .normal import canonical, skeleton

_MOST_BYTES = 64 << 20
"""Of parts that are remembered; then it begins anew."""


class Part(NamedTuple):
    """One message, or one other key of a request."""

    exactly: bytes
    """Digest of it as it is."""
    seen: bytes
    """Digest of its normal form, without ids."""
    ids: tuple[str, ...]


class _Memo:
    def __init__(self) -> None:
        self.known: dict[bytes, Part] = {}
        self.size = 0

    def get(self, value: Any, work_out: Callable[[], Part]) -> Part:
        try:
            key = marshal.dumps(value, 2)
        except ValueError:  # not plain JSON
            return work_out()
        found = self.known.get(key)
        if found is None:
            found = work_out()
            self.size += len(key)
            if self.size > _MOST_BYTES:
                self.known, self.size = {}, len(key)
            self.known[key] = found
        return found


_memo = _Memo()


def element_part(element: Any) -> Part:
    """Return the digests of one element of a conversation."""
    return _memo.get(element, lambda: _worked_out(element))


def key_part(key: str, value: Any) -> Part:
    """Return the digests of one key of a request besides its conversation."""
    whole = {key: value}
    return _memo.get((key, value), lambda: _worked_out(whole, top=True))


def _worked_out(value: Any, *, top: bool = False) -> Part:
    ids: list[str] = []
    seen = canonical(skeleton(value, ids, top=top))
    return Part(_digest(canonical(value)), _digest(seen), tuple(ids))


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
