"""durability="fsync": lines, blobs and their names are flushed before the recording call returns."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from reenact import Trace


@pytest.mark.parametrize(("durability", "files", "folders"), [("fsync", 4, 2), ("sync", 0, 0)])
def test_what_is_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str, files: int, folders: int
) -> None:
    flushed: list[bool] = []
    fsync = os.fsync

    def watched(fd: int) -> None:
        flushed.append(stat.S_ISDIR(os.fstat(fd).st_mode))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", watched)
    with Trace(tmp_path / "run.jsonl", durability=durability) as trace:
        trace.step("tool_result", output="x" * 9_000)
    # run.start, the blob, the event that speaks of it, run.end; the folders of the file and of the blob
    assert (flushed.count(False), flushed.count(True)) == (files, folders)
