"""A streamed answer of Cohere's v2 chat put together: message-start … message-end.

One of the assemblers behind stream.py.
"""

from __future__ import annotations

from .pieces import Assembler, fill, index_of
from .values import mapping, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Problems


class Cohere(Assembler):
    """Takes in the events of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._begun = False
        self._body: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._lists: dict[str, dict[int, dict[str, Any]]] = {"content": {}, "tool_calls": {}, "citations": {}}

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one event; True if the model said something in it."""
        self._begun = True
        kind = string(event.get("type")) or ""
        delta = mapping(event.get("delta"))
        message = mapping(delta.get("message"))
        index = index_of(event.get("index")) or 0
        if kind == "message-start":
            fill(self._body, {"id": event.get("id")})
            fill(self._message, message, *self._lists)
        elif kind == "message-end":
            fill(self._body, delta, "error")
            self.complete = True
            if string(delta.get("error")):
                self.fail((None, delta["error"]), event)
        elif kind == "tool-plan-delta":
            return self.texts.add(self._message, "tool_plan", message.get("tool_plan"))
        elif kind in ("content-start", "tool-call-start", "citation-start"):
            key = {"content-start": "content", "tool-call-start": "tool_calls"}.get(kind, "citations")
            self._lists[key][index] = mapping(message.get(key))
            return key == "tool_calls"
        elif kind == "content-delta":
            piece = mapping(message.get("content"))
            block = self._lists["content"].setdefault(index, {"type": "text"})
            said = [self.texts.add(block, key, piece.get(key)) for key in ("text", "thinking")]
            return any(said)
        elif kind == "tool-call-delta":
            piece = mapping(mapping(message.get("tool_calls")).get("function"))
            call = self._lists["tool_calls"].setdefault(index, {"type": "function"})
            function = call["function"] = mapping(call.get("function"))
            return self.texts.add(function, "arguments", piece.get("arguments"))
        return False

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        if not self._begun:
            return None
        self.texts.join()
        for key, found in self._lists.items():
            if found:
                self._message[key] = [found[index] for index in sorted(found)]
        return {**self._body, "message": self._message}
