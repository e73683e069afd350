"""Gemini generateContent, its stream, token counting and embeddings."""

from __future__ import annotations

from typing import Any

from ..answers import Answer, Ask, Dialect, json_answer, sse
from ..script import SIGNATURE, Turn, in_pieces

STOPS = {"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS"}
STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def rounds(body: Any) -> int:
    return sum(any("functionResponse" in part for part in each["parts"]) for each in body["contents"])


def _parts(turn: Turn) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if turn.thinking:
        parts.append({"text": turn.thinking, "thought": True})
    if turn.text:
        parts.append({"text": turn.text})
    for tool in turn.tools:
        parts.append(
            {"functionCall": {"name": tool.name, "args": tool.args}, "thoughtSignature": SIGNATURE},
        )
    return parts


def _fragment(turn: Turn, parts: list[dict[str, Any]], *, last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if last:
        candidate["finishReason"] = STOPS[turn.stop]
    fragment: dict[str, Any] = {"candidates": [candidate]}
    if turn.usage is not None:
        fragment["usageMetadata"] = _usage(turn, last=last)
    return {**fragment, "modelVersion": "gemini-scripted-001", "responseId": f"response-{turn.id}"}


def _usage(turn: Turn, *, last: bool) -> dict[str, Any]:
    assert turn.usage is not None
    count = turn.usage
    output = count.output - count.reasoning if last else 1
    usage = {"promptTokenCount": count.input + count.cache_read, "candidatesTokenCount": output}
    if count.cache_read:
        usage["cachedContentTokenCount"] = count.cache_read
    if count.reasoning:
        usage["thoughtsTokenCount"] = count.reasoning
    return {**usage, "totalTokenCount": usage["promptTokenCount"] + output + count.reasoning}


def whole(turn: Turn, body: Any) -> Any:
    return _fragment(turn, _parts(turn), last=True)


def stream(turn: Turn, body: Any) -> list[bytes]:
    pieces: list[dict[str, Any]] = []
    for part in _parts(turn):
        if "text" in part:
            pieces += [{**part, "text": piece} for piece in in_pieces(part["text"])]
        else:
            pieces.append(part)
    fragments = [sse(_fragment(turn, [part], last=False)) for part in pieces]
    return [*fragments, sse(_fragment(turn, [{"text": ""}], last=True))]


def failure(status: int) -> tuple[Any, dict[str, str]]:
    error: dict[str, Any] = {
        "code": status,
        "message": f"scripted failure {status}",
        "status": STATUSES.get(status, "UNKNOWN"),
    }
    if status == 429:
        retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.001s"}
        error["details"] = [retry]
    return {"error": error}, {}


GENERATE = Dialect(
    rounds,
    whole,
    stream,
    failure,
    broken=sse(failure(503)[0]),
    garbage=b'data: {"candidates": [{"cont\n\n',
)


def count_tokens(ask: Ask) -> Answer:
    return json_answer({"totalTokens": len(ask.body) // 4})


def embed(ask: Ask) -> Answer:
    return json_answer({"embeddings": [{"values": [0.25, -0.5, 0.125]} for _ in ask.json()["requests"]]})
