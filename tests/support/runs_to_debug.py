"""Small runs that the tests of this folder ask questions about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reenact import Debugger, Tap


def answer(
    text: str, *uses: tuple[str, str, dict[str, Any]], usage: tuple[int, int] = (10, 5)
) -> dict[str, Any]:
    """An Anthropic-shaped answer."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": id_, "name": name, "input": args} for id_, name, args in uses]
    return {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": blocks,
        "stop_reason": "tool_use" if uses else "end_turn",
        "usage": {"input_tokens": usage[0], "output_tokens": usage[1]},
    }


def request(*messages: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": list(messages)}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def five_turns(path: Path) -> Debugger:
    """The second article's run: 5 model calls, 12 tool calls, the last four of them fail."""
    tap, messages = Tap(path), [user("Summarize the Q1 revenue report.")]
    for turn in range(5):
        names = range(3 if turn < 2 else 2)
        uses = [(f"toolu_{turn}{k}", "search", {"q": f"{turn}.{k}"}) for k in names]
        response = answer(f"turn {turn}", *uses)
        call = tap.record_model_request(request(*messages), "anthropic")
        tap.record_model_response(response, call=call)
        results = []
        for id_, name, args in uses:
            tap.record_tool_call(tool_name=name, args=args)
            error = "search returned 0 results" if turn > 2 else None
            tap.record_tool_result(tool_name=name, result=None if error else "ok", error=error)
            results.append({"type": "tool_result", "tool_use_id": id_, "content": error or "ok"})
        messages += [
            {"role": "assistant", "content": response["content"]},
            {"role": "user", "content": results},
        ]
    tap.close()
    return Debugger.load(path)


def two_agents(path: Path, *, lanes: bool) -> Debugger:
    """Two agents side by side in one file, their events interleaved; the one called north fails."""
    tap = Tap(path)
    names = ("north", "south")
    histories: dict[str, list[Any]] = {name: [user(f"go {name}")] for name in names}
    for turn in range(2):
        calls = {
            name: tap.record_model_request(
                request(*histories[name]), "anthropic", lane=name if lanes else "main"
            )
            for name in names
        }
        tools = {}
        for name in names:
            response = answer(f"{name} {turn}", (f"{name}{turn}", "walk", {"to": name, "turn": turn}))
            tap.record_model_response(response, call=calls[name])
            histories[name].append({"role": "assistant", "content": response["content"]})
            tools[name] = tap.record_tool_call("walk", {"to": name, "turn": turn})
        for name in names:
            error = "a wall" if name == "north" and turn else None
            tap.record_tool_result("walk", None if error else "done", error, call=tools[name])
            block = {"type": "tool_result", "tool_use_id": f"{name}{turn}", "content": error or "done"}
            histories[name].append({"role": "user", "content": [block]})
    tap.close()
    return Debugger.load(path)
