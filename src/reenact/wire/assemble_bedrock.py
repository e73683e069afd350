"""A streamed answer of Bedrock Converse put together: messageStart … messageStop, metadata.

One of the assemblers behind stream.py; events are ``{kind: payload}``.
"""

from __future__ import annotations

from .pieces import Assembler, fill, grow, index_of, inner
from .values import decoded, mapping, mappings, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Problems


class Bedrock(Assembler):
    """Takes in the events of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._role = "assistant"
        self._blocks: dict[int, dict[str, Any]] = {}
        self._redacted: dict[int, list[str]] = {}
        self._last = 0
        self._begun = False

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one event; True if the model said something in it."""
        said = False
        for kind, payload in event.items():
            payload = mapping(payload)
            self._begun = True
            if kind == "contentBlockDelta":
                said = self._delta(payload) or said
            elif kind == "contentBlockStart":
                said = self._start(payload) or said
            elif kind == "messageStart":
                self._role = string(payload.get("role")) or self._role
            elif kind == "messageStop":
                fill(self._body, payload)
                self.complete = True
            elif kind == "metadata":
                fill(self._body, payload)
        return said

    def _block(self, payload: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        index = index_of(payload.get("contentBlockIndex"))
        self._last = self._last if index is None else index
        return self._last, self._blocks.setdefault(self._last, {})

    def _start(self, payload: dict[str, Any]) -> bool:
        _, block = self._block(payload)
        fill(block, mapping(payload.get("start")))
        return bool(block)

    def _delta(self, payload: dict[str, Any]) -> bool:
        index, block = self._block(payload)
        said = False
        for kind, piece in mapping(payload.get("delta")).items():
            if kind == "text":
                said = self.texts.add(block, "text", piece) or said
            elif kind == "toolUse":
                use = inner(block, "toolUse")
                said = self.texts.add(use, "input", mapping(piece).get("input")) or said
            elif kind == "reasoningContent":
                said = self._reasoning(index, inner(block, kind), mapping(piece)) or said
            elif kind == "citation":
                grow(block, "citations", [piece])
            elif kind == "toolResult":
                grow(inner(block, "toolResult"), "content", mappings(piece))
            else:
                fill(inner(block, kind), mapping(piece))
                said = True
        return said

    def _reasoning(self, index: int, block: dict[str, Any], piece: dict[str, Any]) -> bool:
        said = False
        for key in ("text", "signature"):
            if isinstance(piece.get(key), str):
                said = self.texts.add(inner(block, "reasoningText"), key, piece[key]) or said
        if isinstance(piece.get("redactedContent"), str):
            self._redacted.setdefault(index, []).append(piece["redactedContent"])
            said = True
        return said

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        if not self._begun:
            return None
        self.texts.join()
        for index, pieces in self._redacted.items():
            inner(self._blocks[index], "reasoningContent")["redactedContent"] = _base64(pieces)
        content = [_finished(self._blocks[index]) for index in sorted(self._blocks)]
        return {"output": {"message": {"role": self._role, "content": content}}, **self._body}


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block as it stands in an answer that was not streamed."""
    use = block.get("toolUse")
    if isinstance(use, dict):
        use["input"] = decoded(use.get("input", ""))
    if "citations" in block:
        text = [{"text": block["text"]}] if "text" in block else []
        return {"citationsContent": {"content": text, "citations": block["citations"]}}
    return block


def _base64(pieces: list[str]) -> str:
    """Join pieces of bytes that are base64 each."""
    if len(pieces) == 1:
        return pieces[0]
    from binascii import a2b_base64, b2a_base64

    try:
        return b2a_base64(b"".join(map(a2b_base64, pieces)), newline=False).decode("ascii")
    except ValueError:
        return "".join(pieces)
