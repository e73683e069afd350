"""Anthropic Messages: POST /v1/messages."""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterator
from typing import Any

from .. import eventstream, sse
from ..assembler import Assembler, Problems, Texts, fill, grow, index_of
from ..json_values import (
    as_text,
    call_text,
    mapping,
    mappings,
    parsed_arguments,
    plain_text,
    some_messages,
    string,
    text_pieces,
)
from ..neutral import (
    RESULT,
    TEXT,
    TOOL,
    Cited,
    CommonPart,
    Conversation,
    Image,
    Losses,
    Other,
    Outcome,
    Part,
    Reasoning,
    Text,
    Tool,
    ToolResult,
    ToolUse,
    count,
    described,
    media_type_of,
    object_arguments,
    text_of,
    token_usage,
)
from . import openai_chat

NAME = "anthropic"
ENDPOINTS: tuple[str, ...] = ("/v1/messages",)
SYSTEM_KEYS: tuple[str, ...] = ("system",)
ID_KEYS: tuple[str, ...] = ("id", "tool_use_id")
MESSAGES_KEY = "messages"
TOOLS_PATH: tuple[str, ...] = ("tools",)
USER_FIRST = True
ALTERNATES = False
JOINS_ROLES = True
ID_IN_RESULTS = True
REQUIRED_OPTIONS: tuple[str, ...] = ("max_tokens",)
URL_OPTIONS: tuple[str, ...] = ()
OPTIONS = {
    "model": "model", "max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p",
    "top_k": "top_k", "stop_sequences": "stop", "stream": "stream",
}  # fmt: skip
NESTED_OPTIONS: tuple[str, dict[str, str]] = ("", {})
STOP = {"pause_turn": "pause"}
_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use"})


def is_request(body: dict[str, Any]) -> bool:
    """True for marks only this request has: schemas and blocks of its own, or a top-level system text."""
    if "anthropic_version" in body or "anthropic_beta" in body:
        return True
    if any("input_schema" in tool for tool in mappings(body.get("tools"))):
        return True
    for message in some_messages(body):
        for block in mappings(message.get("content")):
            source = mapping(block.get("source"))
            kind = string(block.get("type"))
            if kind in _BLOCKS or (kind == "image" and "type" in source):
                return True
    system = body.get("system")
    typed = bool(mappings(system)) and all("type" in block for block in mappings(system))
    return "max_tokens" in body and (isinstance(system, str) or typed)


def is_response(body: dict[str, Any]) -> bool:
    """True for a message or an error; a hand-shortened message counts if it has a stop reason."""
    if body.get("type") == "error":
        return isinstance(body.get("error"), dict)
    if not isinstance(body.get("content"), list):
        return False
    return body.get("type") == "message" or "stop_reason" in body


_EVENTS = frozenset({
    "message_start", "message_delta", "message_stop", "ping",
    "content_block_start", "content_block_delta", "content_block_stop",
})  # fmt: skip


def is_event(event: dict[str, Any]) -> bool:
    """True for an event of its stream."""
    return string(event.get("type")) in _EVENTS


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the counts of the answer; those of hidden sub-calls (``iterations``) are not added."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``input_tokens`` is the uncached part already, ``output_tokens`` includes thinking."""
    return token_usage(
        count(raw.get("input_tokens")),
        count(raw.get("output_tokens")),
        count(raw.get("cache_read_input_tokens")),
        count(raw.get("cache_creation_input_tokens")),
        count(mapping(raw.get("output_tokens_details")).get("thinking_tokens")),
    )


def stop_reason(body: dict[str, Any], uses_tools: bool) -> str | None:
    """Return the neutral stop reason."""
    reason = string(body.get("stop_reason"))
    return STOP.get(reason, reason) if reason else None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message) of an error body."""
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    return string(error.get("type")), plain_text(error.get("message"))


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The agent appends role and content of the body itself."""
    return [("", body)] if body.get("content") is not None else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read."""
    return [body]


def citations(body: dict[str, Any]) -> list[Cited]:
    """Return what text blocks cite: documents by title, search results and web pages by address."""
    found, at = [], 0
    for block in mappings(body.get("content")):
        text = plain_text(block.get("text")) if block.get("type") == "text" else ""
        for each in mappings(block.get("citations")) if text else ():
            title = string(each.get("document_title")) or string(each.get("title"))
            source = (
                string(each.get("url")) or string(each.get("source")) or string(each.get("file_id")) or title
            )
            found.append(Cited(at, at + len(text), source, title, string(each.get("cited_text")) or ""))
        at += len(text)
    return found


_OTHER_BLOCKS = ("document", "search_result", "container_upload", "fallback", "image")


def part(block: dict[str, Any]) -> Part | None:
    """Return what a content block is; None if it is not one of Anthropic's."""
    kind = string(block.get("type")) or ""
    if kind == "text":
        return Text(plain_text(block.get("text")))
    if kind == "tool_use":
        return ToolUse(
            string(block.get("id")), string(block.get("name")) or "", parsed_arguments(block.get("input"))
        )
    if kind == "tool_result":
        failed = block.get("is_error") is True
        return ToolResult(string(block.get("tool_use_id")), None, block.get("content"), failed)
    if kind in ("thinking", "redacted_thinking"):
        signed = kind == "redacted_thinking" or "signature" in block
        text = plain_text(block.get("thinking"))
        return Reasoning(text, "a thinking block with its signature") if signed else Reasoning(text)
    if kind.endswith("tool_use"):
        run = f"a block of a tool the provider ran ({kind})"
        return Other(run, call_text(block.get("name"), block.get("input")), TOOL)
    if kind.endswith("tool_result"):
        return Other(f"a block of a tool the provider ran ({kind})", plain_text(block.get("content")), RESULT)
    if kind == "compaction":
        return Other("a block of type compaction", plain_text(block.get("content")), TEXT)
    source = mapping(block.get("source"))
    image = Image(string(source.get("media_type")), string(source.get("data")), string(source.get("url")))
    if kind == "image" and (image.data or image.url):
        return image
    return Other(f"a block of type {kind}", plain_text(block)) if kind in _OTHER_BLOCKS else None


def result_messages(answered: list[tuple[ToolUse, Outcome]]) -> list[dict[str, Any]] | None:
    """Return the one message that carries tool results."""
    return [{"role": "user", "content": [_result_block(use, outcome) for use, outcome in answered]}]


def _result_block(use: ToolUse, outcome: Outcome) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": use.id, "content": as_text(outcome.value)}
    return {**block, "is_error": True} if outcome.failed else block


def with_result(block: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the block that is a result with another text, no longer an error."""
    kept = {key: value for key, value in block.items() if key != "is_error"}
    is_list = isinstance(block.get("content"), list)
    return {**kept, "content": [{"type": "text", "text": text}] if is_list else text}


def text_answer(text: str, old: dict[str, Any], model: str, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this, and otherwise is the old one."""
    head = {"id": "msg_reenact", "type": "message", "role": "assistant", "model": model}
    counts = {"usage": {"input_tokens": 0, "output_tokens": 0}}
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    return {**head, **counts, **old, "content": [{"type": "text", "text": text}], **ended}


# A stream put together.

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
"""Blocks that begin without content; that of a tool use names the tool."""


class StreamAssembler(Assembler):
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
        """Take in one event; True if the model adds content in it."""
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
            self.fail(error_of(event), event)
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
            return self.texts.add(self._at[at], "text", delta.get("text"))  # nearly all are such
        delta = mapping(delta)
        kind = string(delta.get("type")) or ""
        index = index_of(event.get("index"))
        block = self._at.get(len(self._content) - 1 if index is None else index)
        if block is None:
            self.problems.note(f"{kind or 'a delta'} for block {index}, which never began")
            block = dict(_IMPLIED.get(kind, {"type": "text", "text": ""}))
            self._place(event, block)
        if kind in _PIECES:
            return self.texts.add(block, _PIECES[kind], delta.get(_PIECES[kind]))
        if kind == "input_json_delta":
            pieces = self._inputs.setdefault(id(block), {})
            return self.texts.add(pieces, "json", delta.get("partial_json"))
        if kind == "citations_delta":
            grow(block, "citations", [delta.get("citation")])
        else:  # a signature, a compaction, and what is still to be invented, come whole
            fill(block, delta, "type")
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
                block["input"] = parsed_arguments(pieces)
        message = {"type": "message", "role": "assistant", **(self._message or {})}
        return {**message, "content": self._content}


# An answer as a stream again.

_AT_THE_END = ("stop_reason", "stop_sequence", "stop_details", "container")
"""What the model's last event holds of a message."""
_COUNTED_AGAIN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "server_tool_use")


def stream_events(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the stream_events, each with its type."""
    usage = mapping(body.get("usage"))
    ended = {key: body[key] for key in _AT_THE_END if body.get(key) is not None}
    head = {**body, **dict.fromkeys(ended), "content": [], "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": {"type": "message", "role": "assistant", **head}}
    for index, block in enumerate(mappings(body.get("content"))):
        started, deltas = _begun_block(block)
        yield {"type": "content_block_start", "index": index, "content_block": started}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    counts = {key: usage[key] for key in _COUNTED_AGAIN if usage.get(key) is not None}
    counts["output_tokens"] = usage.get("output_tokens") or 0
    delta = {"stop_reason": None, "stop_sequence": None, **ended}
    yield {"type": "message_delta", "delta": delta, "usage": counts}
    yield {"type": "message_stop"}


def _begun_block(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it begins, and what is added to it; one that comes whole gets nothing."""
    kind = string(block.get("type")) or ""
    if kind == "text":
        deltas = _texts("text", block)
        cited = mappings(block.get("citations"))
        started = {**block, "text": "", **({"citations": []} if cited else {})}
        return started, deltas + [{"type": "citations_delta", "citation": each} for each in cited]
    if kind == "thinking":
        signed = string(block.get("signature"))
        deltas = _texts("thinking", block)
        started = {**block, "thinking": "", **({"signature": ""} if signed else {})}
        return started, deltas + ([{"type": "signature_delta", "signature": signed}] if signed else [])
    if kind.endswith("tool_use"):
        args = block.get("input")
        pieces = text_pieces(json.dumps(args)) if args not in (None, {}) else []
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces]]
        return {**block, "input": {}}, deltas
    return block, []


def _texts(kind: str, block: dict[str, Any]) -> list[dict[str, Any]]:
    text = string(block.get(kind)) or ""
    return [{"type": f"{kind}_delta", kind: piece} for piece in text_pieces(text)]


def restream(body: dict[str, Any], url: str | None) -> list[bytes]:
    """Return the pieces, one event each, of a stream that is this answer; framed where Bedrock serves it."""
    events = stream_events(body)
    if (url or "").partition("?")[0].endswith("/invoke-with-response-stream"):
        return [eventstream.frame("chunk", {"bytes": _base64(sse.json_bytes(event))}) for event in events]
    return [sse.written_with_name(event) for event in events]


def _base64(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


# Conversion from and to the neutral model.


_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
"""What an id may consist of."""


def write_messages(conversation: Conversation) -> list[dict[str, Any]]:
    """Return Messages: results first in the user's message, ids of letters and digits only."""
    ids = _Ids(conversation)
    messages = []
    for role, parts in conversation.messages:
        # A result must stand before anything else the user says.
        ordered = sorted(parts, key=lambda part: not isinstance(part, ToolResult))
        blocks = [
            block for part in ordered if (block := _written_block(part, conversation.lost, ids)) is not None
        ]
        if len(blocks) == 1 and blocks[0]["type"] == "text":
            messages.append({"role": role, "content": blocks[0]["text"]})
        elif blocks:
            messages.append({"role": role, "content": blocks})
    if messages and messages[0]["role"] != "user":
        conversation.notes.append("the list begins with the model's words; Anthropic wants a user's first")
    return messages


class _Ids:
    """Ids as Anthropic takes them; one that it would refuse is replaced everywhere by the same other."""

    def __init__(self, conversation: Conversation) -> None:
        self.notes = conversation.notes
        self.changed: dict[str, str] = {}

    def __call__(self, id_: str | None) -> str:
        if id_ and _LETTERS.issuperset(id_):
            return id_
        if not self.changed:
            self.notes.append("ids of tool uses that Anthropic would refuse were replaced")
        return self.changed.setdefault(id_ or "", f"use_{len(self.changed) + 1}")


def _written_block(part: CommonPart, lost: Losses, ids: _Ids) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Image):
        return _written_image(part)
    if isinstance(part, ToolUse):
        return {
            "type": "tool_use",
            "id": ids(part.id),
            "name": part.name,
            "input": object_arguments(part.args, lost),
        }
    blocks = [block for each in part.parts if (block := _written_block(each, lost, ids)) is not None]
    content: Any = text_of(part.parts) if all(isinstance(each, Text) for each in part.parts) else blocks
    result = {"type": "tool_result", "tool_use_id": ids(part.id), "content": content}
    return {**result, "is_error": True} if part.failed else result


def _written_image(image: Image) -> dict[str, Any]:
    if image.url is not None:
        return {"type": "image", "source": {"type": "url", "url": image.url}}
    source = {"type": "base64", "media_type": media_type_of(image), "data": image.data}
    return {"type": "image", "source": source}


def read_tool_choice(params: dict[str, Any]) -> str | None:
    """Return whether tools must be used: ``auto any none tool:NAME``."""
    choice = mapping(params.get("tool_choice"))
    kind = string(choice.get("type"))
    return f"tool:{choice.get('name')}" if kind == "tool" else kind


def write_tool_choice(choice: str) -> dict[str, Any]:
    """Return the option for ``auto any none tool:NAME``."""
    kind, _, name = choice.partition(":")
    return {"tool_choice": {"type": kind, "name": name} if kind == "tool" else {"type": kind}}


def write_system(text: str) -> dict[str, Any]:
    """Return the option that holds the system prompt."""
    return {"system": text}


def write_tools(tools: list[Tool]) -> list[dict[str, Any]]:
    """Return the declarations of tools."""
    return [described(tool, "input_schema") for tool in tools]


# The same as in Chat Completions.
user_message = openai_chat.user_message
system_value = openai_chat.system_value
