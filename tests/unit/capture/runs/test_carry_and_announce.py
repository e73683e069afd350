"""carry() for coroutines, late secrets, listeners of the user's own, and servers that begin many runs."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from reenact import Recording, Tap, Trace
from reenact.capture.recorder.listeners import MemorySink


def test_a_carried_coroutine_records_into_the_run_it_was_carried_from(tmp_path: Path) -> None:
    async def work() -> None:
        Tap().record_tool_call("carried", {})

    with reenact.run("first", path=tmp_path / "first.jsonl"):
        carried = reenact.carry(work)
    with reenact.run("second", path=tmp_path / "second.jsonl"):
        with reenact.run("first again", path=tmp_path / "again.jsonl"):
            other = reenact.carry(work)
            asyncio.run(other())
        assert carried.__name__ == "work"
    assert [event.tool for event in Recording.load(str(tmp_path / "again.jsonl")).events] == ["carried"]
    assert Recording.load(str(tmp_path / "second.jsonl")).count() == 0


def test_a_secret_that_comes_into_the_environment_later_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "Zq7" + "-late-" + "9fKw31xx"
    with Trace(tmp_path / "run.jsonl") as trace:
        trace.step("note", text="before")
        monkeypatch.setenv("LATE_API_TOKEN", secret)
        trace.step("note", text=f"it says {secret} here")
    assert secret not in (tmp_path / "run.jsonl").read_text()


def test_flush_survives_a_listener_that_knows_no_time_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Odd(MemorySink):
        def flush(self) -> None: ...

    with Tap(writer=None, output_path=Odd()):
        assert reenact.flush(0.1) is False
    assert "could not flush a Odd" in capsys.readouterr().err


def test_a_server_stops_announcing_its_runs_to_child_processes(tmp_path: Path) -> None:
    code = """
import os, reenact
seen = []
for n in range(70):
    with reenact.run("r", path=f"{n}.jsonl"):
        seen.append("REENACT_RUN" in os.environ)
print(seen.count(True), "REENACT_RUN" in os.environ)
"""
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("64 False\n", "")
