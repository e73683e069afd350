"""A keeper that does not answer: the agent waits for a while, once, and nothing that happened is lost."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact import Recording, Tap
from reenact.capture import guard, workspace
from reenact.errors import Halted


@pytest.fixture
def silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    guard.forget()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(workspace.VARIABLE, "keeper")
    monkeypatch.setattr(workspace, "_without_keeper", set())
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.bind("keeper")
        keeper.listen()
        yield keeper


def kinds(path: Path) -> list[str]:
    return [event.kind for event in Recording.load(str(path)).lines]


def test_a_silent_supervisor_is_contacted_once(
    silent: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(workspace, "PATIENCE_S", 0.1)
    monkeypatch.setattr(workspace, "RESTORE_PATIENCE_S", 0.1)
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        for _ in range(2):
            tap.record_tool_result("a", 1, call=tap.record_tool_call("a"))
    silent.setblocking(False)
    silent.accept()
    with pytest.raises(BlockingIOError):
        silent.accept()
    assert (
        capsys.readouterr().err.count("no more snapshots of the workspace (the keeper does not answer") == 1
    )
    found = kinds(tmp_path / "run.jsonl")
    assert found.count("proc.note") == 1 and found.count("tool.result") == 2
    with pytest.raises(Halted, match="not what it was at the cut"):
        workspace.restore("a" * 40)


def test_an_interrupt_meanwhile_is_the_agents_and_the_result_is_recorded(
    silent: socket.socket, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with Tap(str(tmp_path / "run.jsonl")) as tap:
            call = tap.record_tool_call("a")
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                tap.record_tool_result("a", 1, call=call)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert kinds(tmp_path / "run.jsonl").count("tool.result") == 1
