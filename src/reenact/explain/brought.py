"""What an event brought into a run: the texts that are new in it, each with what it is and where it stands.

History that a request sends again is not new, and so not brought by it. Values that were withheld, cut or
redacted are marked: what they held cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .. import lines, schema
from ..tracefile.events.event import Event
from ..tracefile.events.rebuilt_requests import is_reference, kept_messages, messages_of
from ..wire import reading
from ..wire.json_values import as_json, as_text, canonical, mapping, mappings, string
from ..wire.messages import message_parts, part_of, role_of
from ..wire.neutral import Other, Reasoning, Text, ToolResult, ToolUse
from ..wire.reading import SYSTEM, TOOLS
from .text_match import Match, Sought

ARGUMENTS, RESULT, TOOL_ERROR = "argument", "tool result", "tool error"
RESPONSE, REASONING, ERROR = "response", "reasoning", "error"
SYSTEM_PROMPT, DECLARATION, RUN_INPUT, EVENT = "system prompt", "tool declaration", "run input", "event"

_GAPS = ("$hash", "$none", "$cut", "$blob")
WITHHELD, REDACTED = "withheld", "redacted"
_PLACEHOLDER = "<redacted:"
_DEEPEST = 40

_SKIPPED = frozenset((*schema.RESERVED, "duration_ms", "ttft_ms", "pid", "url", "headers", "request_id"))
"""Fields of other events in which nobody looks for words."""


class Piece(NamedTuple):
    """A text or value that is new in an event."""

    what: str
    path: str
    """Where it stands in the event, as ``p`` of the debugger takes it."""
    value: Any
    tool_id: str | None = None
    """Of the use that a tool result answers."""

    @property
    def text(self) -> str:
        return as_text(self.value)

    @property
    def gap(self) -> str:
        """``withheld`` if part of it is missing, ``redacted`` if a secret was replaced in it; else empty."""
        return WITHHELD if has_gap(self.value) else REDACTED if _PLACEHOLDER in self.text else ""

    def exact(self, sought: Sought, *, within_words: bool = False) -> Match | None:
        """Find a text as it stands, in the text or in a value of an object."""
        found = sought.exact(self.text, within_words=within_words)
        if found is None and not isinstance(self.value, str):
            whole = "\n".join(text for _, text in leaves(self.value))
            found = sought.exact(whole, within_words=within_words)
            found = None if found is None else Match(found.how, found.confidence)
        return found


def brought(event: Event, seen: set[int] | None = None) -> list[Piece]:
    """Return the texts that are new in an event.

    A request may have its whole conversation in its line. Messages that are in ``seen``, as hashes, are not
    new in it; its own are added to them.
    """
    kind = event.event_type
    if kind == schema.MODEL_REQUEST:
        return [*_request(event, seen)]
    if kind == schema.MODEL_RESPONSE:
        return [*_response(event)]
    if kind == schema.TOOL_CALLED:
        return [Piece(ARGUMENTS, "args", event.args)]
    if kind == schema.TOOL_RESULT:
        return [*_result(event)]
    return [*_other(event)]


def message_pieces(message: Any, path: str) -> Iterator[Piece]:
    """Yield the pieces of one message of a request."""
    role = role_of(message)
    for part in message_parts(message):
        if isinstance(part, ToolResult):
            yield Piece(TOOL_ERROR if part.failed else RESULT, path, _shown(part.value), part.id)
        elif isinstance(part, ToolUse):
            yield Piece(ARGUMENTS, path, part.args)
        elif isinstance(part, Reasoning):
            yield Piece(REASONING, path, part.text)
        elif isinstance(part, Text):
            yield Piece(SYSTEM_PROMPT if role == "system" else f"{role} message", path, part.text)
    for raw in _other_parts(message):
        yield Piece(f"{role} message", path, raw)


def _other_parts(message: Any) -> list[dict[str, Any]]:
    """Return the parts of a message that only one provider has: documents, results of its own search."""
    item = mapping(message)
    content = item.get("parts") if isinstance(item.get("parts"), list) else item.get("content")
    return [raw for raw in mappings(content) if isinstance(part_of(raw), Other)]


def _shown(value: Any) -> Any:
    """Return a tool's result as the model got it: the words of its parts, else the value."""
    parts = value if isinstance(value, list) else []
    if parts and all(isinstance(part_of(each), Text) for each in mappings(parts)):
        return reading.joined_text([{"content": value}])
    return value


def _request(event: Event, seen: set[int] | None) -> Iterator[Piece]:
    """Yield what a request adds to the ones before it, as far as its line shows that."""
    body = mapping(event.whole_fields.get("body"))
    first = kept_messages(event.whole_fields)
    for number, written in enumerate(messages_of(body), first):
        path = f"messages[{number}]"
        if is_reference(written):
            changed = mapping(mapping(written).get("set"))
            if changed:
                yield Piece("changed message", path, event.restore_value([*changed.values()]))
        elif seen is None or _is_new(written, seen):
            yield from message_pieces(event.restore_value(written), path)
    for key, value in body.items():
        if key in SYSTEM and value:
            yield Piece(SYSTEM_PROMPT, key, reading.system_text(event.restore_value(value)))
        elif key in TOOLS and value and (seen is None or _is_new(value, seen)):
            yield Piece(DECLARATION, key, event.restore_value(value))
        elif key in ("input", "prompt") and isinstance(value, str):
            yield Piece("user message", f"body.{key}", value)
    if not body and (content := event.content):
        yield Piece("user message", "content", content)


def _is_new(message: Any, seen: set[int]) -> bool:
    key = hash(canonical(message))
    is_new = key not in seen
    seen.add(key)
    return is_new


def _response(event: Event) -> Iterator[Piece]:
    body = event.body
    provider = string(event.provider)
    found = reading.answers(body, provider)
    parts = [part for _, message in found for part in message_parts(message)]
    texts = [part.text for part in parts if isinstance(part, Text)]
    if texts or not parts:
        text = "".join(texts) if texts else event.content
        if text:
            yield Piece(RESPONSE, "content", text)
    for part in parts:
        if isinstance(part, ToolUse):
            yield Piece(ARGUMENTS, "content", part.args, part.id)
        elif isinstance(part, Reasoning) and part.text:
            yield Piece(REASONING, "body", part.text)
        elif isinstance(part, ToolResult):  # of a tool that the provider runs itself
            yield Piece(RESULT, "body", _shown(part.value), part.id)
    for _, message in found:
        for raw in _other_parts(message):  # tools that the provider runs itself, and what they found
            yield Piece(RESULT if "result" in str(raw.get("type")) else RESPONSE, "body", raw)
    if (error := event.error) is not None:
        yield Piece(ERROR, "error", str(error))


def _result(event: Event) -> Iterator[Piece]:
    if event.kind == schema.TOOL_CALL and event.args is not None:  # call and result in one line
        yield Piece(ARGUMENTS, "args", event.args)
    if (error := event.error) is not None:
        yield Piece(TOOL_ERROR, "error", str(error), string(event.tool_id))
    elif (result := event.content if event.result is None else event.result) is not None:
        yield Piece(RESULT, "result", result, string(event.tool_id))


def _other(event: Event) -> Iterator[Piece]:
    if event.is_bookkeeping:
        if (value := event.input) is not None:
            yield Piece(RUN_INPUT, "input", value)
        if event.kind == schema.RUN_END and (error := event.error) is not None:
            yield Piece(ERROR, "error", str(error))
        return
    if (error := event.error) is not None:
        yield Piece(ERROR, "error", str(error))
    for key, value in event.whole_fields.items():
        if key not in _SKIPPED and key not in ("error", "err") and value is not None:
            yield Piece(EVENT, key, event.restore_value(value))


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts and numbers in a value, each with its path.

    >>> list(leaves({"city": "Rome", "days": [2, None]}))
    [('city', 'Rome'), ('days[0]', '2')]
    """
    waiting = [(path, value, 0)]
    while waiting:
        path, value, depth = waiting.pop()
        if isinstance(value, str):
            if value.strip():
                yield path, value
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield path, as_json(value)
        elif isinstance(value, dict) and depth < _DEEPEST:
            pairs = [(f"{path}.{key}" if path else str(key), item, depth + 1) for key, item in value.items()]
            waiting.extend(reversed(pairs))
        elif isinstance(value, list) and depth < _DEEPEST:
            items = [(f"{path}[{number}]", item, depth + 1) for number, item in enumerate(value)]
            waiting.extend(reversed(items))


def has_gap(value: Any, depth: int = 0) -> bool:
    """True if part of a value is not there: withheld, cut, or a long text that is missing."""
    if isinstance(value, dict):
        if any(lines.is_mark(key) and key in _GAPS for key in value if isinstance(key, str)):
            return True
        return depth < _DEEPEST and any(has_gap(item, depth + 1) for item in value.values())
    return isinstance(value, list) and depth < _DEEPEST and any(has_gap(item, depth + 1) for item in value)
