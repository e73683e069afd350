"""A request's body as it was sent: told in the request's event if it was there before, else with the answer.

A body may be made while it is sent: a file, a generator, a form with uploads. It is read along, never ahead.
"""

from __future__ import annotations

from ...wire.multipart import Parts, Piece, boundary_of
from .. import guard
from .response_body import as_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Sent:
    """What has passed of one body; ``restart`` where it is sent again."""

    _type: str | None = None

    def __init__(self, content_type: str | None) -> None:
        self.restart(content_type)

    def restart(self, content_type: str | None = None) -> None:
        """Forget what has passed: the body is sent from the beginning, by one who may know what it is."""
        self._type = content_type or self._type
        boundary = boundary_of(self._type)
        self._parts = Parts(boundary) if boundary else None
        self._whole = Piece() if self._parts is None else Piece(0)
        self._is_whole = False

    def add(self, data: Any) -> None:
        """Take in the next bytes. Never raises."""
        try:
            data = data if type(data) is bytes else data.encode() if isinstance(data, str) else bytes(data)
            self._whole.add(data)
            if self._parts is not None:
                try:
                    self._parts.add(data)
                except ValueError:
                    self._parts = None
        except Exception as exc:
            guard.swallow("read a body along", exc)

    def all(self) -> None:
        """The last byte has passed."""
        self._is_whole = True

    def described(self) -> dict[str, Any] | None:
        """Return what stands for the body in an event, None if there was none."""
        if not self._whole.size:
            return None
        kind = (self._type or "").partition(";")[0].strip()
        about: dict[str, Any] = {"type": kind} if kind else {}
        if self._parts is not None:
            about["bytes"] = self._whole.size
            about["parts"] = self._parts.described()
        else:
            about.update(self._whole.described("body"))
            found = as_json(self._whole.data())
            if found is not None:
                about["body"] = found
        return about if self._is_whole else {**about, "cut": True}


def described_body(data: bytes, content_type: str | None) -> dict[str, Any] | None:
    """Return what stands for a body that is no JSON and was there before it was sent."""
    sent = Sent(content_type)
    sent.add(data)
    sent.all()
    return sent.described()
