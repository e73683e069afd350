"""Ollama: chat and generate as NDJSON, embeddings."""

from __future__ import annotations

from typing import Any

from ..answers import Answer, Ask, Dialect, compact, json_answer
from ..script import Turn, in_pieces

STOPS = {"end": "stop", "tools": "stop", "length": "length"}


def rounds(body: Any) -> int:
    """Assistant messages whose tools were answered."""
    return sum(bool(message.get("tool_calls")) for message in body.get("messages", ()))


def _line(body: Any, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    content = {"message": {"role": "assistant", **message}}
    if "messages" not in body:
        content = {"response": message.get("content", "")}
    return {"model": body["model"], "created_at": "2026-01-02T03:04:05Z", **content, "done": False, **more}


def _ending(turn: Turn) -> dict[str, Any]:
    ending: dict[str, Any] = {"done": True, "done_reason": STOPS[turn.stop], "total_duration": 12_000_000}
    if turn.usage is not None:
        ending |= {"prompt_eval_count": turn.usage.input, "eval_count": turn.usage.output}
    return ending


def _calls(turn: Turn) -> list[dict[str, Any]]:
    return [{"function": {"name": tool.name, "arguments": tool.args}} for tool in turn.tools]


def whole(turn: Turn, body: Any) -> Any:
    message: dict[str, Any] = {"content": turn.text}
    if turn.thinking:
        message["thinking"] = turn.thinking
    if turn.tools:
        message["tool_calls"] = _calls(turn)
    return _line(body, message, **_ending(turn))


def stream(turn: Turn, body: Any) -> list[bytes]:
    messages: list[dict[str, Any]] = [{"content": "", "thinking": each} for each in in_pieces(turn.thinking)]
    messages += [{"content": piece} for piece in turn.pieces()]
    if turn.tools:
        messages.append({"content": "", "tool_calls": _calls(turn)})
    lines = [_line(body, message) for message in messages]
    lines.append(_line(body, {"content": ""}, **_ending(turn)))
    return [compact(line) + b"\n" for line in lines]


def failure(status: int) -> tuple[Any, dict[str, str]]:
    return {"error": f"scripted failure {status}"}, {}


CHAT = Dialect(
    rounds,
    whole,
    stream,
    failure,
    broken=compact({"error": "scripted failure in the stream"}) + b"\n",
    garbage=b'{"model": "llama", "mess\n',
    stream_type="application/x-ndjson",
)


def embed(ask: Ask) -> Answer:
    request = ask.json()
    texts = request["input"] if isinstance(request["input"], list) else [request["input"]]
    return json_answer({"model": request["model"], "embeddings": [[0.25, -0.5, 0.125] for _ in texts]})
