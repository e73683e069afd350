"""``reenact messages``: what the model saw, to be read or to be sent again."""

from __future__ import annotations

import json

import pytest

import reenact
from support.typed import LONG, record_trip, typed, typed_many


@pytest.fixture(scope="module")
def trip(tmp_path_factory):
    return record_trip(tmp_path_factory.mktemp("messages") / "trip.jsonl", fails=False)


def test_which_role_wrote_what_with_sizes_and_long_texts_cut(trip):
    shown = typed("messages", trip)
    lines = shown.out.splitlines()
    assert (shown.code, shown.err) == (0, "")
    assert lines[:8] == [
        "system  15 bytes", "  You plan trips.", "user  11 bytes", "  Plan Lisbon",
        "assistant ▸  toolu_01Ab  18 bytes", '  search(q="hotels")',
        f"◂ search  toolu_01Ab  {len(LONG):,} bytes", "  " + LONG[:600].rstrip(),
    ]  # fmt: skip
    assert lines[8:] == [
        "  … --full shows all", "assistant  19 bytes", "  Hotel Lisboa it is.",
        "4 messages, 0 tools (anthropic, claude-sonnet-4-6)",
    ]  # fmt: skip
    assert "needle" not in shown.out
    assert "needle" in typed("messages", trip, "--full").out


def test_json_is_one_object_that_can_be_sent_again(trip):
    shown = typed("messages", trip, "--turn", "2", "--json")
    (reported,) = shown.rows
    assert reported["messages"] == list(reenact.replay(trip, turn=2))
    assert reported["params"] == {"model": "claude-sonnet-4-6", "max_tokens": 99, "system": "You plan trips."}
    assert (reported["provider"], reported["key"], reported["findings"]) == ("anthropic", "messages", [])


def test_where_to_stop_can_be_named_in_three_ways(trip):
    call = reenact.Recording.load(trip).calls()[1].id
    words = [("--turn", "1"), ("-n", "4"), ("--n", "4"), ("--call", call)]
    counts = [
        len(each.rows[0]["messages"])
        for each in typed_many([("messages", trip, *w, "--json") for w in words])
    ]
    assert counts == [1, 3, 3, 1]


def test_a_cut_is_reported_on_stderr_and_in_json(trip):
    shown = typed("messages", trip, "-n", "2", "--json")
    assert shown.code == 0 and "no result for search (toolu_01Ab)" in shown.err
    assert [finding["code"] for finding in shown.rows[0]["findings"]] == ["cut"]


def test_strict_fails_instead(trip):
    shown = typed("messages", trip, "-n", "2", "--strict")
    assert (shown.code, shown.out) == (2, "")
    assert "no result for search (toolu_01Ab)" in shown.err and "hint:" in shown.err
    assert typed("messages", trip, "-n", "4", "--strict").code == 0


def test_other_shapes(trip):
    openai = typed("messages", trip, "--as", "openai", "--json")
    reported = openai.rows[0]
    assert [message["role"] for message in reported["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert reported["provider"] == "openai" and "the model is still claude" in openai.err
    gemini = typed("messages", trip, "--as", "gemini", "--json").rows[0]
    assert gemini["key"] == "contents" and gemini["messages"][1]["role"] == "model"
    text = typed("messages", trip, "--as", "text").out
    assert text.startswith("system:\nYou plan trips.\n\nuser:\nPlan Lisbon\n") and "needle" in text
    assert typed("messages", trip, "--as", "text", "--json").rows[0]["text"] == text
    assert typed("messages", trip, "--as", "anthropic", "--json").rows[0]["messages"] == list(
        reenact.replay(trip)
    )


def test_a_prompt_for_a_loop_that_recorded_none(tmp_path):
    path = tmp_path / "run.jsonl"
    with reenact.Trace(path) as trace:
        trace.step("llm_call", content="Lisbon is lovely.")
    assert "the prompt was not recorded" in typed("messages", path).err
    (tmp_path / "prompt.txt").write_text("Plan\nLisbon")
    for reported in ("Plan\nLisbon", f"@{tmp_path / 'prompt.txt'}"):
        shown = typed("messages", path, "--prompt", reported)
        assert shown.out.splitlines()[:3] == ["user  11 bytes", "  Plan", "  Lisbon"] and shown.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--turn", "9"), ("--turn", "0"), ("--turn", "x"), ("-n", "-1"), ("--call", "zz"), ("--call", ""),
        ("--turn", "1", "-n", "1"), ("--as", "cohere"), ("--prompt", "@/does/not/exist"), ("--run", "nope"),
    ],
)  # fmt: skip
def test_bad_input_is_a_sentence_and_exit_code_2(words, trip):
    shown = typed("messages", trip, *words)
    assert (shown.code, shown.out) == (2, "") and len(shown.err.split()) > 2


def test_a_prompt_file_that_is_no_text(trip, tmp_path):
    (tmp_path / "p").write_bytes(b"\xff\xfe\x00")
    shown = typed("messages", trip, "--prompt", f"@{tmp_path / 'p'}")
    assert shown.code == 2 and "not UTF-8 text" in shown.err


def test_nothing_of_a_trace_moves_the_terminal(tmp_path):
    path = tmp_path / "run.jsonl"
    evil = "\x1b[2J\x1b]0;owned\x07 \x9b31m\r"
    with reenact.Tap(path) as tap:
        body = {"model": evil, "system": evil, "messages": [{"role": "user", "content": evil}]}
        tap.record_model_request(body, provider="anthropic")
        use = {"type": "tool_use", "id": evil, "name": evil, "input": {evil: evil}}
        tap.record_model_response({"role": "assistant", "content": [use], "stop_reason": "tool_use"})
    for words in ((), ("--full",), ("--as", "text"), ("--as", "openai"), ("--json",)):
        shown = typed("messages", path, *words)
        assert not any(char in shown.out + shown.err for char in "\x1b\x9b\x07\r"), words


def test_bytes_are_base64_in_json(tmp_path):
    path = tmp_path / "run.jsonl"
    with reenact.Tap(path) as tap:
        image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG"}}}
        tap.record_model_request({"modelId": "nova", "messages": [{"role": "user", "content": [image]}]})
    (reported,) = typed("messages", path, "--json").rows
    assert reported["messages"][0]["content"][0]["image"]["source"]["bytes"] == "iVBORw=="
    assert "[image image/png]" in typed("messages", path).out


@pytest.mark.parametrize("columns", ["40", "80"])
def test_a_narrow_terminal_and_ascii_are_enough(trip, columns):
    shown = typed("messages", trip, COLUMNS=columns, PYTHONIOENCODING="ascii")
    assert shown.code == 0 and "assistant +  toolu_01Ab" in shown.out


def test_the_help_has_examples():
    shown = typed("messages", "--help")
    assert shown.code == 0 and "reenact messages @failed" in shown.out


def test_the_json_is_plain_json_whatever_the_messages_hold(tmp_path):
    path = tmp_path / "run.jsonl"
    with reenact.Tap(path) as tap:
        tap.record_model_request({"messages": [{"role": "user", "content": "\ud800 ü", "x": float("nan")}]})
    out = typed("messages", path, "--json").out
    assert json.loads(out)["messages"][0]["x"] == {"$float": "nan"}
