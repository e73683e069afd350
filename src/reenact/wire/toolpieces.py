"""Tool calls of one streamed chat message, put together from their pieces.

Used by assemble_openai_chat.py. By the book a piece names its call by ``index`` and the first one
has id and name. Servers leave the index out, send 0 for every call, leave out ids, repeat the
name, or send each call whole; what tells one call from the next is said in ``_same``.
"""

from __future__ import annotations

from .pieces import Texts, fill, index_of
from .values import as_text, mapping, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BODIES = (("function", "arguments"), ("custom", "input"))


class ToolCalls:
    """The calls of one message, in a list that is filled in place."""

    def __init__(self, calls: list[dict[str, Any]], texts: Texts) -> None:
        self._calls = calls
        self._texts = texts
        self._by_index: dict[int, dict[str, Any]] = {}
        self._by_id: dict[str, dict[str, Any]] = {}

    def add(self, pieces: list[dict[str, Any]]) -> None:
        """Take in the pieces of one delta."""
        for piece in pieces:
            index, id = index_of(piece.get("index")), string(piece.get("id"))
            call = self._known(index, id)
            if call is None or not self._same(call, piece, id):
                call = {"id": None, "type": "function"}
                self._calls.append(call)
            if index is not None:
                self._by_index[index] = call
            if id is not None:
                self._by_id[id] = call
            fill(call, piece, "index", "function", "custom")
            for key, text in _BODIES:
                if isinstance(piece.get(key), dict):
                    self._take(call.setdefault(key, {"name": "", text: ""}), piece[key], text)

    def _known(self, index: int | None, id: str | None) -> dict[str, Any] | None:
        if index is not None:
            return self._by_index.get(index)
        if id is not None:
            return self._by_id.get(id)
        return self._calls[-1] if self._calls else None

    def _same(self, call: dict[str, Any], piece: dict[str, Any], id: str | None) -> bool:
        """True if the piece continues the call."""
        if id is not None:
            return call.get("id") in (None, id)
        for key, text in _BODIES:
            new, known = mapping(piece.get(key)), mapping(call.get(key))
            name = string(new.get("name"))
            if name is None or not known.get("name"):
                continue
            # No id, but a name again: another name, or whole arguments after whole ones, is the next call.
            whole = self._texts.last(known, text).rstrip().endswith("}")
            opening = as_text(new.get(text) or "").lstrip()[:1] in ("", "{")
            if name != known["name"] or (whole and opening):
                return False
        return True

    def _take(self, known: dict[str, Any], piece: dict[str, Any], text: str) -> None:
        value = piece.get(text)
        if value is not None:
            self._texts.add(known, text, as_text(value))
        fill(known, piece, text)
