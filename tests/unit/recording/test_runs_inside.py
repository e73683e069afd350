"""Runs inside a run, as they are found beside it: whatever else lies in the folder, or stands in a line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reenact import Recording
from reenact.playback.matching.tape import Tape
from reenact.recording.runs_inside import with_inside
from support.written import RUN, TS, Pen

INNER = "11112222333344445555666677778888"


def write(folder: Path, *, pid: object = 1, ended: float | None = None, slow: float = 0.0) -> Path:
    """Write a run with one inside it, of which each has one event of its own; its clock is ``slow``."""
    outer, inner = Pen(), Pen(INNER, "aa00bb11", TS - slow)
    first = outer("run.start", v="1.0", name="outer", pid=1) + outer("note", text="outer")
    within = inner("run.start", v="1.0", name="inner", pid=pid, parent_run=RUN) + inner("note", text="inner")
    outer.ts = outer.ts if ended is None else ended
    path = folder / "20251115-094640-outer.jsonl"
    path.write_bytes(first + outer("run.end", status="ok"))
    (folder / "20251115-094640-inner.jsonl").write_bytes(within + inner("run.end", status="ok"))
    return path


def texts(path: Path) -> list[str]:
    return [event.payload["text"] for event in with_inside(Recording.load(path)).events]


def test_a_copy_of_a_run_inside_is_not_that_run_again(tmp_path: Path) -> None:
    path = write(tmp_path)
    shutil.copy(tmp_path / "20251115-094640-inner.jsonl", tmp_path / "kept.jsonl")
    assert sorted(texts(path)) == ["inner", "outer"]


@pytest.mark.parametrize("ended", [1e20, -1e20, float("inf")])
def test_a_time_of_no_calendar_leaves_nothing_out(tmp_path: Path, ended: float) -> None:
    assert "inner" in texts(write(tmp_path, ended=ended))


def test_a_clock_that_was_put_back_makes_no_run_the_outer_one(tmp_path: Path) -> None:
    path = write(tmp_path, slow=5)
    whole = with_inside(Recording.load(path))
    assert (whole.name, whole.status) == ("outer", "ok") and sorted(texts(path)) == ["inner", "outer"]
    assert whole.start is not None and whole.start.run_id == RUN


@pytest.mark.parametrize("pid", [[1], {"a": 1}, None, "1"])
def test_a_process_of_no_number_is_one_of_its_own(tmp_path: Path, pid: object) -> None:
    tape = Tape(with_inside(Recording.load(write(tmp_path, pid=pid))))
    assert tape.process_of("aa00bb11") == "aa00bb11"
    assert Tape(with_inside(Recording.load(write(tmp_path)))).process_of("aa00bb11") != "aa00bb11"
