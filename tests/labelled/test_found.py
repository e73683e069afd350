"""Suspects find the labelled causes, and leave runs alone that did their task."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact import Debugger
from support.examples import LONG
from support.sample_runs import present, swe_agent, tau_bench
from support.sample_runs import record as record_sample

from .found import found_in
from .record import record, scenarios

SHORT = ("0002", "0006", "1002")
"""Recorded by `make test`: a wrong entity, a lost condition, a poll that ends well."""


@pytest.mark.timeout(1800)
def test_the_cause_is_the_first_suspect_and_passing_runs_have_none(tmp_path: Path) -> None:
    runs = record(tmp_path, scenarios() if LONG else scenarios(SHORT))
    found = [found_in(run.path, run.label) for run in runs]
    failed = [each for each in found if each.label.failed]
    passed = [each for each in found if not each.label.failed]
    assert sum(each.rank == 1 for each in failed) >= 0.6 * len(failed)
    assert sum(bool(each.shown) for each in passed) <= 0.1 * len(passed)


@present
def test_public_runs_that_passed_show_no_suspect_but_one_in_twenty(tmp_path: Path) -> None:
    samples = [each for each in (*tau_bench(), *swe_agent()) if each.passed][:: 1 if LONG else 5]
    shown = 0
    for number, sample in enumerate(samples):
        dbg = Debugger.load(record_sample(sample, tmp_path / f"{number}.jsonl"))
        shown += any(each.is_shown for each in dbg.suspects())
    assert len(samples) >= 20 and shown <= 0.05 * len(samples)
