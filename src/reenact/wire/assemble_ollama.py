"""A streamed answer of Ollama's own API put together: one JSON object a line, the last with ``done``.

One of the assemblers behind stream.py; /api/chat has a message, /api/generate a bare response.
"""

from __future__ import annotations

from . import ollama
from .pieces import Assembler, fill
from .values import mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Problems

_TEXTS = ("content", "thinking", "response")


class Ollama(Assembler):
    """Takes in the lines of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._message: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one line; True if the model said something in it."""
        if "error" in event:
            self.fail(ollama.error_of(event), event)
            return False
        said = self._merge(self._message, mapping(event.get("message")))
        event.pop("message", None)
        said = self._merge(self._body, event) or said
        self.complete = event.get("done") is True or self.complete
        return said

    def _merge(self, known: dict[str, Any], new: dict[str, Any]) -> bool:
        said = False
        for key, value in new.items():
            if key in _TEXTS:
                said = self.texts.add(known, key, value) or said
            elif isinstance(value, list) and isinstance(known.get(key), list):
                known[key] += value
                said = said or key == "tool_calls"
            else:
                fill(known, {key: value})
                said = said or key == "tool_calls"
        return said

    def body(self) -> dict[str, Any] | None:
        """Return the answer; ``done`` is false if it broke off."""
        if not self._body and not self._message:
            return None
        self.texts.join()
        return {**self._body, "message": self._message} if self._message else self._body
