"""An answer that came whole, though it was asked for as a stream: some servers know no streams.

One of the assemblers behind stream.py.
"""

from __future__ import annotations

from . import shapes
from .pieces import Assembler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Whole(Assembler):
    """Takes in the one event there is; the last one, should there be more."""

    _body: dict[str, Any] | None = None

    def add(self, event: dict[str, Any]) -> bool:
        """Take in the answer."""
        self._body = event
        self.complete = True
        self.fail(shapes.error_of(event), event)
        return bool(shapes.answers(event))

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        return self._body
