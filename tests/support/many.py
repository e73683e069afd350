"""Runs for the tests of fleet: recorded by the real front ends, or written line by line."""

from __future__ import annotations

import json
from pathlib import Path

import reenact

TS = 1763200000.0


def answer(model="claude-sonnet-4-6", stop="end_turn", input_tokens=100, out=20):
    """An answer as Anthropic sends it."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": stop,
        "usage": {"input_tokens": input_tokens, "output_tokens": out},
    }


def agent(
    path,
    *,
    name="agent",
    meta=None,
    stop="end_turn",
    model="claude-sonnet-4-6",
    tools=("search",),
    fails=None,
):
    """A run of one turn, and a tool call for each of the tools; ``fails`` is what the last one raises."""
    with reenact.Tap(path, name=name, meta=meta or {}) as tap:
        call = tap.record_model_request({"model": model, "messages": []}, provider="anthropic")
        tap.record_model_response(answer(model, stop), call=call)
        for number, tool in enumerate(tools):
            used = tap.record_tool_call(tool, {})
            error = fails if number == len(tools) - 1 else None
            tap.record_tool_result(tool, "found", error, call=used)
    return Path(path)


class Pen:
    """Writes lines of ours, one run and writer, a second apart."""

    def __init__(self, run="r1", w="00000001", ts=TS):
        self.run, self.w, self.ts, self.step = run, w, ts, 0
        self.text = ""

    def __call__(self, kind, after=1.0, **fields):
        self.ts += after if self.step else 0
        self.step += 1
        head = {"ts": self.ts, "run": self.run, "w": self.w, "step": self.step, "kind": kind}
        rest = "".join(
            f', "{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in fields.items()
        )
        self.text += json.dumps(head)[:-1] + rest + "}\n"
        return self

    def start(self, **fields):
        return self("run.start", v="1.0", name=fields.pop("name", "written"), **fields)

    def save(self, path):
        Path(path).write_text(self.text)
        return Path(path)
