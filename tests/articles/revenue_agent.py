"""An agent as the second article has it, Anthropic-shaped: five model calls, twelve tools, the ninth fails."""

from typing import Any

from reenact import Tap

TOOLS_PER_TURN = (3, 3, 3, 2, 1)
FAILS_AT = 9


def model(turn: int) -> dict[str, Any]:
    """Stands for client.messages.create()."""
    names = [("search", {"query": f"Q1 revenue, part {turn}.{n}"}) for n in range(TOOLS_PER_TURN[turn])]
    content: list[dict[str, Any]] = [{"type": "text", "text": f"Turn {turn}: I will look for part {turn}."}]
    for n, (name, args) in enumerate(names):
        content.append({"type": "tool_use", "id": f"toolu_{turn}{n}", "name": name, "input": args})
    return {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 100 + turn, "output_tokens": 20},
    }


def search(number: int, query: str) -> str:
    if number == FAILS_AT:
        raise LookupError("search returned 0 results")
    return f"{query}: {number} million"


tap = Tap(output_path="runs/run-20260524.jsonl")
messages: list[dict[str, Any]] = [{"role": "user", "content": "Summarize the Q1 revenue report."}]
number = 0
for turn in range(5):
    body = {"model": "claude-sonnet-4-6", "max_tokens": 1024, "messages": messages}
    call = tap.record_model_request(body, provider="anthropic")
    response = model(turn)
    tap.record_model_response(response, call=call)
    messages.append({"role": "assistant", "content": response["content"]})
    results = []
    for block in response["content"][1:]:
        number += 1
        tap.record_tool_call(tool_name=block["name"], args=block["input"])
        try:
            result = search(number, **block["input"])
            tap.record_tool_result(tool_name=block["name"], result=result, error=None)
        except LookupError as exc:
            result = f"failed: {exc}"
            tap.record_tool_result(tool_name=block["name"], result=None, error=str(exc))
        results.append({"type": "tool_result", "tool_use_id": block["id"], "content": result})
    messages.append({"role": "user", "content": results})
