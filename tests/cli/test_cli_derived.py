"""Tools that only the wire tells of, in commands: where a run died, breakpoints, figures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from support.typed import environment, typed

AGENT = """
import os, signal, sys
from reenact import Tap

tap, messages = Tap(sys.argv[1]), [{"role": "user", "content": "Go"}]
for turn in range(int(sys.argv[2])):
    call = tap.record_model_request({"model": "m", "messages": messages}, provider="anthropic")
    asks = [{"type": "tool_use", "id": f"t{turn}", "name": "search", "input": {"q": turn // 2}}]
    tap.record_model_response({"role": "assistant", "content": asks, "stop_reason": "tool_use"}, call=call)
    if turn == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"found {turn}"}
    messages += [{"role": "assistant", "content": asks}, {"role": "user", "content": [result]}]
tap.close()
"""


@pytest.fixture
def played(tmp_path):
    def play(turns, dies_in=-1):
        path = tmp_path / "a.jsonl"
        command = [sys.executable, "-c", AGENT, path, str(turns), str(dies_in)]
        code = subprocess.run(command, env=environment(), check=False).returncode
        assert code == (-signal.SIGKILL if dies_in >= 0 else 0)
        return os.fspath(path)

    return play


def test_a_kill_inside_a_tool_nobody_recorded_is_named_first(played):
    out = typed("show", played(3, dies_in=2)).out
    assert out.startswith("✗ killed  died before the result of tool search(q=1) (step 7)")
    assert out.count("requested, never answered") == 1 and out.count("◂ found") == 2


def test_breakpoints_stop_where_a_tool_is_requested(played):
    path = played(4)
    out = typed("debug", path, "-c", "j 1", "-c", "b tool:sea*", "-c", "c", "-c", "c").out
    assert [line.split()[1] for line in out.splitlines() if line.startswith(">")] == ["2", "3.1", "5.1"]
    out = typed("debug", path, "-c", "j 1", "-c", "b loop>1", "-c", "c", "-c", "c").out
    assert [line.split()[1] for line in out.splitlines() if line.startswith(">")] == ["2", "5.1", "9.1"]


def test_figures_count_them_and_give_no_durations(played):
    path = played(3)
    (reported,) = typed("stats", path, "--json").rows
    assert reported["tool_calls"] == 3 and reported["tools"] == {"search": 3}
    out = typed("stats", path, "--by", "tool").out
    assert "search" in out and "ms" not in out.split("search")[1].splitlines()[0]
    assert typed("ls", path, "--json").rows[0]["turns"] == 3
