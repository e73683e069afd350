"""The expression language: what it says, what it refuses, and that it cannot be made to do anything else."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reenact import Debugger, Tap, UsageError
from reenact.debugger.expressions import Expr
from reenact.tracefile.events.event import Event
from support.examples import up_to


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    path = tmp_path_factory.mktemp("expr") / "run.jsonl"
    tap = Tap(path)
    tap.record_tool_call("search", {"q": "hotels", "n": [1, 2, 3], "deep": {"a b": 4}, "yes": True})
    tap.record_tool_result("search", None, error="")
    tap.close()
    return list(Debugger.load(path).all())


@pytest.mark.parametrize(
    ("text", "on_call", "on_result"),
    [
        ('tool == "search"', True, True),
        ('kind == "tool.called" and args.q == "hotels"', True, False),
        ('args["deep"]["a b"] + 1', 5, None),
        ("args.n[1]", 2, None),
        ("args.n[-1]", 3, None),
        ("args.n[7]", None, None),
        ("len(args.n) > 2", True, False),
        ("any(x > 2 for x in args.n)", True, False),
        ("all(x > 0 for x in args.n if x > 1)", True, True),
        ("any(args.n)", True, False),
        ("error is not None", False, True),
        ("not error", True, False),
        ("error.type", None, None),
        (r'match("hot\w+", args)', True, False),
        ('"hot" in args.q', True, False),
        ('tool in ["search", "book"]', True, True),
        ('tool not in ["search"]', False, False),
        ("1 < index < 3", False, False),
        ("index - 1", -1, 0),
        ("-index", 0, -1),
        ("args.q[0:3]", "hot", None),
        ("e.kind", "tool.called", "tool.result"),
        ("args.yes == true", True, False),
        ("missing.deeper.still > 3", False, False),
        ('"a" < 3', False, False),
        ("1 / 0", None, None),
        ('"a" * 9', None, None),
        ('"a" + "b"', "ab", "ab"),
        ('"call" if kind == "tool.called" else "end"', "call", "end"),
        ("nothing or tool", "search", "search"),
    ],
)
def test_what_it_says(events: list[Event], text: str, on_call: Any, on_result: Any) -> None:
    assert [Expr(text)(event) for event in events] == [on_call, on_result]


def test_an_empty_error_counts_as_true(events: list[Event]) -> None:
    assert [Expr("error").matches(event) for event in events] == [False, True]
    assert [Expr("error and tool").matches(event) for event in events] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        'open("x")', "print(1)", "a(b)(c)", "e._raw()", "().__class__", "args.__class__", "_x", "lambda: 1",
        "[i for i in args]", "{1: 2}", "2 ** 9", "1 << 9", "x := 3", "await x", "(yield)", 'f"{x}"', 'b"x"',
        "...", "1j", "len(1, 2)", "len(x=1)", "any(x for x in y for z in x)", 'match(args.q, "x")',
        'match("(", content)', "", "   ", "1 if", "(" * 100, "-" * 100 + "1", "+1", "a " + "and a " * 400,
        "x" * 3000, "kind = 1", "\x00", "summary()", "str.format", 'getattr(e, "x")',
    ],
)  # fmt: skip
def test_what_it_refuses_is_a_sentence(text: str, events: list[Event]) -> None:
    if text == "str.format":  # nothing but a field that is not there
        assert Expr(text)(events[0]) is None
        return
    with pytest.raises(UsageError):
        Expr(text)


def test_an_assignment_gets_a_hint() -> None:
    with pytest.raises(UsageError) as reported:
        Expr('kind = "x"')
    assert reported.value.hint == "== compares, = does not"


PIECES = st.sampled_from(
    ["e", "args", "error", ".", "q", "[", "]", "(", ")", "0", "-1", '"a"', " ", "==", "<", "and ", "or ", "not ",
     "in ", "len", "any", "match", ",", "for x in ", "if ", "else ", "+", "*", "%", "__class__", "open", "import",
     "lambda:", "{", "}", ":", "**", "\\", "'", "\n", "é", "x"]
)  # fmt: skip


@settings(up_to(400), deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_an_expression_or_a_sentence_and_calls_nothing(events: list[Event], text: str) -> None:
    called: list[str] = []

    def watch(frame: Any, event: str, arg: Any) -> None:
        if event == "c_call" and getattr(arg, "__name__", "") in ("open", "eval", "exec", "__import__"):
            called.append(arg.__name__)

    try:
        expr = Expr(text)
    except UsageError:
        return
    sys.setprofile(watch)
    try:
        values = [expr(event) for event in events]
    finally:
        sys.setprofile(None)
    assert called == []
    assert all(isinstance(v, str | int | float | list | dict | Event | None) for v in values)
