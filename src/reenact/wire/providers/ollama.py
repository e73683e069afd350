"""Ollama's own API: POST /api/chat (and /api/generate). Its /v1 endpoints speak OpenAI's shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import sse
from ..assembler import Assembler, Problems, fill
from ..json_values import as_text, mapping, mappings, some_messages, string, text_pieces
from ..neutral import Cited, Outcome, ToolUse, count, token_usage
from . import openai_chat

NAME = "ollama"
ENDPOINTS: tuple[str, ...] = ("/api/chat", "/api/generate")
SYSTEM_KEYS: tuple[str, ...] = ()
ID_KEYS: tuple[str, ...] = ("id", "tool_call_id")
MESSAGES_KEY = "messages"
TOOLS_PATH: tuple[str, ...] = ("tools",)
USER_FIRST = False
ALTERNATES = False
JOINS_ROLES = False
OPTIONS = {"model": "model", "stream": "stream"}
NESTED_OPTIONS: tuple[str, dict[str, str]] = ("options", {
    "num_predict": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k",
    "stop": "stop",
})  # fmt: skip
STOP = {"stop": "end_turn", "length": "max_tokens"}
_PARAMETERS = frozenset({"options", "keep_alive", "think", "format"})
_MESSAGE_FIELDS = frozenset({"images", "tool_name", "thinking"})


def is_request(body: dict[str, Any]) -> bool:
    """True for Ollama's own parameters and message fields, and for tool arguments that are objects."""
    if not ("messages" in body or "prompt" in body):
        return False
    if not _PARAMETERS.isdisjoint(body):
        return True
    for message in some_messages(body):
        if not _MESSAGE_FIELDS.isdisjoint(message):
            return True
        for call in mappings(message.get("tool_calls")):
            if isinstance(mapping(call.get("function")).get("arguments"), dict):
                return True
    return False


def is_response(body: dict[str, Any]) -> bool:
    """True for an answer with ``done``, and for an error that is a bare string."""
    if "done" in body:
        return isinstance(body.get("message"), dict) or isinstance(body.get("response"), str)
    return isinstance(body.get("error"), str)


def is_event(event: dict[str, Any]) -> bool:
    """True for a line of its stream."""
    return "done" in event and ("message" in event or "response" in event)


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """The counts stand in the body itself."""
    return usage_from_raw(body)


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts; nothing is known of caches."""
    return token_usage(count(raw.get("prompt_eval_count")), count(raw.get("eval_count")))


def stop_reason(body: dict[str, Any], uses_tools: bool) -> str | None:
    """Return the neutral stop reason; ``stop`` also ends an answer that calls tools."""
    reason = string(body.get("done_reason"))
    if reason is None:
        return None
    found = STOP.get(reason, reason)
    return "tool_use" if found == "end_turn" and uses_tools else found


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (None, message): Ollama's errors have no type."""
    error = string(body.get("error"))
    return (None, error) if error else None


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the one message of the answer."""
    message = body.get("message")
    return [("/message", message)] if isinstance(message, dict) else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read."""
    return [message for _, message in answers(body)] or [{"content": body.get("response")}]


def citations(body: dict[str, Any]) -> list[Cited]:
    """Ollama has none."""
    return []


def result_messages(answered: list[tuple[ToolUse, Outcome]]) -> list[dict[str, Any]] | None:
    """Return the messages that carry tool results, one each."""
    return [
        {"role": "tool", "tool_name": use.name, "content": as_text(outcome.value)}
        | ({"tool_call_id": use.id} if use.id else {})
        for use, outcome in answered
    ]


def text_answer(text: str, old: dict[str, Any], model: str, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this, and otherwise is the old one."""
    head = {"model": model, "created_at": "1970-01-01T00:00:00Z"}
    answer = {**head, **old, "done": True, "done_reason": "stop"}
    if (url or "").endswith("/api/generate"):
        return {**answer, "response": text}
    return {**answer, "message": {"role": "assistant", "content": text}}


# A stream put together.

_TEXTS = ("content", "thinking", "response")


class StreamAssembler(Assembler):
    """Takes in the lines of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._message: dict[str, Any] = {}

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one line; True if the model adds content in it."""
        if "error" in event:
            self.fail(error_of(event), event)
            return False
        has_content = self._merge(self._message, mapping(event.get("message")))
        event.pop("message", None)
        has_content = self._merge(self._body, event) or has_content
        self.complete = event.get("done") is True or self.complete
        return has_content

    def _merge(self, known: dict[str, Any], new: dict[str, Any]) -> bool:
        has_content = False
        for key, value in new.items():
            if key in _TEXTS:
                has_content = self.texts.add(known, key, value) or has_content
            elif isinstance(value, list) and isinstance(known.get(key), list):
                known[key] += value
                has_content = has_content or key == "tool_calls"
            else:
                fill(known, {key: value})
                has_content = has_content or key == "tool_calls"
        return has_content

    def body(self) -> dict[str, Any] | None:
        """Return the answer; ``done`` is false if it broke off."""
        if not self._body and not self._message:
            return None
        self.texts.join()
        return {**self._body, "message": self._message} if self._message else self._body


# An answer as a stream again.

_ON_EACH_LINE = ("model", "created_at")
_TEXT_FIELDS = ("thinking", "content")


def stream_events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stream_events as objects."""
    each = {key: body[key] for key in _ON_EACH_LINE if key in body}
    message = body.get("message")
    if isinstance(message, dict):
        for piece in _messages(message):
            yield {**each, "message": piece, "done": False}
        last: dict[str, Any] = {"message": {"role": message.get("role") or "assistant", "content": ""}}
    else:
        for key in ("thinking", "response"):
            for text in text_pieces(body.get(key)):
                yield {**each, "response": "", key: text, "done": False}
        last = {"response": ""}
    about = {key: value for key, value in body.items() if key not in (*_ON_EACH_LINE, "thinking")}
    yield {**each, **about, **last, "done": True}


def _messages(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    role = {"role": message.get("role") or "assistant", "content": ""}
    for key in _TEXT_FIELDS:
        for text in text_pieces(message.get(key)):
            yield {**role, key: text}
    others = {key: value for key, value in message.items() if key not in ("role", *_TEXT_FIELDS)}
    if others:
        yield {**role, **others}


def restream(body: dict[str, Any], url: str | None) -> list[bytes]:
    """Return the lines of a stream that is this answer."""
    return [sse.json_bytes(line) + b"\n" for line in stream_events(body)]


def read_tool_choice(params: dict[str, Any]) -> str | None:
    """Return None: Ollama has no such option."""
    return None


# The same as in Chat Completions.
part = openai_chat.part
user_message = openai_chat.user_message
system_value = openai_chat.system_value
with_result = openai_chat.with_result
