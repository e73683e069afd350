"""The parts of the turn view: pieces of messages, texts in lines."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.cli.view import turns
from reenact.cli.view.turns import wrap
from reenact.recording.prompt import pieces_of, system_text, tool_names
from reenact.tracefile.events.text import width_of
from reenact.wire.results import comparable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "type", "content", "parts", "text", "tool_calls", "toolResult", "x"])
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def shown_pieces(message):
    return [(piece.role, piece.sort, piece.text, piece.id) for piece in pieces_of(message)]


@pytest.mark.parametrize(
    "message, expected",
    [
        ({"role": "user", "content": "hi"}, [("user", "text", "hi", None)]),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]},
            [("user", "result", "ok", "t1")],
        ),
        ({"role": "tool", "tool_call_id": "c1", "content": "ok"}, [("tool", "result", "ok", "c1")]),
        ({"role": "tool", "tool_call_id": "c1", "content": ""}, [("tool", "result", "", "c1")]),
        (
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            [("tool", "result", "a\nb", "c1")],
        ),
        ({"type": "function_call_output", "call_id": "c1", "output": "ok"}, [("tool", "result", "ok", "c1")]),
        (
            {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {"a": 1}}}]},
            [("user", "result", '{"a": 1}', "look")],
        ),
        (
            {"role": "user", "content": [{"toolResult": {"toolUseId": "b1", "content": [{"text": "ok"}]}}]},
            [("user", "result", "ok", "b1")],
        ),
        (
            {"role": "assistant", "content": [{"type": "text", "text": "see "}, {"type": "text", "text": "[1]"}]},
            [("assistant", "text", "see [1]", None)],
        ),
        (
            {"role": "assistant", "reasoning_content": "hm", "content": "yes"},
            [("assistant", "reasoning", "hm", None), ("assistant", "text", "yes", None)],
        ),
        ({"role": "model", "parts": [{"text": "hi"}]}, [("assistant", "text", "hi", None)]),
        (
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": []},
            [("assistant", "reasoning", "hm", None)],
        ),
        ("bare", [("user", "text", "bare", None)]),
        (None, []),
    ],
)  # fmt: skip
def test_messages_of_every_provider_become_pieces(message, expected):
    assert shown_pieces(message) == expected


@given(JSON)
def test_no_message_is_too_odd(message):
    for piece in pieces_of(message):
        assert isinstance(piece.role, str) and isinstance(piece.text, str)
    assert isinstance(system_text(message), str) and isinstance(tool_names(message), list)


@pytest.mark.parametrize(
    "tools",
    [
        [{"name": "search", "input_schema": {}}, {"name": "book"}],
        [{"type": "function", "function": {"name": "search"}}, {"type": "function", "name": "book"}],
        [{"functionDeclarations": [{"name": "search"}, {"name": "book"}]}],
        {"tools": [{"toolSpec": {"name": "search"}}, {"toolSpec": {"name": "book"}}]},
    ],
)
def test_tools_have_names_in_every_shape(tools):
    assert tool_names(tools) == ["search", "book"]


@given(st.text(), st.integers(8, 60), st.integers(8, 60), st.integers(1, 5))
def test_wrapped_lines_fit_and_what_is_cut_is_marked(text, first, room, lines):
    found, hidden = wrap(text, first, room, lines)
    assert 1 <= len(found) <= lines + 1
    assert all(width_of(line) <= (room if number else first) for number, line in enumerate(found))
    shown = "".join("".join(found).split())
    if text.isprintable() and text.isascii():
        assert hidden > 0 or shown == "".join(text.split())


def test_the_examples_of_the_layout_hold():
    assert doctest.testmod(turns).failed == 0


def test_results_compare_by_what_they_say():
    assert comparable('{"b": 1, "a": [2]}') == comparable('{"a":[2],"b":1}')
    assert comparable('"text"') == comparable(" text\n") != comparable("other")
