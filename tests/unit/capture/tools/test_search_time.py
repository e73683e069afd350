"""A response waits for a part of the search alone; the next one goes on with it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

from reenact.capture.calls.open_calls import OpenUse, calls_of, open_uses
from reenact.capture.front.options import Options
from reenact.capture.recorder.recorder import begin_run
from reenact.capture.tools import finder, watching
from reenact.wire.neutral import ToolUse


def test_a_search_that_takes_too_long_goes_on_with_the_next_response(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = ModuleType("large_of_search"), ModuleType("small_of_search")
    large.__dict__.update({f"table_{number}": [{"number": number}, []] for number in range(5_000)})
    large.__file__ = small.__file__ = str(tmp_path / "agent.py")
    code = compile("def work(city): return city", large.__file__, "exec").co_consts[0]
    small.__dict__["tools"] = {"get_weather": FunctionType(code, {})}
    for module in (large, small):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(finder, "_PATIENCE_S", 0)  # the least of a round, whatever the machine does
    monkeypatch.setattr(finder, "_LEAST_OBJECTS", 100)
    monkeypatch.setattr(finder, "_LEAST_VARIABLES", 100)
    monkeypatch.setattr(finder, "_MOST_BLOCKS", 0)
    recorder = begin_run(str(tmp_path / "run.jsonl"), Options())
    search = finder.Finder({})
    search._next = large.__name__
    try:
        found = []
        for _ in range(2_000):
            use = OpenUse(calls_of(recorder), "call", ToolUse("t1", "get_weather", {"city": "Oslo"}))
            search.opened(recorder, [use])
            found.append("get_weather" not in search.missing)
            if found[-1]:
                break
            assert "--tools get_weather=" in search.missing["get_weather"]
        assert found[-1] and not found[0], len(found)
    finally:
        open_uses.clear()
        watching.unwatch_all()
        recorder.close("ok")
