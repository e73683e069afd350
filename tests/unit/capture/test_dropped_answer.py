"""An answer that the agent drops unread: recorded from its finaliser, which sets no context variable.

Python 3.11 crashes if the garbage collector, run inside ContextVar.set, comes to one that does.
"""

from __future__ import annotations

from pathlib import Path

from reenact import Debugger, Tap
from reenact.capture import calls, lanes
from reenact.capture.exchange import Watch

URL = "https://api.openai.com/v1/chat/completions"


def test_it_is_recorded_as_closed_and_touches_no_context_variable(tmp_path: Path) -> None:
    tap = Tap(tmp_path / "run.jsonl")
    exchange = Watch(tap._recorder).begin("POST", URL, [], b'{"model": "m", "messages": []}')
    variables = (calls._answered, calls._begun, lanes._in_context)
    before = [variable.get() for variable in variables]
    assert exchange is not None
    del exchange
    assert all(variable.get() is old for variable, old in zip(variables, before, strict=True))
    tap.close()
    (call,) = Debugger.load(tmp_path / "run.jsonl").calls("model")
    assert call.end is not None and call.end.ended == "closed"
