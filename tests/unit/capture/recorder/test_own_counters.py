"""What a writer says of itself is its own: not its parent's losses, not a loss that was none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from reenact import Trace
from reenact.capture.recorder import file as files


def test_a_forked_child_does_not_report_its_parents_losses(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "run.jsonl")
    trace.step("note")
    assert trace._own is not None
    trace._own.lost += 3
    child = os.fork()
    if child == 0:
        trace.step("note")
        trace.close()
        os._exit(0)
    os.waitpid(child, 0)
    trace.close()
    ends = [json.loads(file.read_bytes().splitlines()[-1]) for file in tmp_path.glob("*.jsonl")]
    assert {end["kind"]: end["dropped"] for end in ends} == {"run.end": 3, "proc.end": 0}


def test_fsync_to_a_device_that_has_none_loses_nothing() -> None:
    with Trace("/dev/null", durability="fsync") as trace:
        trace.step("note")
        assert trace.lost == 0


def test_a_long_text_is_stored_again_after_the_folder_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "traces"
    trace = Trace(folder / "run.jsonl")
    trace.step("note", text="y" * 100_000)
    shutil.rmtree(folder)
    monkeypatch.setattr(files, "LOOK_EVERY_S", 0.0)  # how often the recorder looks whether its file is there
    trace.step("note")
    trace.step("note", text="y" * 100_000)
    trace.close()
    assert len(list((folder / "run.blobs").iterdir())) == 1
