"""Amazon Bedrock Converse: POST /model/{modelId}/converse."""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator
from typing import Any

from .. import eventstream
from ..assembler import Assembler, Problems, fill, grow, index_of, object_in
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
    TOOL,
    Cited,
    Image,
    Other,
    Outcome,
    Part,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    count,
    first_count,
    token_usage,
)

NAME = "bedrock"
ENDPOINTS: tuple[str, ...] = ("/converse", "/converse-stream")
SYSTEM_KEYS: tuple[str, ...] = ("system",)
ID_KEYS: tuple[str, ...] = ("toolUseId",)
MESSAGES_KEY = "messages"
TOOLS_PATH: tuple[str, ...] = ("toolConfig", "tools")
USER_FIRST = True
ALTERNATES = True
JOINS_ROLES = True
OPTIONS = {"modelId": "model"}
NESTED_OPTIONS: tuple[str, dict[str, str]] = ("inferenceConfig", {
    "maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop",
})  # fmt: skip
STOP = {
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
    "malformed_model_output": "error",
    "malformed_tool_use": "error",
}
_PARAMETERS = frozenset({
    "inferenceConfig", "toolConfig", "additionalModelRequestFields", "guardrailConfig", "modelId",
    "performanceConfig", "promptVariables", "requestMetadata",
})  # fmt: skip
_BLOCKS = frozenset({
    "text", "toolUse", "toolResult", "reasoningContent", "image", "document", "video", "cachePoint",
    "guardContent", "citationsContent",
})  # fmt: skip
_MEDIA = ("image", "document", "video", "audio")
_ERROR_FIELDS = frozenset(
    {"message", "Message", "__type", "originalStatusCode", "originalMessage", "resourceName"}
)


def is_request(body: dict[str, Any]) -> bool:
    """True for Converse's own parameters, and for messages whose blocks have no ``type``."""
    if "messages" in body and not _PARAMETERS.isdisjoint(body):
        return True
    contents = [message.get("content") for message in some_messages(body)]
    blocks = [block for content in contents for block in mappings(content)]
    return bool(blocks) and all("type" not in block and not _BLOCKS.isdisjoint(block) for block in blocks)


def is_response(body: dict[str, Any]) -> bool:
    """True for an answer, for a body that is nothing but an error message, and for boto's error."""
    if isinstance(mapping(body.get("output")).get("message"), dict) or "stopReason" in body:
        return True
    if isinstance(body.get("Error"), dict):
        return True
    return isinstance(body.get("message", body.get("Message")), str) and _ERROR_FIELDS.issuperset(body)


_EVENTS = frozenset({
    "messageStart", "messageStop", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "metadata",
})  # fmt: skip


def is_event(event: dict[str, Any]) -> bool:
    """True for an event of its stream: ``{kind: payload}``."""
    return len(event) == 1 and not _EVENTS.isdisjoint(event)


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``inputTokens`` is the uncached part already."""
    return token_usage(
        count(raw.get("inputTokens")),
        count(raw.get("outputTokens")),
        first_count(raw.get("cacheReadInputTokens"), raw.get("cacheReadInputTokenCount")),
        first_count(raw.get("cacheWriteInputTokens"), raw.get("cacheWriteInputTokenCount")),
    )


def stop_reason(body: dict[str, Any], uses_tools: bool) -> str | None:
    """Return the neutral stop reason."""
    reason = string(body.get("stopReason"))
    return STOP.get(reason, reason) if reason else None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message); on the wire the type is in a header, so it is often unknown here."""
    error = body.get("Error")
    if isinstance(error, dict):
        return string(error.get("Code")), plain_text(error.get("Message"))
    message = body.get("message", body.get("Message"))
    if not isinstance(message, str):
        return None
    kind = string(body.get("__type"))
    return (kind.rpartition("#")[2] if kind else None), message


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the one message of the answer."""
    message = mapping(body.get("output")).get("message")
    return [("/output/message", message)] if isinstance(message, dict) else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read."""
    return [message for _, message in answers(body)]


def citations(body: dict[str, Any]) -> list[Cited]:
    """Return what the cited blocks of the message name."""
    found, at = [], 0
    for block in [block for message in messages(body) for block in mappings(message.get("content"))]:
        cited = mapping(block.get("citationsContent"))
        parts = mappings(cited.get("content"))
        text = plain_text(parts) or plain_text(block.get("text"))
        for each in mappings(cited.get("citations")):
            words = " ".join(plain_text(part.get("text")) for part in mappings(each.get("sourceContent")))
            title = string(each.get("title"))
            place = mapping(mapping(each.get("location")).get("web"))
            source = string(place.get("url")) or string(each.get("source")) or title
            found.append(Cited(at, at + len(text), source, title, words))
        at += len(text)
    return found


def part(block: dict[str, Any]) -> Part | None:
    """Return what a content block is; None if it is not one of Converse's."""
    use, result, reasoning = block.get("toolUse"), block.get("toolResult"), block.get("reasoningContent")
    if isinstance(use, dict):
        if use.get("type") == "server_tool_use":
            return Other("a block of type toolUse", call_text(use.get("name"), use.get("input")), TOOL)
        return ToolUse(
            string(use.get("toolUseId")), string(use.get("name")) or "", parsed_arguments(use.get("input"))
        )
    if isinstance(result, dict):
        failed = result.get("status") == "error"
        return ToolResult(string(result.get("toolUseId")), None, result.get("content"), failed)
    if "text" in block:
        return Text(plain_text(block["text"]))
    if isinstance(block.get("citationsContent"), dict):
        return Text(plain_text(block["citationsContent"].get("content")))
    if "json" in block:
        return Text(as_text(block["json"]))
    if isinstance(reasoning, dict):
        text = plain_text(mapping(reasoning.get("reasoningText")).get("text"))
        return Reasoning(text, "a thinking block with its signature")
    if "cachePoint" in block:
        return Other("a cache marker", "[cachePoint]")
    image = mapping(block.get("image"))
    data = mapping(image.get("source")).get("bytes")
    if isinstance(data, bytes):
        data = b2a_base64(data, newline=False).decode("ascii")
    if isinstance(data, str):
        return Image(f"image/{string(image.get('format')) or 'png'}", data)
    return next((Other(f"a block of type {kind}", f"[{kind}]") for kind in _MEDIA if kind in block), None)


def result_messages(answered: list[tuple[ToolUse, Outcome]]) -> list[dict[str, Any]] | None:
    """Return the one message that carries tool results."""
    return [{"role": "user", "content": [_result_block(use, outcome) for use, outcome in answered]}]


def _result_block(use: ToolUse, outcome: Outcome) -> dict[str, Any]:
    is_object = isinstance(outcome.value, dict) and not outcome.failed
    content = [{"json": outcome.value} if is_object else {"text": as_text(outcome.value)}]
    status = "error" if outcome.failed else "success"
    return {"toolResult": {"toolUseId": use.id, "content": content, "status": status}}


def user_message(text: str) -> dict[str, Any]:
    """Return a message in which a user says this."""
    return {"role": "user", "content": [{"text": text}]}


def system_value(old: Any, text: str) -> Any:
    """Return a system prompt that says this, with the cache mark of the old one."""
    marks = [block for block in mappings(old) if "cachePoint" in block]
    return [{"text": text}, *marks[-1:]]


def with_result(block: dict[str, Any], text: str) -> dict[str, Any]:
    """Return the block that is a result with another text, no longer an error."""
    old, value = block["toolResult"], parsed_arguments(text) if text.strip() else text
    status = {"status": "success"} if "status" in old else {}
    as_object = isinstance(value, dict) and any("json" in each for each in mappings(old.get("content")))
    return {
        **block,
        "toolResult": {**old, "content": [{"json": value} if as_object else {"text": text}], **status},
    }


def text_answer(text: str, old: dict[str, Any], model: str, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this, and otherwise is the old one."""
    counts = {
        "usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
        "metrics": {"latencyMs": 0},
    }
    message = {"role": "assistant", "content": [{"text": text}]}
    return {**counts, **old, "output": {"message": message}, "stopReason": "end_turn"}


# A stream put together.


class StreamAssembler(Assembler):
    """Takes in the events of one stream."""

    def __init__(self, problems: Problems) -> None:
        super().__init__(problems)
        self._body: dict[str, Any] = {}
        self._role = "assistant"
        self._blocks: dict[int, dict[str, Any]] = {}
        self._redacted: dict[int, list[str]] = {}
        self._last = 0
        self._has_started = False

    def add(self, event: dict[str, Any]) -> bool:
        """Take in one event; True if the model adds content in it."""
        has_content = False
        for kind, payload in event.items():
            payload = mapping(payload)
            self._has_started = True
            if kind == "contentBlockDelta":
                has_content = self._delta(payload) or has_content
            elif kind == "contentBlockStart":
                has_content = self._start(payload) or has_content
            elif kind == "messageStart":
                self._role = string(payload.get("role")) or self._role
            elif kind == "messageStop":
                fill(self._body, payload)
                self.complete = True
            elif kind == "metadata":
                fill(self._body, payload)
        return has_content

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
        has_content = False
        for kind, piece in mapping(payload.get("delta")).items():
            if kind == "text":
                has_content = self.texts.add(block, "text", piece) or has_content
            elif kind == "toolUse":
                use = object_in(block, "toolUse")
                has_content = self.texts.add(use, "input", mapping(piece).get("input")) or has_content
            elif kind == "reasoningContent":
                has_content = self._reasoning(index, object_in(block, kind), mapping(piece)) or has_content
            elif kind == "citation":
                grow(block, "citations", [piece])
            elif kind == "toolResult":
                grow(object_in(block, "toolResult"), "content", mappings(piece))
            else:
                fill(object_in(block, kind), mapping(piece))
                has_content = True
        return has_content

    def _reasoning(self, index: int, block: dict[str, Any], piece: dict[str, Any]) -> bool:
        has_content = False
        for key in ("text", "signature"):
            if isinstance(piece.get(key), str):
                has_content = (
                    self.texts.add(object_in(block, "reasoningText"), key, piece[key]) or has_content
                )
        if isinstance(piece.get("redactedContent"), str):
            self._redacted.setdefault(index, []).append(piece["redactedContent"])
            has_content = True
        return has_content

    def body(self) -> dict[str, Any] | None:
        """Return the answer."""
        if not self._has_started:
            return None
        self.texts.join()
        for index, pieces in self._redacted.items():
            object_in(self._blocks[index], "reasoningContent")["redactedContent"] = _base64(pieces)
        content = [_finished(self._blocks[index]) for index in sorted(self._blocks)]
        return {"output": {"message": {"role": self._role, "content": content}}, **self._body}


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block as it stands in an answer that was not streamed."""
    use = block.get("toolUse")
    if isinstance(use, dict):
        use["input"] = parsed_arguments(use.get("input", ""))
    if "citations" in block:
        text = [{"text": block["text"]}] if "text" in block else []
        return {"citationsContent": {"content": text, "citations": block["citations"]}}
    return block


def _base64(pieces: list[str]) -> str:
    """Join pieces of bytes that are base64 each."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return b2a_base64(b"".join(map(a2b_base64, pieces)), newline=False).decode("ascii")
    except ValueError:
        return "".join(pieces)


# An answer as a stream again.

_AT_THE_END = ("stopReason", "additionalModelResponseFields")


def stream_events(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the stream_events as name and payload."""
    message = mapping(mapping(body.get("output")).get("message"))
    yield "messageStart", {"role": string(message.get("role")) or "assistant"}
    for index, block in enumerate(mappings(message.get("content"))):
        at = {"contentBlockIndex": index}
        started, deltas = _begun_block(block)
        if started:
            yield "contentBlockStart", {"start": started, **at}
        for delta in deltas:
            yield "contentBlockDelta", {"delta": delta, **at}
        yield "contentBlockStop", at
    yield "messageStop", {key: body[key] for key in _AT_THE_END if key in body}
    about = {key: value for key, value in body.items() if key not in ("output", *_AT_THE_END)}
    if about:
        yield "metadata", about


def _begun_block(block: dict[str, Any]) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return a block as it begins, if an event holds it, and what is added to it."""
    for key, value in block.items():
        content = mapping(value)
        if key == "text":
            return None, _texts(value)
        if key == "toolUse":
            pieces = text_pieces(json.dumps(content.get("input", {})))
            head = {name: value for name, value in content.items() if name != "input"}
            return {key: head}, [{key: {"input": piece}} for piece in pieces]
        if key == "toolResult":
            head = {name: value for name, value in content.items() if name != "content"}
            return {key: head}, [{key: mappings(content.get("content"))}]
        if key == "reasoningContent":
            return None, [{key: delta} for delta in _reasoning(content)]
        if key == "citationsContent":
            cited = [{"citation": each} for each in mappings(content.get("citations"))]
            return None, _texts(plain_text(content.get("content"))) + cited
    return None, [block]


def _texts(text: object) -> list[dict[str, Any]]:
    return [{"text": piece} for piece in text_pieces(text) or [""]]


def _reasoning(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = mapping(block.get("reasoningText"))
    for piece in text_pieces(text.get("text")):
        yield {"text": piece}
    if string(text.get("signature")):
        yield {"signature": text["signature"]}
    if "redactedContent" in block:
        yield {"redactedContent": block["redactedContent"]}


def restream(body: dict[str, Any], url: str | None) -> list[bytes]:
    """Return the pieces, one frame each, of a stream that is this answer."""
    return [eventstream.frame(name, payload) for name, payload in stream_events(body)]


# Conversion from and to the neutral model.


def read_tool_choice(params: dict[str, Any]) -> str | None:
    """Return whether tools must be used: ``auto any none tool:NAME``."""
    choice = mapping(mapping(params.get("toolConfig")).get("toolChoice"))
    kind = next(iter(choice), None)
    return f"tool:{mapping(choice[kind]).get('name')}" if kind == "tool" else kind
