"""The contents behind the digests, fetched only where two runs differ."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

from .. import schema
from ..recording.calls import MODEL
from ..recording.kept_conversations import sent_messages
from ..tracefile.events.event import base_kind
from ..tracefile.events.event_text import error_text
from ..wire import reading
from ..wire.json_differences import changed_part
from ..wire.json_values import as_text, call_text, mapping, string
from ..wire.messages import message_parts, readable
from ..wire.neutral import ToolResult, ToolUse
from .digests import Comparable, Digest, Piece, pieces_of
from .masks import Masks
from .steps import END, INPUT, StepFacts

_MOST_TEXT = 20_000
"""Characters of a text that are looked at to find what it repeats."""

_WORD = re.compile(r"\w+")
_MOST_WORDS = 120
_KEPT = 4_000
_LEAST = 3, 12
"""Characters of a changed text before it is looked for in an earlier one: replaced; added or removed."""


class Message(NamedTuple):
    """A piece of a prompt with its content."""

    piece: Piece
    place: int
    """Of its message in the request."""
    text: str


class Texts:
    """Contents of the steps of two runs; the latest are remembered."""

    def __init__(self, masks: Masks) -> None:
        self.masks = masks
        self._values = Comparable(masks)
        self._words: dict[int, frozenset[str]] = {}
        self._requests: dict[int, list[Message]] = {}
        self._outputs: dict[int, str] = {}
        self._wholes: dict[int, str] = {}

    # how alike two steps are ------------------------------------------------------------------------

    def similarity(self, left: StepFacts, right: StepFacts) -> float:
        """Return how alike two steps are, 0 to 1; -1 if they never correspond."""
        if left.kind != right.kind or (left.name != right.name and left.kind != MODEL):
            return -1.0
        if left.kind in (INPUT, END) or left.key == right.key:
            return 1.0
        if left.kind == MODEL:
            if left.request is None or right.request is None:
                return 0.4 + 0.4 * self._overlap(left, right)
            same = [piece[:2] for piece in left.request.added] == [piece[:2] for piece in right.request.added]
            return 0.25 + 0.3 * same + 0.4 * self._overlap(left, right)
        if left.args == right.args:
            return 0.8 + 0.2 * (left.output == right.output)
        return 0.3 + 0.2 * (left.output == right.output) + 0.4 * self._overlap(left, right)

    def _overlap(self, left: StepFacts, right: StepFacts) -> float:
        one, other = self._words_of(left), self._words_of(right)
        most = max(len(one), len(other))
        return len(one & other) / most if most else 1.0

    def _words_of(self, step: StepFacts) -> frozenset[str]:
        words = self._words.get(id(step))
        if words is None:
            text = f"{self.args(step)} {self.output(step)}"[:_MOST_TEXT]
            words = self._words[id(step)] = frozenset(_WORD.findall(text)[:_MOST_WORDS])
        return words

    # the texts of a step ----------------------------------------------------------------------------

    def args(self, step: StepFacts) -> str:
        """Return what a tool was called with, or what an event holds, as text."""
        return "" if step.kind == MODEL else as_text(args_of(step))

    def output(self, step: StepFacts) -> str:
        """Return what came of a step as text: a response with its tool uses, a result, an error."""
        text = self._outputs.get(id(step))
        if text is None:
            if len(self._outputs) > _KEPT:
                self._outputs.clear()
            text = self._outputs[id(step)] = _output(step)
        return text

    def searched(self, one: str, other: str) -> tuple[str, str] | None:
        """Return what two texts differ in, as it is searched for in earlier steps; None if it is not."""
        if max(len(one), len(other)) > _MOST_TEXT:
            return None
        before, after = changed_part(one, other)
        if not before and not after:
            return None
        least = _LEAST[not (before and after)]
        parts = before.strip(), after.strip()
        is_long = all(len(part) >= least for part, text in zip(parts, (before, after), strict=True) if text)
        return parts if is_long else None

    def hold(self, left: StepFacts, right: StepFacts, parts: tuple[str, str]) -> bool:
        """True if two texts stand in two steps."""
        return parts[0] in self._whole(left) and parts[1] in self._whole(right)

    def _whole(self, step: StepFacts) -> str:
        text = self._wholes.get(id(step))
        if text is None:
            if len(self._wholes) > _KEPT // 4:
                del self._wholes[next(iter(self._wholes))]
            text = self._wholes[id(step)] = f"{self.args(step)}\n{self.output(step)}"
        return text

    # prompts ----------------------------------------------------------------------------------------

    def messages(self, step: StepFacts) -> list[Message]:
        """Return all pieces of a request with their contents."""
        found = self._requests.get(id(step))
        if found is None:
            if len(self._requests) > 16:
                self._requests.clear()
            found = self._requests[id(step)] = []
            self._values.line(None)
            for place, message in enumerate(sent_messages(request_body(step))):
                pieces = pieces_of(message, self._values)
                texts = _texts(message, len(pieces))
                found += [Message(piece, place, text) for piece, text in zip(pieces, texts, strict=True)]
            self._values.taken()
        return found

    def really_only(
        self, left: StepFacts, right: StepFacts, only: tuple[list[Piece], list[Piece]]
    ) -> tuple[list[Piece], list[Piece]]:
        """Return those of the pieces that the other request, looked at as a whole, does not hold."""
        whole = self._digests(left), self._digests(right)
        return (
            [piece for piece in only[0] if piece[:2] not in whole[1] and piece[:2] in whole[0]],
            [piece for piece in only[1] if piece[:2] not in whole[0] and piece[:2] in whole[1]],
        )

    def really_gone(
        self, left: StepFacts, right: StepFacts, gone: tuple[list[Piece], list[Piece]]
    ) -> tuple[list[Piece], list[Piece]]:
        """Return those of the dropped pieces that one whole request lacks and the other holds."""
        if not any(gone):
            return gone
        whole = self._digests(left), self._digests(right)
        return (
            [piece for piece in gone[0] if piece[:2] in whole[1] and piece[:2] not in whole[0]],
            [piece for piece in gone[1] if piece[:2] in whole[0] and piece[:2] not in whole[1]],
        )

    def _digests(self, step: StepFacts) -> Counter[tuple[str, Digest]]:
        return Counter(message.piece[:2] for message in self.messages(step))

    def of_pieces(self, left: StepFacts, right: StepFacts, pieces: list[list[Piece]]) -> tuple[str, str]:
        """Return the contents of some pieces of two requests."""
        texts = []
        for step, wanted in ((left, pieces[0]), (right, pieces[1])):
            digests = {piece.digest for piece in wanted}
            texts.append("\n".join(each.text for each in self.messages(step) if each.piece.digest in digests))
        return texts[0], texts[1]


def request_body(step: StepFacts) -> Any:
    """Return the whole request of a model call; the fields of one that was recorded in one line."""
    call = step.call
    event = call.begin if call is not None else None
    if event is None:
        return None
    if base_kind(event) == schema.MODEL_REQUEST:
        return event.body
    return event.payload


def response_parts(step: StepFacts) -> tuple[str, list[ToolUse]]:
    """Return the text of a response without its tool uses, and these."""
    end = step.call.end if step.call is not None else None
    if end is None:
        return "", []
    body = end.body
    if type(body) is not dict:
        return end.content or "", []
    provider = string(end.provider)
    uses = reading.tool_uses(body, provider)
    text = reading.text(body, provider)
    for use in uses:
        text = text.replace(call_text(use.name, use.args), "")
    return text.strip(), uses


def _output(step: StepFacts) -> str:
    if step.kind == MODEL:
        end = step.call.end if step.call is not None else None
        if end is None:
            return ""
        return error_text(end.error) if end.error is not None else end.content or ""
    if step.call is None:
        error = step.event.error if step.event is not None else None
        return "" if error is None else error_text(error)
    if step.call.error is not None:
        return error_text(step.call.error)
    return as_text(step.call.result) if step.call.end is not None else ""


def args_of(step: StepFacts) -> Any:
    """Return what a tool was called with, what an event holds, what a run was started with."""
    if step.call is not None and step.kind == "tool":
        return step.call.args
    if step.event is None:
        return None
    if step.kind == INPUT:
        return step.event.input
    hidden = {*schema.ENVELOPE, "call", "lane", "parent", "tot", "v", "frames"}
    return {key: value for key, value in step.event.payload.items() if key not in hidden}


def _texts(message: Any, number: int) -> list[str]:
    """Return the contents of the pieces of one message; its own text first, then the results of tools."""
    parts = list(message_parts(message))
    results = [readable(part)[1] for part in parts if isinstance(part, ToolResult)]
    own = "\n".join(
        text for part in parts if not isinstance(part, ToolResult) for text in [readable(part)[1]]
    )
    found = [own, *results] if number > len(results) else results
    return [*found, *[""] * (number - len(found))][:number] if mapping(message) or number else found
