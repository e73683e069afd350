"""Runs kept open by the viewer: rows, filters and figures of a large run, found in steps, equal to a small one's."""

from __future__ import annotations

from pathlib import Path

import pytest

from reenact import Recording, Tap
from reenact.debugger import turn_table
from reenact.debugger.turn_table import TurnTable
from reenact.money.ledger import Ledger
from reenact.recording import derived_events
from reenact.recording import recording as recordings
from reenact.tracefile import columns
from reenact.viewer.event_list import Shown
from reenact.viewer.open_runs import OpenRun
from support.runs_to_debug import answer, request, user

TURNS = 120


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two lanes; nobody recorded the tools, so they are derived."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "run.jsonl"
    with Tap(path, name="run") as tap:
        messages: list[dict[str, object]] = [user("go")]
        for turn in range(TURNS):
            lane = ("main", "other")[turn % 2]
            call = tap.record_model_request(request(*messages), "anthropic", lane=lane)
            response = answer(f"turn {turn}", (f"t{turn}", "look", {"q": turn}), usage=(100, turn))
            tap.record_model_response(response, call=call)
            result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"found {turn}"}
            messages += [
                {"role": "assistant", "content": response["content"]},
                {"role": "user", "content": [result]},
            ]
    return path


def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (columns, "KEEP_FROM", 10_000), (columns, "LARGE", 1), (columns, "_ENOUGH", 30), (columns, "_FEWEST", 20),
        (columns, "_MOST_ENDS", 9_000), (recordings, "SMALL_EVENTS", 10), (derived_events, "MARGIN", 20),
        (turn_table, "MARGIN", 20), (turn_table, "_PART", 60), (turn_table, "_KEPT_FROM", 50),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


def _all_rows(run: OpenRun, shown: Shown) -> list[str]:
    while not (listed := run.listed(shown)).is_done:
        pass
    places = listed[0:10_000]
    assert [listed.row_of(place) for place in places] == list(range(len(listed)))
    assert [place for at in range(0, len(listed), 7) for place in listed[at : at + 7]] == list(places)
    return [run.address(place) for place in places]


def test_a_large_run_has_the_rows_of_a_small_one(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = OpenRun(str(run), None)
    filters = [Shown(), Shown("tools"), Shown("model", "other"), Shown(text="found 7")]
    expected = [_all_rows(small, shown) for shown in filters]
    assert len(expected[0]) == 2 * TURNS + TURNS + TURNS - 1
    _large(monkeypatch)
    large = OpenRun(str(run), None)
    assert not large.is_indexed and len(large.listed(Shown())) == 2 * TURNS
    assert large.opens_at == small.opens_at
    steps = 0
    while not (large.is_indexed and large.table.is_done):
        large.work()
        steps += 1
    assert steps >= 2
    assert [_all_rows(large, shown) for shown in filters] == expected


def test_figures_of_turns_are_those_of_the_whole_run(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = Recording.load(run)
    bill = Ledger().bill(recording.calls())
    _large(monkeypatch)
    for _ in range(2):  # read, then from the cache
        table = TurnTable(Recording.load(run), Ledger())
        table.look(1e9)
        assert table.is_done and len(table) == TURNS and table.lanes == ["main", "other"]
        assert (table.bill.usd, table.bill.priced) == (bill.usd, bill.priced)
        assert [table[at].out for at in range(TURNS)] == list(range(TURNS))
        assert table[7].begin == recording.turns()[7].request.index and table[7].lane == "other"
    monkeypatch.setattr(TurnTable, "_read", None)
    assert TurnTable(Recording.load(run), Ledger()).is_done
    bins = table.bins(1, TURNS, 10)
    assert [(each.first, each.last) for each in bins][:2] == [(1, 12), (13, 24)]
    assert sum(each.out for each in bins) == sum(range(TURNS))
    other = table.bins(1, TURNS, 10, "other")
    assert sum(each.turns for each in other) == TURNS // 2 and other[0].first == 2
