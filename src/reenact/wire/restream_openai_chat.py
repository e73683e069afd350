"""An answer of OpenAI Chat Completions as the chunks of its stream; ``[DONE]`` is not among them.

One of the dialects behind restream.py. What a server adds of its own comes with the first chunk.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .pieces import index_of
from .values import mapping, mappings, pieces_of

_EACH = ("id", "object", "created", "model", "system_fingerprint", "service_tier")
_LAST = ("usage", "x_groq")
_SENT_APART = ("role", "content", "tool_calls", "function_call")


def chunks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the chunks; the bill comes last, with no choice, as OpenAI sends it if asked to."""
    envelope = {key: body[key] for key in _EACH if key in body}
    if envelope.get("object") in (None, "chat.completion"):
        envelope["object"] = "chat.completion.chunk"
    more = {key: value for key, value in body.items() if key not in (*_EACH, *_LAST, "choices")}
    for number, choice in enumerate(mappings(body.get("choices"))):
        index = index_of(choice.get("index"))
        for piece in _choice(choice):
            place = {"index": number if index is None else index, **piece}
            yield {**envelope, **more, "choices": [place]}
            more = {}
    last = {key: body[key] for key in _LAST if body.get(key) is not None}
    if last:
        yield {**envelope, "choices": [], **last}


def _choice(choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ended = {key: value for key, value in choice.items() if key not in ("index", "message", "text")}
    logprobs = ended.pop("logprobs", None)
    told = {"logprobs": logprobs} if logprobs is not None else {}
    going_on = {"finish_reason": None}
    if "message" not in choice:  # old completions
        for piece in pieces_of(choice.get("text")):
            yield {"text": piece, **going_on, **told}
            told = {}
        yield {"text": "", "finish_reason": None, **ended}
        return
    for delta in _deltas(mapping(choice.get("message"))):
        yield {"delta": delta, **going_on, **told}
        told = {}
    yield {"delta": {}, "finish_reason": None, **ended}


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    content = message.get("content")
    others = {key: value for key, value in message.items() if key not in _SENT_APART}
    texts = {key: value for key, value in others.items() if type(value) is str and value}
    whole = {key: value for key, value in others.items() if key not in texts}
    first = "" if type(content) is str else None
    yield {"role": message.get("role") or "assistant", "content": first, **whole}
    for key, text in texts.items():  # reasoning, a refusal
        for piece in pieces_of(text):
            yield {key: piece}
    if type(content) is list:
        yield {"content": content}
    for piece in pieces_of(content):
        yield {"content": piece}
    for index, call in enumerate(mappings(message.get("tool_calls"))):
        # Whole: OpenAI cuts the arguments into pieces, but Mistral's SDK refuses a piece without a name.
        yield {"tool_calls": [{"index": index, **call}]}
    old = message.get("function_call")
    if isinstance(old, dict):
        yield {"function_call": {**old, "arguments": ""}}
        for piece in pieces_of(old.get("arguments")):
            yield {"function_call": {"arguments": piece}}
