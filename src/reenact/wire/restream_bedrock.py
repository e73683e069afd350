"""An answer of Bedrock Converse as the events of its stream: messageStart … messageStop, metadata.

One of the dialects behind restream.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .values import mapping, mappings, pieces_of, string, words

_AT_THE_END = ("stopReason", "additionalModelResponseFields")


def events(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events as name and payload."""
    message = mapping(mapping(body.get("output")).get("message"))
    yield "messageStart", {"role": string(message.get("role")) or "assistant"}
    for index, block in enumerate(mappings(message.get("content"))):
        at = {"contentBlockIndex": index}
        started, deltas = _block(block)
        if started:
            yield "contentBlockStart", {"start": started, **at}
        for delta in deltas:
            yield "contentBlockDelta", {"delta": delta, **at}
        yield "contentBlockStop", at
    yield "messageStop", {key: body[key] for key in _AT_THE_END if key in body}
    about = {key: value for key, value in body.items() if key not in ("output", *_AT_THE_END)}
    if about:
        yield "metadata", about


def _block(block: dict[str, Any]) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return a block as it begins, if that is said, and what is added to it."""
    for key, inner in block.items():
        told = mapping(inner)
        if key == "text":
            return None, _texts(inner)
        if key == "toolUse":
            given = pieces_of(json.dumps(told.get("input", {})))
            begun = {name: value for name, value in told.items() if name != "input"}
            return {key: begun}, [{key: {"input": piece}} for piece in given]
        if key == "toolResult":
            begun = {name: value for name, value in told.items() if name != "content"}
            return {key: begun}, [{key: mappings(told.get("content"))}]
        if key == "reasoningContent":
            return None, [{key: delta} for delta in _reasoning(told)]
        if key == "citationsContent":
            cited = [{"citation": each} for each in mappings(told.get("citations"))]
            return None, _texts(words(told.get("content"))) + cited
    return None, [block]


def _texts(text: object) -> list[dict[str, Any]]:
    return [{"text": piece} for piece in pieces_of(text) or [""]]


def _reasoning(told: dict[str, Any]) -> Iterator[dict[str, Any]]:
    said = mapping(told.get("reasoningText"))
    for piece in pieces_of(said.get("text")):
        yield {"text": piece}
    if string(said.get("signature")):
        yield {"signature": said["signature"]}
    if "redactedContent" in told:
        yield {"redactedContent": told["redactedContent"]}
