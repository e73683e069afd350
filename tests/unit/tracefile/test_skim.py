"""Skimming a line gives the same fields as parsing it, but for the large one nobody counts."""

from __future__ import annotations

import json
import sys

import pytest

from reenact.tracefile.light_lines import skimmer
from reenact.tracefile.records import parse
from support.written import Pen

LONG = 'a, "tool": "x", "error": 1 } {"ts": 5, \\ é ' * 300


@pytest.fixture(params=["orjson", "stdlib"])
def skim(request, monkeypatch):
    if request.param == "stdlib":
        monkeypatch.setitem(sys.modules, "orjson", None)
    return skimmer()


def line(kind, **fields):
    return Pen()(kind, **fields).rstrip(b"\n")


@pytest.mark.parametrize(
    ("kind", "large", "fields"),
    [
        ("tool.called", "args", {"call": "c", "parent": "p", "tool": "t", "args": {"q": [LONG]}}),
        ("tool.result", "result", {"call": "c", "tool": "t", "duration_ms": 1.5, "error": None, "result": LONG}),
        ("model.request", "body",
         {"call": "c", "base": "b", "keep": {"model": True, "messages": 1}, "n": 2, "body": {"messages": [LONG]}}),
    ],
)  # fmt: skip
def test_the_large_field_of_a_call_is_left_out(skim, kind, large, fields):
    data = line(kind, **fields)
    whole = parse(data)
    assert len(data) > 4096 and large in whole
    assert skim(data) == {key: value for key, value in whole.items() if key != large}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("model.request", {"call": "c", "body": {"messages": [LONG], "model": "m"}}),  # it says the model
        ("model.request", {"call": "c", "base": "b", "keep": {"messages": 1}, "body": {"messages": [LONG]}}),
        ("model.response", {"call": "c", "usage": {"input": 1}, "body": {"content": LONG}}),
        ("tool.result", {"result": LONG, "error": "a user's own, after the large one"}),
        ("tool_call", {"name": "t", "args": {"q": LONG}}),
        ("note", {"result": LONG, "call": "c"}),
        ("tool.result", {"call": "c", "result": "short", "error": None}),
    ],
)
def test_every_other_line_is_parsed_whole(skim, kind, fields):
    data = line(kind, **fields)
    assert skim(data) == parse(data)


def test_lines_that_ran_together_are_no_line(skim):
    first = line("tool.result", call="c", tool="t", error=None, result=LONG)
    for data in (first + line("note"), first[:-300] + first, b"[1]", b"{"):
        with pytest.raises(ValueError, match=r"."):
            skim(data)


def test_what_one_parser_refuses_the_other_may_read(skim):
    assert skim(b'{"ts": 1, "big": 123456789012345678901234567890}')["big"] == pytest.approx(
        1.2345e29, rel=1e-3
    )
    assert skim(b'{"ts": 1, "odd": NaN}')["odd"] != 0
    assert skim(json.dumps({"lone": "\ud800"}).encode())["lone"] == "\ud800"
