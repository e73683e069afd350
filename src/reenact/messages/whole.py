"""Recorded values, requests and responses made whole, so that they can be sent again; names what is missing.

Stricter than ``Event.body``, which shows a stand-in for what is missing: a provider would take that for
content.
"""

from __future__ import annotations

import binascii
from typing import Any, NamedTuple

from .. import lines, schema
from ..recording.calls import Call
from ..tracefile.events.event import Event
from ..tracefile.events.stored_values import fresh
from ..wire import reading
from ..wire.json_values import mapping
from ..wire.providers import named, openai_responses

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_MAX_DEPTH = 200
_REASONS = {
    "$gap": "it builds on a line that is lost",
    "$blob": "a long text of it is not beside the file",
    "$hash": "its content was withheld",
    "$none": "its content was withheld",
    "$cut": "it was cut when it was recorded",
    "$repr": "it holds an object that is not JSON",
}


class Whole:
    """Restores the values of one event; ``missing`` says why the last one is not whole, None if it is."""

    def __init__(self, event: Event) -> None:
        self._blob = event.stored_in.blobs.text
        self._ours = event.is_ours
        self.missing: str | None = None

    def __call__(self, value: Any) -> Any:
        self.missing = None
        return self._of(value, 0) if self._ours else fresh(value)

    def _of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is dict:
            if depth > _MAX_DEPTH:
                return self._lost("it is nested too deeply")
            mark = next(filter(lines.is_mark, value), None)
            if mark is not None:
                return self._mark(mark, value)
            return {lines.unescape_key(key): self._of(item, depth + 1) for key, item in value.items()}
        if kind is list:
            if depth > _MAX_DEPTH:
                return self._lost("it is nested too deeply")
            return [self._of(item, depth + 1) for item in value]
        return value

    def _mark(self, mark: str, value: dict[str, Any]) -> Any:
        if mark == "$blob" and "form" not in value:
            text = self._blob(value["$blob"])
            if text is not None:
                return text
        elif mark == "$float" and str(value["$float"]) in _FLOATS:
            return _FLOATS[str(value["$float"])]
        elif mark == "$bytes":
            coded = value["$bytes"]
            if type(coded) is dict and "$blob" in coded:  # they are many
                mark, coded = "$blob", self._blob(coded["$blob"])
            try:
                return binascii.a2b_base64(coded)
            except (ValueError, TypeError):
                pass
        return self._lost(_REASONS.get(mark, f"it holds a mark {mark} that is not known here"))

    def _lost(self, why: str) -> None:
        self.missing = self.missing or why


def placeholders(value: Any) -> int:
    """Return how many texts in a value hold a placeholder for a secret."""
    if isinstance(value, str):
        return int("<redacted:" in value)
    if isinstance(value, dict):
        return sum(map(placeholders, value.values()))
    return sum(map(placeholders, value)) if isinstance(value, list) else 0


# Requests and responses: the conversation in a body of any provider's shape.

_KEPT_BY_PROVIDER = (*reading.KEPT_BY, "cachedContent", "cached_content")
_REFUSED_EMPTY = ("tool_calls", "annotations")


class RecordedRequest(NamedTuple):
    """One request."""

    provider: str | None
    key: str
    """Where the conversation stands in a request: ``messages``, ``input`` or ``contents``."""
    messages: list[Any]
    """Up to the first that is not whole."""
    tools: list[Any]
    params: dict[str, Any]
    model: str | None
    lost: str | None
    """Why ``messages`` ends before the request's own end did; None if it does not."""
    damaged: list[str]
    """Parameters that are not whole."""

    @property
    def kept_elsewhere(self) -> str | None:
        """The parameter that refers to messages which only the provider has."""
        return next((key for key in _KEPT_BY_PROVIDER if self.params.get(key)), None)


class Answer(NamedTuple):
    """The response, as messages to be appended."""

    messages: list[dict[str, Any]]
    lost: str | None = None
    choices: int = 1


def has_request(call: Call) -> bool:
    """True if the request of a model call is recorded."""
    begin = call.begin
    if begin is None or begin.event_type != schema.MODEL_REQUEST:
        return False
    return begin.stored_fields.get("body") is not None or begin.is_partial


def read_request(call: Call) -> RecordedRequest:
    """Return the request a model call began with."""
    event = call.event
    restored = Whole(event)
    body, url = event.stored_body, event.url
    url = url if type(url) is str else None
    provider = _provider(event, call.end, body, url)
    if type(body) is not dict or any(lines.is_mark(name) for name in body):
        return RecordedRequest(
            provider, "messages", [], [], {}, reading.model_of(None, url), "it is not a JSON object", []
        )
    key = reading.conversation_key(body) or (
        "input" if body.get("input") and "messages" not in body else None
    )
    messages, lost = _conversation(body.get(key or ""), restored)
    if key is None:
        key, lost = "messages", "it has no list of messages"
    params: dict[str, Any] = {}
    damaged = []
    for name, item in body.items():
        if name != key:
            name = lines.unescape_key(name)
            value = restored(item)
            if restored.missing is None:
                params[name] = value
            else:
                damaged.append(name)
    key_of_tools, *inside = named(provider).TOOLS_PATH
    tools = mapping(params.get(key_of_tools)).get(inside[0]) if inside else params.pop(key_of_tools, None)
    model = reading.model_of(body, url)
    tools = tools if type(tools) is list else []
    return RecordedRequest(provider, key, messages, tools, params, model, lost, damaged)


def _conversation(stored: Any, restored: Whole) -> tuple[list[Any], str | None]:
    if type(stored) is dict or type(stored) is str:  # a long text is stored as an object
        text = restored(stored)
        whole = restored.missing is None and type(text) is str
        return (
            ([{"role": "user", "content": text}], None)
            if whole
            else ([], restored.missing or "it is not text")
        )
    messages: list[Any] = []
    for item in stored if type(stored) is list else []:
        message = restored(item)
        if restored.missing is not None:
            return messages, f"message {len(messages) + 1} is not whole: {restored.missing}"
        messages.append(message)
    return messages, None


def _provider(event: Event, end: Event | None, body: Any, url: str | None) -> str | None:
    recorded = event.provider
    if recorded in reading.NAMES:
        return str(recorded)
    found = reading.provider_of_request(body, url)
    return found or (reading.provider_of_response(end.body) if end is not None else None)


def read_answer(end: Event, provider: str | None) -> Answer:
    """Return the answer of a model call as the messages an agent would append."""
    restored = Whole(end)
    body = restored(end.stored_body)
    if restored.missing is not None:
        return Answer([], f"the answer is not whole: {restored.missing}")
    return answer_messages(body, provider)


def answer_messages(body: Any, provider: str | None) -> Answer:
    """Return a response body as the messages an agent would append."""
    found = [part for _, part in reading.answers(body, provider)]
    if not found:
        return Answer([], "the answer holds no message in a shape known here")
    if provider == openai_responses.NAME:
        return Answer(found)
    messages = [sendable(found[0])]
    if _is_empty(messages[0]):
        return Answer([], "the response is empty, and an empty message cannot be sent")
    return Answer(messages, None, len(found))


def sendable(message: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what belongs to the response only and keys that providers refuse as null."""
    if "content" in message and ("stop_reason" in message or message.get("type") == "message"):
        return {"role": message.get("role") or "assistant", "content": message["content"]}
    if message.get("role") is None and "content" in message:
        message = {"role": "assistant", **{key: value for key, value in message.items() if key != "role"}}
    return {
        key: value
        for key, value in message.items()
        if (value is not None or key == "content") and not (key in _REFUSED_EMPTY and value == [])
    }


def _is_empty(message: dict[str, Any]) -> bool:
    if "parts" in message or message.get("role") == "model":
        return not message.get("parts")
    others = any(message.get(key) for key in ("tool_calls", "function_call", "refusal", "audio"))
    return not message.get("content") and not others
