"""Each labelled agent records the run that its label describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact import Debugger
from support.examples import one_in

from .places import events_at
from .record import Scenario, record, scenarios

ALL = scenarios()


def test_there_are_enough_of_both() -> None:
    ids = [each.label.id for each in ALL]
    failures = [each.label for each in ALL if each.label.failed]
    assert len(ids) == len(set(ids))
    assert all(label.why and label.places for label in failures)
    assert len(failures) >= 64
    assert len(ALL) - len(failures) >= 40


@pytest.mark.parametrize("scenario", one_in(29, ALL), ids=lambda scenario: scenario.path.stem)
def test_agent_records_what_its_label_describes(scenario: Scenario, tmp_path: Path) -> None:
    (run,) = record(tmp_path, [scenario])
    assert run.turns_left == 0, "the program requests every scripted turn"
    dbg = Debugger.load(run.path)
    requests = [event for event in dbg.all() if event.kind == "model.request"]
    assert len(requests) == scenario.requests
    assert all(events_at(dbg, place) for place in run.label.places), run.label.places
    if not run.label.failed:
        assert run.exit == 0, run.stderr
