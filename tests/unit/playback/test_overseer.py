"""Which signals end a replayed agent that diverged and goes on: none before it is quiet, then stronger ones."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from reenact.playback import launch
from reenact.playback.launch import Overseer
from reenact.playback.replay.report import Began, Report, Unknown


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setattr(launch, "_QUIET", 0.0)
    return Report(str(tmp_path / "report.jsonl"))


def test_an_agent_that_diverged_and_is_quiet_is_interrupted_then_ended(
    tmp_path: Path, report: Report
) -> None:
    overseer = Overseer(str(tmp_path / "report.jsonl"))
    report.note(Began(1))
    assert overseer() is None, "nothing went wrong yet"
    report.note(Unknown("its answer is not known"))
    assert [overseer() for _ in range(4)] == [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, None]


def test_repeating_what_went_wrong_is_no_progress(tmp_path: Path, report: Report, monkeypatch) -> None:
    monkeypatch.setattr(launch, "_QUIET", 3600.0)
    overseer = Overseer(str(tmp_path / "report.jsonl"))
    report.note(Unknown("its answer is not known"))
    assert overseer() is None
    since = overseer._since
    report.note(Unknown("its answer is not known"))
    assert overseer() is None and overseer._since == since
    report.note(Began(2))
    assert overseer() is None and overseer._since > since


def test_an_agent_that_did_not_diverge_is_left_alone(tmp_path: Path, report: Report) -> None:
    overseer = Overseer(str(tmp_path / "report.jsonl"))
    report.note(Began(1))
    assert [overseer() for _ in range(3)] == [None] * 3
