"""Runs to step through, made by the real recorder."""

from __future__ import annotations

import reenact
from reenact.debugger.stepper import Stepper
from reenact.recording.recording import Recording


def stepper_of(path, run=None):
    return Stepper(lambda: Recording.load(path, run))


class Writer:
    """Records model and tool calls one event at a time, and keeps what was written as plain rows."""

    def __init__(self, path):
        self.tap = reenact.Tap(path, redact=False)
        self.rows = []
        self.open = {}

    def ask(self, lane="main", text="hello", attempt=None):
        body = {
            "model": "m-1",
            "max_tokens": 9,
            "system": "s",
            "messages": [{"role": "user", "content": text}],
        }
        self.open[lane] = self.tap.record_model_request(
            body, provider="anthropic", lane=lane, attempt=attempt
        )
        self.rows.append({"kind": "model.request", "lane": lane})
        return self.open[lane]

    def answer(self, lane="main", text="fine", error=None, uses=()):
        content = [{"type": "text", "text": text}]
        content += [{"type": "tool_use", "id": id, "name": name, "input": args} for id, name, args in uses]
        body = {"type": "message", "role": "assistant", "model": "m-1", "content": content}
        body |= {"stop_reason": "tool_use" if uses else "end_turn"}
        body |= {"usage": {"input_tokens": 10, "output_tokens": 3}}
        self.tap.record_model_response(None if error else body, call=self.open[lane], error=error)
        self.rows.append({"kind": "model.response", "lane": lane, "error": error is not None})

    def call(self, tool, args=None, lane="main"):
        id = self.tap.record_tool_call(tool, args or {})
        self.rows.append({"kind": "tool.called", "lane": lane, "tool": tool})
        return id

    def result(self, tool, id, value="done", error=None, lane="main"):
        self.tap.record_tool_result(tool, value, error, call=id)
        self.rows.append({"kind": "tool.result", "lane": lane, "error": error is not None})

    def close(self):
        self.tap.close()


def record_team(path):
    """A main agent whose tool runs a sub-agent, which uses a tool of its own."""
    writer = Writer(path)
    writer.ask(text="Plan Lisbon")  # 2
    writer.answer(uses=[("toolu_1", "delegate", {"to": "researcher"})])  # 3
    delegate = writer.call("delegate", {"to": "researcher"})  # 4
    writer.ask("researcher", text="Find hotels")  # 5
    writer.answer("researcher", uses=[("toolu_2", "search", {"q": "hotels"})])  # 6
    search = writer.call("search", {"q": "hotels"}, "researcher")  # 7
    writer.result("search", search, "Hotel Lisboa", lane="researcher")  # 8
    writer.ask("researcher", text="And now?")  # 9
    writer.answer("researcher", text="Hotel Lisboa it is")  # 10
    writer.result("delegate", delegate, "Hotel Lisboa it is")  # 11
    writer.ask(text="Go on")  # 12
    writer.answer(error=TimeoutError("too slow"))  # 13
    writer.ask(text="Go on", attempt=2)  # 14
    writer.answer(text="Booked")  # 15
    writer.close()
    return writer


def steps(stepper, *indices):
    return [stepper.events[index].step for index in indices]
