"""REENACT_RUN as any program may have set it: what is no announcement of ours is not believed."""

from __future__ import annotations

import os

import pytest

from reenact.capture.runs.location import RUN_VARIABLE, announcement, parent_run


@pytest.mark.parametrize(
    "value",
    ["", "x", "a b", "a 9f1c2a7e", "a 9f1c2a7e ", "a 9f1c2a7e relative/stem", " 9f1c2a7e /stem", "a b /stem",
     'a "9f1c2a" /stem', "1", "true"],
)  # fmt: skip
def test_what_is_no_announcement_is_no_parent(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUN_VARIABLE, value)
    assert parent_run() == ("", "", "")


@pytest.mark.parametrize("run_id", ["a", "a b", "%20", "\udcff", "a" * 500, "x\ny"])
@pytest.mark.parametrize("stem", ["/runs/trip", "/with space/trip 1", os.fsdecode(b"/\xff/trip")])
def test_an_announcement_is_read_as_it_was_made(
    run_id: str, stem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RUN_VARIABLE, announcement(run_id, "9f1c2a7e", stem))
    assert parent_run() == (run_id, "9f1c2a7e", stem)
