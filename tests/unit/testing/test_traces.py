"""A run that takes another's place: with its blobs and further processes, whole, and nothing stale beside it."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from reenact import Debugger, Tap
from reenact.testing import write_trace
from reenact.testing.traces import replace_trace


def record(folder: Path, text: str) -> Path:
    """A run with a long result and a further process."""
    folder.mkdir()
    path = folder / "run.jsonl"
    with Tap(path) as tap:
        tap.record_tool_call("read", {"text": text})
        tap.record_tool_result("read", text * 200_000)
    write_trace(folder / f"run.p{text.encode().hex():0>8}.jsonl", [("note", {"text": text})], run=tap.run_id)
    return path


def held(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["trip.jsonl", "deep/down/trip.jsonl"])
def test_all_of_it_comes_and_all_of_the_old_one_goes(tmp_path: Path, name: str) -> None:
    place = tmp_path / "kept" / name
    (tmp_path / "kept").mkdir()
    for text in ("a", "b"):
        replace_trace(str(record(tmp_path / text, text)), str(place))
        dbg = Debugger.load(place)
        assert dbg.first(event_type="tool.result").result == text * 200_000
        assert {each.rpartition("/")[2].replace("trip", "run") for each in held(place.parent)} == {
            each.rpartition("/")[2] for each in held(tmp_path / text)
        }


def test_a_neighbour_is_left_alone_and_a_run_without_blobs_leaves_none(tmp_path: Path) -> None:
    place, other = tmp_path / "kept" / "trip.jsonl", tmp_path / "kept" / "trip2.jsonl"
    replace_trace(str(record(tmp_path / "a", "a")), str(place))
    replace_trace(str(record(tmp_path / "b", "b")), str(other))
    before = other.read_bytes()
    replace_trace(write_trace(tmp_path / "small.jsonl", [("note", {})]), str(place))
    assert Debugger.load(place).count() == 1 and other.read_bytes() == before
    assert {each for each in held(tmp_path / "kept") if not each.startswith("trip2")} == {"trip.jsonl"}
    assert not (tmp_path / "kept" / "trip.blobs").exists()


def test_of_many_at_once_one_is_there_whole(tmp_path: Path) -> None:
    place = tmp_path / "kept" / "trip.jsonl"
    runs = [record(tmp_path / letter, letter) for letter in "abcdef"]
    threads = [threading.Thread(target=replace_trace, args=(str(run), str(place))) for run in runs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    result = Debugger.load(place).first(event_type="tool.result").result
    assert len(result) == 200_000 and len(held(tmp_path / "kept")) == 3


def test_what_cannot_be_copied_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "kept" / "trip.jsonl"
    replace_trace(str(record(tmp_path / "a", "a")), str(place))
    before = place.read_bytes()
    new = record(tmp_path / "b", "b")
    os.unlink(new)
    with pytest.raises(FileNotFoundError):
        replace_trace(str(new), str(place))
    assert place.read_bytes() == before
    assert Debugger.load(place).first(event_type="tool.result").result == "a" * 200_000
    assert {each.replace("trip", "run") for each in held(tmp_path / "kept")} == held(tmp_path / "a")
