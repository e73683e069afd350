"""What has come of an answer: its bytes with their times, and on disk while it is still coming."""

from __future__ import annotations

from array import array
from time import monotonic

from . import guard
from .import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .spill import Spill
    from .texts import Texts

MAX_HELD = 32 << 20
"""Bytes of one answer kept in memory; of a longer one the rest is not recorded, which is said."""
MAX_PIECES = 100_000
"""Pieces whose times are kept; what comes after them counts as the last one's."""


class Arrived:
    """The pieces of one answer, content encoding taken off."""

    def __init__(self) -> None:
        self.inflate: Callable[[bytes], bytes] | None = None
        """Takes a content encoding off, where the library has not done so."""
        self.decoded = False
        """True if there was one."""
        self.is_sealed = False
        """True if there is one that nobody here can take off: no rule can look inside, so nothing is kept."""
        self.spill: Spill | None = None
        self.missing = 0
        """Bytes that were not kept."""
        self._data = bytearray()
        self._sizes = array("Q")
        self._times = array("d")

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        if self.is_sealed:
            return
        if self.inflate is not None:
            try:
                data = self.inflate(data)
            except Exception as exc:  # it is not in the encoding that its header names
                guard.pass_on(exc)
                self.is_sealed = True
                return
        room = MAX_HELD - len(self._data)
        if len(data) > room:
            self.missing += len(data) - room
            data = data[:room]
            if not data:
                return
        self._data += data
        if len(self._sizes) < MAX_PIECES:
            self._sizes.append(len(data))
            self._times.append(monotonic())
        else:
            self._sizes[-1] += len(data)
        if self.spill is not None:
            self.spill.add(data)

    def forget_spill(self) -> None:
        """The answer is recorded: nothing of it is needed on disk."""
        if self.spill is not None:
            self.spill.remove()

    def close_spill(self) -> None:
        """In a forked child: what is on disk is the parent's, the descriptor ours."""
        if self.spill is not None:
            self.spill.close()

    def tail(self, size: int) -> bytes:
        """Return the last bytes of it."""
        return bytes(self._data[-size:])

    def data(self) -> bytes:
        """Return all that is kept."""
        return bytes(self._data)

    def loss(self, problems: Sequence[str] = ()) -> dict[str, Any]:
        """Return the fields that say what was not kept, beside the problems there are."""
        if not self.missing:
            return {}
        said = f"{self.missing} bytes more had come than are kept of one answer"
        return {"problems": [said, *problems], "lossy": True}

    def ms_until(self, offset: int | None, began: float) -> float | None:
        """Return when the byte at an offset arrived, in milliseconds since the call began."""
        if offset is None:
            return None
        upto = 0
        for size, at in zip(self._sizes, self._times, strict=True):
            upto += size
            if upto >= offset:
                return round((at - began) * 1000, 3)
        return None

    def store(
        self, texts: Texts, data: bytes, body: Any, began: float, *, suspect: bool
    ) -> dict[str, Any] | None:
        """Keep the stream as it came, and ``body`` came of it; returns what stands for it in the line."""
        if not data:
            return None
        with import_lock:
            from .rawstream import store

        pieces = zip(self._sizes, self._times, strict=True)
        chunks = ",".join([f"[{size},{(at - began) * 1000:.3f}]" for size, at in pieces])
        raw = store(texts, data, body if suspect else None, chunks, decoded=self.decoded)
        if raw is not None and self.missing:
            raw["lossy"] = True
        return raw


def as_json(data: bytes | None) -> Any:
    """Return bytes decoded as JSON, None if they are none."""
    if not data or data[:1] not in b'{["tfn-0123456789 \t\r\n':
        return None
    with import_lock:
        import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
