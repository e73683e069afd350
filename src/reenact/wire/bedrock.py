"""Amazon Bedrock Converse: POST /model/{modelId}/converse.

One of the provider files behind shapes.py; pure functions that take any decoded body.
"""

from __future__ import annotations

from .values import (
    OTHER,
    REASONING,
    RESULT,
    TEXT,
    TOOL,
    call_text,
    count,
    decoded,
    first_count,
    mapping,
    mappings,
    neutral,
    some_messages,
    string,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "bedrock"

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
_MEDIA = ("image", "document", "video", "audio", "cachePoint")
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


def usage(body: dict[str, Any]) -> dict[str, int] | None:
    """Return the neutral counts."""
    return usage_from_raw(mapping(body.get("usage")))


def usage_from_raw(raw: dict[str, Any]) -> dict[str, int] | None:
    """``inputTokens`` is the uncached part already."""
    return neutral(
        count(raw.get("inputTokens")),
        count(raw.get("outputTokens")),
        first_count(raw.get("cacheReadInputTokens"), raw.get("cacheReadInputTokenCount")),
        first_count(raw.get("cacheWriteInputTokens"), raw.get("cacheWriteInputTokenCount")),
    )


def stop_reason(body: dict[str, Any]) -> str | None:
    """Return the neutral stop reason."""
    reason = string(body.get("stopReason"))
    return STOP.get(reason, reason) if reason else None


def error_of(body: dict[str, Any]) -> tuple[str | None, str] | None:
    """Return (type, message); on the wire the type is in a header, so it is often unknown here."""
    error = body.get("Error")
    if isinstance(error, dict):
        return string(error.get("Code")), words(error.get("Message"))
    message = body.get("message", body.get("Message"))
    if not isinstance(message, str):
        return None
    kind = string(body.get("__type"))
    return (kind.rpartition("#")[2] if kind else None), message


def tool_uses(body: dict[str, Any]) -> list[tuple[str | None, str, object]]:
    """Return the tool uses of the answer; those of server tools have a ``type``."""
    uses = [
        block.get("toolUse")
        for _, message in answers(body)
        for block in mappings(message.get("content"))
        if mapping(block.get("toolUse")).get("type") != "server_tool_use"
    ]
    return [
        (string(use.get("toolUseId")), string(use.get("name")) or "", decoded(use.get("input")))
        for use in mappings(uses)
    ]


def answers(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the one message of the answer."""
    message = mapping(body.get("output")).get("message")
    return [("/output/message", message)] if isinstance(message, dict) else []


def messages(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answer as messages to be read."""
    return [message for _, message in answers(body)]


def part(block: dict[str, Any]) -> tuple[str, str] | None:
    """Return (sort, text) of one content block; None if it is not one of Converse's."""
    use, result = block.get("toolUse"), block.get("toolResult")
    if isinstance(use, dict):
        return TOOL, call_text(use.get("name"), use.get("input"))
    if isinstance(result, dict):
        return RESULT, words(result.get("content"))
    if "text" in block:
        return TEXT, words(block["text"])
    reasoning = block.get("reasoningContent")
    if isinstance(reasoning, dict):
        return REASONING, words(mapping(reasoning.get("reasoningText")).get("text"))
    return next(((OTHER, f"[{media}]") for media in _MEDIA if media in block), None)
