"""Cohere's v2 chat: POST /v2/chat. Its messages are OpenAI's, its answer is one message and a reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import sse
from ..assembler import Assembler, Problems, fill, index_of
from ..json_values import mapping, mappings, plain_text, string, text_pieces
from ..neutral import Cited, count, token_usage, uncached
from . import openai_chat

NAME = "cohere"
ENDPOINTS: tuple[str, ...] = ("/v2/chat", "/v1/chat")
SYSTEM_KEYS: tuple[str, ...] = ()
ID_KEYS: tuple[str, ...] = ("id", "tool_call_id")
MESSAGES_KEY = "messages"
TOOLS_PATH: tuple[str, ...] = ("tools",)
USER_FIRST = False
ALTERNATES = False
JOINS_ROLES = False
OPTIONS = {
    "model": "model", "max_tokens": "max_tokens", "temperature": "temperature", "p": "top_p", "k": "top_k",
    "stop_sequences": "stop", "stream": "stream",
}  # fmt: skip
NESTED_OPTIONS: tuple[str, dict[str, str]] = ("", {})
STOP = {
    "COMPLETE": "end_turn", "STOP_SEQUENCE": "stop_sequence", "MAX_TOKENS": "max_tokens",
    "TOOL_CALL": "tool_use", "ERROR": "error", "ERROR_TOXIC": "content_filter",
}  # fmt: skip


def is_request(body: dict[str, Any]) -> bool:
    """True for parameters that no other shape with ``messages`` has."""
    return "messages" in body and not {"citation_options", "safety_mode", "strict_tools"}.isdisjoint(body)


def is_response(body: dict[str, Any]) -> bool:
    """True for one message with a reason in capitals beside it."""
    return isinstance(body.get("message"), dict) and (string(body.get("finish_reason")) or "").isupper()


_EVENTS = frozenset({
    "message-start", "message-end", "content-start", "content-delta", "content-end", "tool-plan-delta",
    "tool-call-start", "tool-call-delta", "tool-call-end", "citation-start", "citation-end",
})  # fmt: skip


def is_event(event: dict[str, Any]) -> bool:
    """True for an event of its stream."""
    return string(event.get("type")) in _EVENTS


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of the model; what is billed may be fewer."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts; the cached ones are part of the input."""
    tokens = mapping(raw.get("tokens")) or mapping(raw.get("billed_units"))
    cached = count(raw.get("cached_tokens"))
    fresh = uncached(count(tokens.get("input_tokens")), cached, None)
    return token_usage(fresh, count(tokens.get("output_tokens")), cached)


def stop_reason(body: dict[str, Any], uses_tools: bool) -> str | None:
    """Return the neutral stop reason."""
    reason = string(body.get("finish_reason"))
    return None if reason is None else STOP.get(reason, reason)


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (None, message): Cohere's errors have no type."""
    message = body.get("message")
    if isinstance(message, str):
        return None, message
    return (None, plain_text(body["error"])) if string(body.get("error")) else None


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the one message of the answer."""
    message = body.get("message")
    return [("/message", message)] if isinstance(message, dict) else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read; a plan of tools is what the model says before them."""
    return [
        {**message, "content": message.get("content") or message.get("tool_plan")}
        for _, message in answers(body)
    ]


def citations(body: dict[str, Any]) -> list[Cited]:
    """Return the citations of the message: documents and results of tools by their ids."""
    found = []
    for each in mappings(mapping(body.get("message")).get("citations")):
        begin, end = count(each.get("start")), count(each.get("end"))
        for source in mappings(each.get("sources")) or [{}]:
            document = mapping(source.get("document")) or mapping(source.get("tool_output"))
            words = (
                string(document.get("text"))
                or string(document.get("content"))
                or string(document.get("snippet"))
            )
            title = string(document.get("title"))
            found.append(
                Cited(begin or 0, end or begin or 0, string(source.get("id")) or title, title, words or "")
            )
    return found


def text_answer(text: str, old: dict[str, Any], model: str, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this, and otherwise is the old one."""
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    return {"id": "reenact", **old, "message": message, "finish_reason": "COMPLETE"}


# A stream put together.


class StreamAssembler(Assembler):
    """Takes in the events of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._has_started = False
        self._body: dict[str, Any] = {}
        self._message: dict[str, Any] = {"role": "assistant"}
        self._lists: dict[str, dict[int, dict[str, Any]]] = {"content": {}, "tool_calls": {}, "citations": {}}

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one event; True if the model adds content in it."""
        self._has_started = True
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
            added = [self.texts.add(block, key, piece.get(key)) for key in ("text", "thinking")]
            return any(added)
        elif kind == "tool-call-delta":
            piece = mapping(mapping(message.get("tool_calls")).get("function"))
            call = self._lists["tool_calls"].setdefault(index, {"type": "function"})
            function = call["function"] = mapping(call.get("function"))
            return self.texts.add(function, "arguments", piece.get("arguments"))
        return False

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        if not self._has_started:
            return None
        self.texts.join()
        for key, found in self._lists.items():
            if found:
                self._message[key] = [found[index] for index in sorted(found)]
        return {**self._body, "message": self._message}


# An answer as a stream again.

_LISTS = ("content", "tool_calls", "citations")


def stream_events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stream_events, each with its type."""
    message = mapping(body.get("message"))
    lists: dict[str, Any] = {key: [] for key in _LISTS if type(message.get(key)) is list}
    head = {**message, **lists, **({"tool_plan": ""} if "tool_plan" in message else {})}
    yield {"type": "message-start", "id": body.get("id"), "delta": {"message": head}}
    for piece in text_pieces(message.get("tool_plan")):
        yield {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": piece}}}
    for index, block in enumerate(mappings(message.get("content"))):
        texts = [key for key in ("text", "thinking") if type(block.get(key)) is str]
        pieces = [{key: piece} for key in texts for piece in text_pieces(block[key])]
        yield from _list("content", index, {**block, **dict.fromkeys(texts, "")}, pieces)
    for index, call in enumerate(mappings(message.get("tool_calls"))):
        function = mapping(call.get("function"))
        arguments = [{"function": {"arguments": piece}} for piece in text_pieces(function.get("arguments"))]
        empty = {**call, "function": {**function, "arguments": ""}}
        yield from _list("tool_calls", index, empty, arguments)
    for index, citation in enumerate(mappings(message.get("citations"))):
        yield from _list("citations", index, citation, [])
    ended = {key: value for key, value in body.items() if key not in ("id", "message")}
    yield {"type": "message-end", "id": body.get("id"), "delta": ended}


def _list(key: str, index: int, started: Any, added: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    name = {"content": "content", "tool_calls": "tool-call", "citations": "citation"}[key]
    yield {"type": f"{name}-start", "index": index, "delta": {"message": {key: started}}}
    for piece in added:
        yield {"type": f"{name}-delta", "index": index, "delta": {"message": {key: piece}}}
    yield {"type": f"{name}-end", "index": index}


def restream(body: dict[str, Any], url: str | None) -> list[bytes]:
    """Return the pieces, one event each, of a stream that is this answer."""
    return [*map(sse.written_with_name, stream_events(body)), sse.DONE]


def read_tool_choice(params: dict[str, Any]) -> str | None:
    """Return whether tools must be used: ``any none``."""
    return {"REQUIRED": "any", "NONE": "none"}.get(string(params.get("tool_choice")) or "")


# The same as in Chat Completions.
result_messages = openai_chat.result_messages
part = openai_chat.part
user_message = openai_chat.user_message
system_value = openai_chat.system_value
with_result = openai_chat.with_result
