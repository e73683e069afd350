"""``--response`` and ``--tool-result``: replace a recorded answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ...errors import UsageError
from ...wire import reading
from ...wire.json_values import as_text, mapping, string
from ...wire.providers import named
from ...wire.streams import stream_of, stream_type
from ..matching.recorded_answers import OK, Answer

_KEPT = (
    "id", "object", "created", "created_at", "model", "role", "type", "usage", "usageMetadata",
    "modelVersion", "responseId", "metrics", "system_fingerprint", "service_tier", "prompt_eval_count",
    "eval_count", "done", "stop_sequence",
)  # fmt: skip
"""Fields besides the content, taken from the recorded answer where the replacement lacks them."""
_IDS = ("id", "responseId")
_MCP = frozenset({"content", "isError", "structuredContent", "_meta", "resultType"})
_HOPS = ("content-length", "content-encoding", "transfer-encoding", "content-type")


def parsed(text: str) -> Any:
    """Return the JSON value of a text, else the text."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def response_body(replacement: str, recorded: Any, provider: str | None, url: str | None) -> dict[str, Any]:
    """Return the replacement as a body in the provider's shape; UsageError if it has another shape."""
    value, old = parsed(replacement), mapping(recorded)
    if type(value) is not dict:
        return _text_answer(value if type(value) is str else replacement, old, provider, url)
    shape = reading.provider_of_answer(value, provider)
    if shape is None or not reading.answers(value, shape) or reading.error_of(value, shape) is not None:
        raise UsageError(
            f"--response is a JSON object, but not an answer of {provider or 'a known provider'}",
            hint="pass the whole body as the provider would send it, or a text;"
            " for a text that looks like an object, quote it as a JSON string",
        )
    if provider is not None and shape != provider:
        raise UsageError(
            f"--response has the shape of {shape}, but the call at the cut went to {provider}",
            hint="reenact cat shows the recorded answer; or pass a plain text",
        )
    about = {key: old[key] for key in _KEPT if key in old and (key not in value or key in _IDS)}
    return {**value, **about}


def _text_answer(text: str, old: dict[str, Any], provider: str | None, url: str | None) -> dict[str, Any]:
    """Return the recorded answer with this text as its content."""
    model = reading.model_of(old, url) or "unknown"
    if old.get("error") is not None or reading.error_of(old, provider) is not None:
        old = {}
    return named(provider).text_answer(text, old, model, url)


def answered(
    replacement: str, answer: Answer, provider: str | None, url: str | None, *, is_stream: bool
) -> Answer:
    """Return the recorded answer with the replacement as its body, as a stream if the agent requested one."""
    body = response_body(replacement, answer.body, provider, url)
    headers = {name: value for name, value in answer.headers.items() if name.lower() not in _HOPS}
    if is_stream:
        if provider == "openai" and "usage" not in mapping(answer.body):
            body.pop("usage", None)  # a stream has it only if the agent requested it
        pieces = [(piece, 0.0) for piece in stream_of(body, provider, url)]
        headers["content-type"] = stream_type(provider, url)
    else:
        pieces = [(json.dumps(body, separators=(",", ":")).encode("ascii"), 0.0)]
        headers["content-type"] = "application/json"
    return replace(
        answer, outcome=OK, status=200, headers=headers, body=body, pieces=pieces, error=None, lossy=()
    )


def tool_answered(replacement: str, answer: Answer) -> Answer:
    """Return a tool's recorded answer with the replacement as its result; a text stays a text."""
    old = answer.body
    value = replacement if type(old) is str else parsed(replacement)
    if type(old) is dict and "yielded" in old and "count" in old:  # a generator's
        items = value if type(value) is list else [value]
        value = {"yielded": items, "count": len(items), "returned": None}
    elif _is_mcp(old):
        value = _as_mcp(replacement, value, old)
    return replace(answer, outcome=OK, body=value, error=None, lossy=())


def _as_mcp(replacement: str, value: Any, old: dict[str, Any]) -> dict[str, Any]:
    """Return a result in the shape of MCP; clients expect structured content if there was some."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": as_text(replacement)}], "isError": False}
    if _is_mcp(value):
        result = dict(value)
    if "structuredContent" not in result and type(old.get("structuredContent")) is dict:
        text = "".join(string(mapping(block).get("text")) or "" for block in result["content"])
        is_wrapped = list(old["structuredContent"]) == ["result"]
        structured = {"result": text} if is_wrapped else parsed(text)
        result |= {"structuredContent": structured} if type(structured) is dict else {}
    return result


def _is_mcp(value: Any) -> bool:
    """True for an MCP result: a list of typed blocks, and little else."""
    if type(value) is not dict or not _MCP.issuperset(value):
        return False
    blocks = value.get("content")
    return type(blocks) is list and all("type" in mapping(block) for block in blocks)
