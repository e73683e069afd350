"""A request's body as it was sent: in the request's event if it was known before, else with the response.

A body may be made while it is sent: a file, a generator, a form with uploads. It is read as it is
sent, never ahead.
"""

from __future__ import annotations

from typing import Any

from ...wire.multipart import Parts, Piece, boundary_of
from .. import guard
from .response_body import as_json


class Sent:
    """The part of one body that was sent so far; ``restart`` if it is sent again."""

    _type: str | None = None

    def __init__(self, content_type: str | None) -> None:
        self.restart(content_type)

    def restart(self, content_type: str | None = None) -> None:
        """Forget what was sent: the body is sent again from the beginning, maybe with its type known now."""
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
            guard.swallow("record a request body", exc)

    def all(self) -> None:
        """Note that the last byte was sent."""
        self._is_whole = True

    def described(self) -> dict[str, Any] | None:
        """Return the fields that stand for the body in an event, None if it was empty."""
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
    """Return the fields that stand for a body that is not JSON and was known before it was sent."""
    sent = Sent(content_type)
    sent.add(data)
    sent.all()
    return sent.described()
