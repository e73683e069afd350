"""Snapshots of a workspace are part of what a folder of traces may take."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reenact.capture import workspace
from reenact.capture.front.options import Options
from reenact.capture.recorder import disk_space
from reenact.supervise.workspace.keeper import Keeper
from reenact.supervise.workspace.snapshots import Shadow, repository_of


@pytest.fixture
def shadow(tmp_path: Path) -> Shadow:
    (tmp_path / "traces").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "code.py").write_bytes(os.urandom(50_000))
    return Shadow(repository_of(str(tmp_path / "traces" / "run.jsonl")), str(tmp_path / "work"))


def test_they_are_counted(shadow: Shadow, tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    (traces / "run.jsonl").write_bytes(b"x" * 100)
    shadow.begin()
    shadow.commit(shadow.snapshot())
    files = [path for path in traces.rglob("*") if path.is_file()]
    assert disk_space.folder_bytes(str(traces)) == sum(path.stat().st_size for path in files) > 50_000
    assert "bytes" in (disk_space.over_quota(str(traces), Options(max_bytes=40_000, min_free=0), 0) or "")


@pytest.mark.parametrize("is_full", [True, False])
def test_no_more_are_taken_once_they_are_too_much(
    shadow: Shadow, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    monkeypatch.setattr(Options, "max_bytes", 40_000 if is_full else 10**9)
    monkeypatch.setattr(Options, "min_free", 0.0)
    keeper = Keeper(shadow)
    for name, value in keeper.start().items():
        monkeypatch.setenv(name, value)
    try:
        answers = [workspace.ask(workspace.SNAPSHOT, 60) for _ in range(3)]
    finally:
        keeper.stop()
    words = [word for word, _ in answers]
    assert words == (["tree", "failed", "failed-before"] if is_full else ["tree"] * 3), answers
    assert not is_full or "max_bytes=40,000" in answers[1][1]
