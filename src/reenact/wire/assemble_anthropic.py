"""A streamed answer of Anthropic Messages put together: message_start … message_stop.

One of the assemblers behind stream.py. A second message_start begins anew: gateways send it twice,
or splice a second answer onto a first one that broke off.
"""

from __future__ import annotations

from . import anthropic
from .pieces import Assembler, Texts, fill, grow, index_of
from .values import decoded, mapping, mappings, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Problems

_PIECES = {"text_delta": "text", "thinking_delta": "thinking"}
_IMPLIED: dict[str, dict[str, Any]] = {
    "text_delta": {"type": "text", "text": ""},
    "thinking_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "signature_delta": {"type": "thinking", "thinking": "", "signature": ""},
    "citations_delta": {"type": "text", "text": ""},
    "input_json_delta": {"type": "tool_use", "id": None, "name": "", "input": {}},
}
"""The block a delta belongs to, if its own beginning never came."""
_QUIET = ("text", "thinking", "fallback")
"""Blocks whose beginning says nothing yet; that of a tool use names the tool."""


class Anthropic(Assembler):
    """Takes in the events of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._message: dict[str, Any] | None = None
        self._begin({})

    def _begin(self, message: dict[str, Any]) -> None:
        self._content = mappings(message.get("content"))
        self._at = dict(enumerate(self._content))
        self._inputs: dict[int, dict[str, str]] = {}
        self.texts = Texts()

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one event; True if the model said something in it."""
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event)
        if kind == "content_block_start":
            return self._block(event)
        if kind == "message_start":
            return self._start(mapping(event.get("message")))
        if kind == "message_delta":
            self._message_delta(event)
        elif kind == "message_stop":
            self.complete = True
        elif kind == "error" or "error" in event:
            self.fail(anthropic.error_of(event), event)
        return False

    def _start(self, message: dict[str, Any]) -> bool:
        if self._content:
            self.aborted.append(self.body() or {})
        self.complete = False
        self._message = message
        self._begin(message)
        return bool(self._content)

    def _block(self, event: dict[str, Any]) -> bool:
        block = mapping(event.get("content_block"))
        self._place(event, block)
        if block.get("type") == "fallback" and self._message is not None:
            served = string(mapping(block.get("to")).get("model"))
            self._message["model"] = served or self._message.get("model")
        return block.get("type") not in _QUIET or bool(block.get("text") or block.get("thinking"))

    def _place(self, event: dict[str, Any], block: dict[str, Any]) -> None:
        index = index_of(event.get("index"))
        self._at[len(self._content) if index is None else index] = block
        self._content.append(block)

    def _delta(self, event: dict[str, Any]) -> bool:
        delta, at = event.get("delta"), event.get("index")
        if type(delta) is dict and type(at) is int and delta.get("type") == "text_delta" and at in self._at:
            return self._says("text", self._at[at], delta.get("text"))  # nearly all are such
        delta = mapping(delta)
        kind = string(delta.get("type")) or ""
        index = index_of(event.get("index"))
        block = self._at.get(len(self._content) - 1 if index is None else index)
        if block is None:
            self.problems.note(f"{kind or 'a delta'} for block {index}, which never began")
            block = dict(_IMPLIED.get(kind, {"type": "text", "text": ""}))
            self._place(event, block)
        if kind in _PIECES:
            return self._says(_PIECES[kind], block, delta.get(_PIECES[kind]))
        if kind == "input_json_delta":
            pieces = self._inputs.setdefault(id(block), {})
            return self.texts.add(pieces, "json", delta.get("partial_json"))
        if kind == "citations_delta":
            grow(block, "citations", [delta.get("citation")])
        else:  # a signature, a compaction, and what is still to be invented, come whole
            fill(block, delta, "type")
        return True

    def _says(self, name: str, block: dict[str, Any], piece: object) -> bool:
        if not self.texts.add(block, name, piece):
            return False
        self.only_said = name, self.texts.of(block, name)
        return True

    def _message_delta(self, event: dict[str, Any]) -> None:
        """Its usage is cumulative, so what it has replaces what message_start had."""
        if self._message is None:
            self._message = {}
        fill(self._message, mapping(event.get("delta")))
        fill(self._message, event, "type", "delta", "usage")
        usage = mapping(self._message.get("usage"))
        fill(usage, mapping(event.get("usage")))
        self._message["usage"] = usage

    def body(self) -> dict[str, Any] | None:
        """Return the message; tool input that breaks off stays the text it is."""
        if self._message is None and not self._content:
            return None
        self.texts.join()
        for block in self._content:
            pieces = self._inputs.get(id(block), {}).get("json")
            if pieces:
                block["input"] = decoded(pieces)
        message = {"type": "message", "role": "assistant", **(self._message or {})}
        return {**message, "content": self._content}
