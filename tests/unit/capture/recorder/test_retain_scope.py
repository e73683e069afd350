"""retain= deletes the run's own files and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact import Trace


def good_run(path: Path, **options: int) -> None:
    with Trace(path, retain="failed", **options) as trace:
        for number in range(20):
            trace.step("note", text="x" * 200, number=number)


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


@pytest.mark.parametrize(
    "name", ["agent.s1", "agent.p", "agent.sea", "agent.paca", "agent.special", "agent-2"]
)
def test_another_run_with_a_name_like_a_part_stays(tmp_path: Path, name: str) -> None:
    Trace(tmp_path / f"{name}.jsonl").close()
    good_run(tmp_path / "agent.jsonl")
    assert names(tmp_path) == [f"{name}.jsonl"]


def test_segments_and_blobs_that_an_earlier_run_left_under_the_name_stay(tmp_path: Path) -> None:
    with Trace(tmp_path / "agent.jsonl", segment_bytes=1_000) as trace:
        for number in range(10):
            trace.step("note", text="x" * 200, number=number)
        trace.step("note", text="y" * 100_000)
    (tmp_path / "agent.jsonl").unlink()
    left = names(tmp_path)
    assert len(left) > 2
    good_run(tmp_path / "agent.jsonl")
    assert names(tmp_path) == left
    assert len(list((tmp_path / "agent.blobs").iterdir())) == 1


def test_a_run_that_is_not_wanted_takes_its_segments_and_blobs_along(tmp_path: Path) -> None:
    with Trace(tmp_path / "agent.jsonl", segment_bytes=1_000, retain="failed") as trace:
        for number in range(10):
            trace.step("note", text="x" * 200, number=number)
        trace.step("note", text="y" * 100_000)
    assert names(tmp_path) == []


def test_a_run_in_a_file_of_another_ending_is_deleted_too(tmp_path: Path) -> None:
    good_run(tmp_path / "agent.log")
    assert names(tmp_path) == []


def test_a_foreign_file_in_the_blob_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "agent.blobs").mkdir()
    (tmp_path / "agent.blobs" / "precious.txt").write_text("mine")
    good_run(tmp_path / "agent.jsonl")
    assert (tmp_path / "agent.blobs" / "precious.txt").read_text() == "mine"


def test_a_file_another_run_wrote_to_while_ours_was_closed_stays(tmp_path: Path) -> None:
    path = tmp_path / "shared.jsonl"
    ours = Trace(path, retain="failed")
    ours.step("note")
    with Trace(path) as other:
        other.step("error", message="the run worth keeping")
    assert ours._own is not None and ours._own.sink is not None
    ours._own.sink.release()  # as the pool of descriptors does
    ours.step("note")
    ours.close()
    assert b"worth keeping" in path.read_bytes()
