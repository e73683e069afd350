"""``--response`` and ``--tool-result``: another answer in the place of the recorded one."""

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
"""What an answer has besides its words: the recorded one's where the given one leaves it out."""
_IDS = ("id", "responseId")
_MCP = frozenset({"content", "isError", "structuredContent", "_meta", "resultType"})
_HOPS = ("content-length", "content-encoding", "transfer-encoding", "content-type")


def parsed(text: str) -> Any:
    """Return the JSON value a text is, else the text."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def response_body(given: str, recorded: Any, provider: str | None, url: str | None) -> dict[str, Any]:
    """Return the answer that was given, in the provider's shape; UsageError if it has another."""
    value, old = parsed(given), mapping(recorded)
    if type(value) is not dict:
        return _text_answer(value if type(value) is str else given, old, provider, url)
    whose = reading.provider_of_answer(value, provider)
    if whose is None or not reading.answers(value, whose) or reading.error_of(value, whose) is not None:
        raise UsageError(
            f"--response is a JSON object, but no answer in the shape of {provider or 'a known provider'}",
            hint="give the whole body as the provider would send it, or a text;"
            " for a text that looks like an object, quote it as a JSON string",
        )
    if provider is not None and whose != provider:
        raise UsageError(
            f"--response has the shape of {whose}, but the call at the cut is {provider}'s",
            hint="reenact cat shows the recorded answer; or give a plain text",
        )
    about = {key: old[key] for key in _KEPT if key in old and (key not in value or key in _IDS)}
    return {**value, **about}


def _text_answer(text: str, old: dict[str, Any], provider: str | None, url: str | None) -> dict[str, Any]:
    """Return an answer that says just this text, and otherwise is the recorded one."""
    model = reading.model_of(old, url) or "unknown"
    if old.get("error") is not None or reading.error_of(old, provider) is not None:
        old = {}
    return named(provider).text_answer(text, old, model, url)


def answered(given: str, answer: Answer, provider: str | None, url: str | None, *, is_stream: bool) -> Answer:
    """Return the recorded answer with what was given in its place, as a stream where one was asked for."""
    body = response_body(given, answer.body, provider, url)
    headers = {name: value for name, value in answer.headers.items() if name.lower() not in _HOPS}
    if is_stream:
        if provider == "openai" and "usage" not in mapping(answer.body):
            body.pop("usage", None)  # only told in a stream if the agent asked for it
        pieces = [(piece, 0.0) for piece in stream_of(body, provider, url)]
        headers["content-type"] = stream_type(provider, url)
    else:
        pieces = [(json.dumps(body, separators=(",", ":")).encode("ascii"), 0.0)]
        headers["content-type"] = "application/json"
    return replace(
        answer, outcome=OK, status=200, headers=headers, body=body, pieces=pieces, error=None, lossy=()
    )


def tool_answered(given: str, answer: Answer) -> Answer:
    """Return a tool's recorded answer with what was given in its place; a text stays one where one was."""
    old = answer.body
    value = given if type(old) is str else parsed(given)
    if type(old) is dict and "yielded" in old and "count" in old:  # a generator's
        items = value if type(value) is list else [value]
        value = {"yielded": items, "count": len(items), "returned": None}
    elif _is_mcp(old):
        value = _as_mcp(given, value, old)
    return replace(answer, outcome=OK, body=value, error=None, lossy=())


def _as_mcp(given: str, value: Any, old: dict[str, Any]) -> dict[str, Any]:
    """Return a result as an MCP server gives it; clients want the structured one, too, if there was one."""
    made: dict[str, Any] = {"content": [{"type": "text", "text": as_text(given)}], "isError": False}
    if _is_mcp(value):
        made = dict(value)
    if "structuredContent" not in made and type(old.get("structuredContent")) is dict:
        text = "".join(string(mapping(block).get("text")) or "" for block in made["content"])
        is_wrapped = list(old["structuredContent"]) == ["result"]
        structured = {"result": text} if is_wrapped else parsed(text)
        made |= {"structuredContent": structured} if type(structured) is dict else {}
    return made


def _is_mcp(value: Any) -> bool:
    """True for what an MCP server gives: a list of typed blocks, and little else."""
    if type(value) is not dict or not _MCP.issuperset(value):
        return False
    blocks = value.get("content")
    return type(blocks) is list and all("type" in mapping(block) for block in blocks)
