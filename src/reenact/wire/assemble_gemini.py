"""A streamed answer of Gemini put together: each event is an answer with only what is new.

One of the assemblers behind stream.py. Neighbouring texts become one part; function calls come
whole, or on Vertex in pieces addressed by JSON paths.
"""

from __future__ import annotations

from . import gemini
from .pieces import Assembler, fill, index_of, inner
from .values import mapping, mappings, string

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .pieces import Problems

_TEXT_KEYS = frozenset({"text", "thought", "thoughtSignature"})
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_LONGEST = 1000
"""Of a JSON path; a longer one is a trick."""


class Gemini(Assembler):
    """Takes in the fragments of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}
        self._open: dict[int, dict[str, Any]] = {}

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one fragment; True if the model said something in it."""
        if "error" in event:
            self.fail(gemini.error_of(event), event)
            return False
        fill(self._usage, mapping(event.get("usageMetadata")))
        fill(self._body, event, "candidates", "usageMetadata")
        said = [
            self._candidate(piece, number) for number, piece in enumerate(mappings(event.get("candidates")))
        ]
        return any(said)

    def _candidate(self, piece: dict[str, Any], number: int) -> bool:
        index = index_of(piece.get("index"))
        index = number if index is None else index
        candidate = self._candidates.setdefault(index, {})
        fill(candidate, piece, "content")
        content = piece.get("content")
        if not isinstance(content, dict):
            return False  # blocked, or only the reason why it ended
        known = candidate.setdefault("content", {"parts": [], "role": "model"})
        fill(known, content, "parts")
        said = [self._part(index, known["parts"], part) for part in mappings(content.get("parts"))]
        return any(said)

    def _part(self, index: int, parts: list[dict[str, Any]], part: dict[str, Any]) -> bool:
        if isinstance(part.get("functionCall"), dict):
            self._call(index, parts, part)
            return True
        if "text" not in part or not _TEXT_KEYS.issuperset(part):
            parts.append(part)
            return True
        signed = "thoughtSignature" in part
        last = parts[-1] if parts else {}
        # A signature speaks for the text before it, so it ends a part.
        joins = "text" in last and "thoughtSignature" not in last and _TEXT_KEYS.issuperset(last)
        if joins and (_thought(last) == _thought(part) or (signed and not part["text"])):
            if signed:
                last["thoughtSignature"] = part["thoughtSignature"]
            return self.texts.add(last, "text", part["text"])
        if part["text"] or signed:
            parts.append(part)
        return bool(part["text"])

    def _call(self, index: int, parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
        """Take in a function call, or a piece of the one that is open: only the first has the name."""
        call = part["functionCall"]
        pieces = mappings(call.pop("partialArgs", None))
        continues = call.pop("willContinue", None) is True
        known = self._open.pop(index, None)
        if string(call.get("name")) or known is None:
            if not string(call.get("name")) and not call.get("args") and not pieces:
                return  # the end of a call that had ended
            parts.append(part)
            known = part
        else:
            fill(known, part, "functionCall")
            fill(known["functionCall"], call, "args")
            fill(inner(known["functionCall"], "args"), mapping(call.get("args")))
        if pieces or continues:
            self._arguments(inner(known["functionCall"], "args"), pieces)
        if continues:
            self._open[index] = known

    def _arguments(self, args: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            path = _path(piece.get("jsonPath"))
            kind = next((kind for kind in _VALUES if kind in piece), None)
            owner, key = _owner(args, path) if path else (None, None)
            if owner is None:
                self.problems.note(f"argument at a place that cannot be: {str(piece.get('jsonPath'))[:80]!r}")
            elif kind == "stringValue":
                self.texts.add(owner, key, piece[kind])
            elif kind is not None:
                owner[key] = None if kind == "nullValue" else piece[kind]

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        if not self._candidates and not self._body and not self._usage:
            return None
        self.texts.join()
        ended = [candidate.get("finishReason") for candidate in self._candidates.values()]
        blocked = mapping(self._body.get("promptFeedback")).get("blockReason")
        self.complete = bool(blocked) or (bool(ended) and all(ended))
        body = {"candidates": [self._candidates[index] for index in sorted(self._candidates)], **self._body}
        if self._usage:
            body["usageMetadata"] = self._usage
        return body


def _thought(part: dict[str, Any]) -> bool:
    return part.get("thought") is True


def _path(text: object) -> list[Any]:
    """Return the steps of ``$.a.b[0]['c d']``; empty if it is none."""
    rest = string(text) or ""
    if not rest.startswith("$") or len(rest) > _LONGEST:
        return []
    rest = rest[1:]
    steps: list[Any] = []
    while rest:
        if rest[0] == ".":
            end = min((at for at in (rest.find(".", 1), rest.find("[", 1)) if at > 0), default=len(rest))
            steps.append(rest[1:end])
            rest = rest[end:]
        elif rest[:2] in ("['", '["'):
            step, closed, rest = rest[2:].partition(rest[1] + "]")
            if not closed:
                return []
            steps.append(step)
        else:
            number, closed, rest = rest[1:].partition("]")
            if not closed or not number.isdecimal() or len(number) > 9:
                return []
            steps.append(int(number))
    return steps


def _owner(args: dict[str, Any], path: list[Any]) -> tuple[Any, Any]:
    """Return the object or list that holds the end of the path, made as far as it is missing."""
    owner: Any = args
    for step, after in zip(path, [*path[1:], None], strict=True):
        if isinstance(step, str) != isinstance(owner, dict) or not isinstance(owner, dict | list):
            return None, None
        if isinstance(owner, list):
            if not isinstance(step, int) or step > len(owner):
                return None, None  # lists grow one by one; no gap is filled
            if step == len(owner):
                owner.append(None)
        if after is None:
            break
        known = owner[step] if isinstance(owner, list) else owner.get(step)
        if known is None:
            known = owner[step] = {} if isinstance(after, str) else []
        owner = known
    return owner, path[-1]
