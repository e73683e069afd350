"""The one grammar that chooses among runs."""

from __future__ import annotations

import datetime

import pytest

from reenact import runs
from reenact.errors import UsageError
from reenact.recording.listing import head_and_tail
from reenact.stats.rows import RunStats, nearest_rank
from reenact.stats.run_filters import DEEP, moment, parse_filter
from support.many import agent


@pytest.fixture
def path(tmp_path):
    meta = {"environment": "prod", "shard": 7, "canary": True, "turns": "many"}
    tools = {"tools": ("search", "book"), "fails": ValueError("sold out")}
    return agent(tmp_path / "a.jsonl", name="trip", meta=meta, stop="max_tokens", **tools)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("environment=prod", True),
        ("environment==prod", True),
        ('environment == "prod"', True),
        ("environment = 'prod'", True),
        ("environment!=prod", False),
        ("environment~ro", True),
        ("meta.environment=prod", True),
        ("shard=7", True),
        ("shard>6", True),
        ("shard<=6.5", False),
        ("canary=true", True),
        ("missing=x", False),
        ("missing!=x", True),
        ("missing>0", False),
        ("name=trip", True),
        ("status=ok", True),
        ("path~a.jsonl", True),
        ("tokens>100", True),
        ("tokens>=1,000", False),
        ("turns=many", True),  # its metadata says so, whatever we count
        ("errors=1", True),
        ("errors<1", False),
    ],
)
def test_ls_and_runs_agree_on_what_both_know(path, text, holds):
    condition = parse_filter(text)
    assert condition.holds(runs(path)[0]) is holds
    assert condition.holds(head_and_tail(str(path))[0]) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("stop_reason=max_tokens", True),
        ("stop_reason!=max_tokens", False),
        ("model~sonnet", True),
        ("tool=book", True),
        ("tool!=search", False),
        ("error=ValueError", True),
        ("tool_calls>1", True),
        ("llm_calls=1", True),
        ("usd>0.0005", True),
        ("usd<0.0005", False),
        ("duration_ms<60000", True),
        ("duration_ms>=0", True),
    ],
)
def test_what_only_whole_files_tell(path, text, holds):
    condition = parse_filter(text)
    assert condition.key in DEEP
    assert condition.holds(runs(path)[0]) is holds


@pytest.mark.parametrize("text", ["", "environment", "=x", " =x", "~x", "tokens>many", "tokens>"])
def test_a_filter_that_compares_nothing_is_refused(path, text):
    with pytest.raises(UsageError) as reported:
        runs(path, where=text)
    assert reported.value.hint


def test_conditions_may_be_texts_functions_and_keywords(path):
    found = runs(path)
    assert len(found.where("environment=prod", lambda row: row.tokens > 100, name="trip")) == 1
    assert len(found.where("environment=prod", lambda row: row.tokens > 1000)) == 0
    assert len(runs(path, where=["environment=prod", "shard=7"])) == 1
    assert len(runs(path, where=lambda row: row.failed)) == 0
    assert len(found.where()) == 1


def test_nothing_of_a_filter_is_evaluated(path):
    assert len(runs(path, where="__class__~RunStats")) == 0
    assert len(runs(path, where="totals!=x")) == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1.5 h", 5400), ("7d", 604800), ("2w", 1209600)],
)
def test_a_time_ago(text, seconds):
    assert moment(text, now=10_000_000.0) == 10_000_000.0 - seconds


def test_a_moment_in_any_spelling_is_the_same():
    when = datetime.datetime(2026, 11, 1, 8, 30)
    local = when.timestamp()
    assert moment("2026-11-01T08:30") == moment("2026-11-01 08:30:00") == moment(when) == local
    assert moment("2026-11-01") == moment(datetime.date(2026, 11, 1)) == local - 8.5 * 3600
    assert moment("2026-11-01T08:30:00Z") == moment(when.replace(tzinfo=datetime.UTC))
    assert moment(local) == local


@pytest.mark.parametrize("bad", ["", "soon", "7", "-2h", "7 fortnights", "2026-13-01", None, True, []])
def test_what_is_no_time_is_refused(bad):
    with pytest.raises(UsageError, match="time"):
        moment(bad)


def test_nearest_rank_by_hand():
    assert [nearest_rank(q, [15, 20, 35, 40, 50]) for q in (5, 30, 40, 50, 100)] == [15, 20, 20, 35, 50]
    assert nearest_rank(7, list(range(1, 101))) == 7
    assert nearest_rank(99.9, list(range(1, 1001))) == 999


def test_every_key_is_an_attribute_of_a_run():
    row = RunStats("x")
    from reenact.stats import run_filters

    for key in (*run_filters.TEXTS, *run_filters.NUMBERS, *run_filters.LISTS.values()):
        assert hasattr(row, key)
    for key in set(run_filters.DEEP_NUMBERS) - {"usd"}:
        assert hasattr(row, key)
