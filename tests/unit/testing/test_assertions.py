"""assert_trajectory: exactly these, any order, a part of them; a difference is shown line by line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import UsageError
from reenact.testing import assert_trajectory, write_trace
from reenact.testing.assertions import Expected, difference, parse_expected

MADE = [
    ("search", {"q": "Rome", "max": 3}),
    ("search", {"q": "Oslo"}),
    ("book", {"trip": {"city": "Rome", "days": 2}}),
]


@pytest.mark.parametrize(
    ("expected", "fits"),
    [
        (["search", "search", "book"], {"ordered", "any-order", "subset", "subsequence"}),
        (["book", "search", "search"], {"any-order", "subset"}),
        (["search", "book"], {"subset", "subsequence"}),
        (["book", "search"], {"subset"}),
        ([], {"subset", "subsequence"}),
        (["search", "search", "search"], set()),
        ([("search", {"q": "Oslo"}), "search", "book"], {"any-order", "subset"}),
        (
            ["search", ("search", {"q": "Rome"}), "book"],
            {"any-order", "subset"},
        ),  # the first takes what is left
        ([("book", {"trip": {"city": "Rome"}})], {"subset", "subsequence"}),
        ([("book", {"trip": {"city": "Oslo"}})], set()),
        ([("search", {"q": "Rome", "min": 1})], set()),
    ],
)
def test_which_calls_fit(expected: list[object], fits: set[str]) -> None:
    hows = ("ordered", "any-order", "subset", "subsequence")
    assert {how for how in hows if difference(MADE, parse_expected(expected), how) is None} == fits


@given(st.lists(st.sampled_from("abc"), max_size=6), st.lists(st.sampled_from("abc"), max_size=6))
def test_the_ways_agree_with_their_definitions(made: list[str], expected: list[str]) -> None:
    calls, wanted = [(name, {}) for name in made], [Expected(name) for name in expected]
    fits = {
        how: difference(calls, wanted, how) is None
        for how in ("ordered", "any-order", "subset", "subsequence")
    }
    rest = iter(made)
    assert fits == {
        "ordered": made == expected,
        "any-order": sorted(made) == sorted(expected),
        "subset": all(made.count(name) >= expected.count(name) for name in expected),
        "subsequence": all(name in rest for name in expected),
    }


def test_a_difference_is_shown_where_it_is(tmp_path: Path) -> None:
    events = [
        ("tool.called", {"call": f"{number:016x}", "tool": name, "args": args})
        for number, (name, args) in enumerate(MADE)
    ]
    path = write_trace(tmp_path / "run.jsonl", events)
    assert_trajectory(path, ["search", "search", "book"])
    with pytest.raises(AssertionError) as failed:
        assert_trajectory(path, ["search", ("book", {"trip": {"city": "Oslo"}})])
    assert str(failed.value).splitlines()[:7] == [
        "expected exactly these calls, in this order:",
        '    search({"q": "Rome", "max": 3})',
        '  - book({"trip": {"city": "Oslo"}})',
        '  + search({"q": "Oslo"})',
        '  + book({"trip": {"city": "Rome", "days": 2}})',
        "  (- expected and not called, + called and not expected)",
        "the run:",
    ]


@pytest.mark.parametrize("wrong", ["search", [3], [("search", 1)], [("a", {}, 1)]])
def test_what_is_no_list_of_calls_is_reported(wrong: object) -> None:
    with pytest.raises(UsageError, match="expected"):
        assert_trajectory("nowhere.jsonl", wrong)  # type: ignore[arg-type]


def test_an_unknown_way_is_reported() -> None:
    with pytest.raises(UsageError, match="how='sorted'"):
        difference([], [], "sorted")
