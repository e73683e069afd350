"""One short conversation with a tool, as an agent of each provider sends and gets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from reenact import Tap

LONG = "Hotel Lisboa, 82 EUR. " * 9000 + "the end"
"""Longer than any line keeps: it goes to a blob."""


class Shape(NamedTuple):
    """How one provider spells the conversation."""

    key: str
    rest: dict[str, Any]
    user: Any
    response: dict[str, Any]
    answer: list[Any]
    """As the agent appends it."""
    result: list[Any]
    """What the agent sends back, in words of its own."""
    built: list[Any]
    """What is made of the recorded result where the agent's own message is not recorded."""
    final: dict[str, Any]
    final_answer: list[Any]


ARGS = {"q": "hotels"}
TEXT_ARGS = '{"q":"hotels"}'
_USE = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": ARGS}
_CALL = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": TEXT_ARGS}}
_OLLAMA_CALL = {"function": {"name": "search", "arguments": ARGS}}
_FUNCTION = {"type": "function", "name": "search", "parameters": {"type": "object"}}
_OUTPUT_TEXT = {"type": "output_text", "text": "Lisboa it is.", "annotations": []}


def _openai(message: dict[str, Any], reason: str) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}


def _anthropic(content: list[Any], reason: str) -> dict[str, Any]:
    return {"id": "msg_1", "type": "message", "role": "assistant", "content": content, "stop_reason": reason}


def _responses(*items: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": "completed", "output": list(items)}


SHAPES = {
    "anthropic": Shape(
        "messages",
        {"model": "claude-sonnet-4-6", "max_tokens": 99, "system": "You plan trips.",
         "tools": [{"name": "search", "input_schema": {"type": "object", "$defs": {"x": {"$ref": "#/y"}}}}]},
        {"role": "user", "content": "Plan Lisbon"},
        _anthropic([{"type": "text", "text": "Let me see."}, _USE], "tool_use"),
        [{"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, _USE]}],
        [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": LONG}]},
            {"type": "text", "text": "Go on."}]}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": LONG}]}],
        _anthropic([{"type": "text", "text": "Lisboa it is."}], "end_turn"),
        [{"role": "assistant", "content": [{"type": "text", "text": "Lisboa it is."}]}],
    ),
    "openai": Shape(
        "messages",
        {"model": "gpt-5-mini", "tools": [{"type": "function", "function": {"name": "search"}}]},
        {"role": "user", "content": "Plan Lisbon"},
        _openai({"role": "assistant", "content": None, "tool_calls": [_CALL], "refusal": None,
                 "annotations": [], "function_call": None}, "tool_calls"),
        [{"role": "assistant", "content": None, "tool_calls": [_CALL]}],
        [{"role": "tool", "tool_call_id": "call_1", "content": "found: " + LONG}],
        [{"role": "tool", "tool_call_id": "call_1", "content": LONG}],
        _openai({"role": "assistant", "content": "Lisboa it is.", "tool_calls": None}, "stop"),
        [{"role": "assistant", "content": "Lisboa it is."}],
    ),
    "openai-responses": Shape(
        "input",
        {"model": "gpt-5-mini", "instructions": "You plan trips.", "tools": [_FUNCTION]},
        {"role": "user", "content": "Plan Lisbon"},
        _responses({"id": "rs_1", "type": "reasoning", "summary": []},
                   {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "search",
                    "arguments": TEXT_ARGS, "status": "completed"}),
        [{"id": "rs_1", "type": "reasoning", "summary": []},
         {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "search",
          "arguments": TEXT_ARGS, "status": "completed"}],
        [{"type": "function_call_output", "call_id": "call_1", "output": "found: " + LONG}],
        [{"type": "function_call_output", "call_id": "call_1", "output": LONG}],
        _responses({"id": "m_1", "type": "message", "role": "assistant", "status": "completed",
                    "content": [_OUTPUT_TEXT]}),
        [{"id": "m_1", "type": "message", "role": "assistant", "status": "completed",
          "content": [_OUTPUT_TEXT]}],
    ),
    "gemini": Shape(
        "contents",
        {"systemInstruction": {"parts": [{"text": "You plan trips."}]},
         "tools": [{"functionDeclarations": [{"name": "search", "parameters": {"type": "OBJECT"}}]}]},
        {"role": "user", "parts": [{"text": "Plan Lisbon"}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "search", "args": ARGS}}]},
                         "finishReason": "STOP"}]},
        [{"role": "model", "parts": [{"functionCall": {"name": "search", "args": ARGS}}]}],
        [{"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"found": LONG}}}]}],
        [{"role": "user", "parts": [{"functionResponse": {"name": "search", "response": {"result": LONG}}}]}],
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "Lisboa it is."}]}, "finishReason": "STOP"}]},
        [{"role": "model", "parts": [{"text": "Lisboa it is."}]}],
    ),
    "bedrock": Shape(
        "messages",
        {"system": [{"text": "You plan trips."}], "inferenceConfig": {"maxTokens": 99},
         "toolConfig": {"tools": [{"toolSpec": {"name": "search", "inputSchema": {"json": {"type": "object"}}}}]}},
        {"role": "user", "content": [{"text": "Plan Lisbon"}]},
        {"output": {"message": {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "tooluse_1", "name": "search", "input": ARGS}}]}}, "stopReason": "tool_use"},
        [{"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "tooluse_1", "name": "search", "input": ARGS}}]}],
        [{"role": "user", "content": [{"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": LONG}]}}]}],
        [{"role": "user", "content": [
            {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": LONG}], "status": "success"}}]}],
        {"output": {"message": {"role": "assistant", "content": [{"text": "Lisboa it is."}]}}, "stopReason": "end_turn"},
        [{"role": "assistant", "content": [{"text": "Lisboa it is."}]}],
    ),
    "ollama": Shape(
        "messages",
        {"model": "llama4", "options": {"num_predict": 99}, "tools": [{"type": "function", "function": {"name": "search"}}]},
        {"role": "user", "content": "Plan Lisbon"},
        {"model": "llama4", "message": {"role": "assistant", "content": "", "tool_calls": [_OLLAMA_CALL]},
         "done": True, "done_reason": "stop"},
        [{"role": "assistant", "content": "", "tool_calls": [_OLLAMA_CALL]}],
        [{"role": "tool", "tool_name": "search", "content": "found: " + LONG}],
        [{"role": "tool", "tool_name": "search", "content": LONG}],
        {"model": "llama4", "message": {"role": "assistant", "content": "Lisboa it is."}, "done": True,
         "done_reason": "stop"},
        [{"role": "assistant", "content": "Lisboa it is."}],
    ),
}  # fmt: skip

REQUEST, ANSWER, CALLED, RESULT, SECOND, FINAL = range(1, 7)
"""How many events there are up to each."""


def record(
    path: Path, provider: str, *, upto: int = FINAL, lane: str = "main", error: str | None = None
) -> Path:
    """Record the conversation up to one of its events, as an agent of that provider would."""
    shape = SHAPES[provider]
    with Tap(path, redact=False) as tap:
        body = {**shape.rest, shape.key: [shape.user]}
        steps = [
            lambda: tap.record_model_request(body, provider, lane=lane),
            lambda: tap.record_model_response(shape.response),
            lambda: tap.record_tool_call("search", ARGS),
            lambda: tap.record_tool_result("search", None if error else LONG, error),
            lambda: tap.record_model_request(
                {**body, shape.key: [shape.user, *shape.answer, *shape.result]}, provider, lane=lane
            ),
            lambda: tap.record_model_response(shape.final),
        ]
        for step in steps[:upto]:
            step()
    return path


def codes(messages: Any) -> list[str]:
    return [finding.code for finding in messages.findings]
