"""replay() of the first article's loop: no request is recorded, only answers and results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reenact import StepLog, Tap, Trace, replay
from reenact.errors import NoSuchEvent, TraceFileError
from support.spoken import codes

ARTICLES = Path(__file__).parents[2] / "articles"
PROMPT = "Plan a 3-day trip to Lisbon under $800."


def call(id_: str, name: str, **args: Any) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(args)}}


def assistant_message(content: str | None, *calls: dict[str, Any]) -> dict[str, Any]:
    """A message as the SDK's model_dump() gives it: with keys that the API refuses as null."""
    return {
        "role": "assistant",
        "content": content,
        "refusal": None,
        "function_call": None,
        "tool_calls": [*calls] or None,
    }


def loop(trace: Any) -> None:
    """Two tools in one answer, one of which fails, as the article writes them, then the final words."""
    trace.step("llm_call", turn=0, content=assistant_message(None, call("c1", "hotels"), call("c2", "flaky")))
    trace.step("tool_call", name="hotels", args={})
    trace.step("tool_result", id="c1", output="x" * 9000)
    trace.step("error", tool="flaky", err="no answer")
    trace.step("tool_call", name="flaky", args={})
    trace.step("tool_result", id="c2", output="error: no answer")
    trace.step("llm_call", turn=1, content=assistant_message("Here is the plan."))
    trace.step("final", text="Here is the plan.")


ASSISTANT = {"role": "assistant", "content": None, "tool_calls": [call("c1", "hotels"), call("c2", "flaky")]}
TOOLS = [
    {"role": "tool", "tool_call_id": "c1", "content": "x" * 9000},
    {"role": "tool", "tool_call_id": "c2", "content": "error: no answer"},
]
FINAL = {"role": "assistant", "content": "Here is the plan."}
USER = {"role": "user", "content": PROMPT}


def test_every_prefix_is_one_that_a_provider_accepts(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        loop(trace)
    got = [replay(path, n, prompt=PROMPT) for n in range(9)]
    assert [list(each) for each in got] == [
        *[[USER]] * 6, [USER, ASSISTANT, *TOOLS], *[[USER, ASSISTANT, *TOOLS, FINAL]] * 2,
    ]  # fmt: skip
    assert ["cut" in codes(each) for each in got] == [False, *[True] * 5, False, False, False]
    assert got[8].provider == "openai"


def test_by_turn_everything_before_the_answer(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        loop(trace)
    assert list(replay(path, turn=1, prompt=PROMPT)) == [USER]
    assert list(replay(path, turn=2, prompt=PROMPT)) == [USER, ASSISTANT, *TOOLS]
    with pytest.raises(NoSuchEvent):
        replay(path, turn=3)


def test_without_a_prompt_it_begins_with_the_model_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        loop(trace)
    got = replay(path)
    assert (list(got), codes(got)) == ([ASSISTANT, *TOOLS, FINAL], ["no-prompt", "rebuilt"])
    assert replay(path, prompt=[{"role": "system", "content": "S"}, USER])[:2] == [
        {"role": "system", "content": "S"},
        USER,
    ]
    assert list(replay(path, 0)) == []


def test_the_articles_own_loop_as_it_is_printed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ARTICLES / "lisbon_agent.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("sent 6 messages; longest 9000")
    got = replay(tmp_path / "traces" / "run.jsonl", prompt=PROMPT)
    roles = [message["role"] for message in got]
    assert roles == ["user", "assistant", "tool", "tool", "assistant", "tool", "assistant"]
    # The loop cuts the output before it is recorded; that the model saw more can only be said.
    assert (len(got[5]["content"]), "capped" in codes(got)) == (4000, True)


def test_a_file_of_the_articles_own_recorder_with_two_runs_and_a_torn_end(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = []
    for run in ("aaaaaaaa", "bbbbbbbb"):
        lines += [
            {
                "ts": 1.5e9,
                "run": run,
                "kind": "llm_call",
                "turn": 0,
                "content": assistant_message(None, call("c1", run)),
            },
            {"ts": 1.5e9, "run": run, "kind": "tool_call", "name": run, "args": {}},
            {"ts": 1.5e9, "run": run, "kind": "tool_result", "id": "c1", "output": f"of {run}"},
        ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text + '{"ts": 1.5e9, "run": "bbbbbbbb", "kind": "llm_c')
    newest = replay(path, prompt="?")
    assert [message["role"] for message in newest] == ["user", "assistant", "tool"]
    assert newest[2]["content"] == "of bbbbbbbb" and {"several-runs", "torn"} <= set(codes(newest))
    assert replay(path, prompt="?", run="aaaaaaaa")[2]["content"] == "of aaaaaaaa"


def anthropic_answer(*blocks: Any) -> list[Any]:
    return list(blocks)


def test_other_shapes_get_their_own_tool_messages(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}
    path = tmp_path / "anthropic.jsonl"
    with Trace(path) as trace:
        trace.step("llm_call", content=[use])
        trace.step("error", tool="search", err="no such city")
        trace.step("tool_call", name="search", args={})
        trace.step("tool_result", id="toolu_1", output="error: no such city")
    got = replay(path, prompt="?")
    block = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": "error: no such city",
        "is_error": True,
    }
    assert list(got) == [
        {"role": "user", "content": "?"}, {"role": "assistant", "content": [use]}, {"role": "user", "content": [block]},
    ]  # fmt: skip
    assert got.provider == "anthropic"
    path = tmp_path / "gemini.jsonl"
    with Trace(path) as trace:
        parts = [{"functionCall": {"name": "search", "args": {}}}]
        trace.step("llm_call", content={"role": "model", "parts": parts})
        trace.step("tool_call", name="search", args={})
        trace.step("tool_result", output={"eur": 82})
    got = replay(path, prompt="?")
    assert got[0] == {"role": "user", "parts": [{"text": "?"}]}
    assert got[2] == {
        "role": "user",
        "parts": [{"functionResponse": {"name": "search", "response": {"eur": 82}}}],
    }
    assert (got.provider, got.key) == ("gemini", "contents")


def test_whole_responses_may_stand_in_place_of_messages(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        trace.step(
            "llm_call",
            content={"id": "1", "choices": [{"message": assistant_message("yes"), "finish_reason": "stop"}]},
        )
        trace.step("llm_call", content="plain words")
    assert list(replay(path, prompt="?"))[1:] == [
        {"role": "assistant", "content": "yes"}, {"role": "assistant", "content": "plain words"},
    ]  # fmt: skip


def test_answers_of_a_tap_without_requests(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        tap.record_model_response({"choices": [{"message": {"role": "assistant", "content": "hi"}}]})
    assert list(replay(path, prompt="?")) == [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "hi"},
    ]


def test_requests_that_say_nothing_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    lines = [
        {"kind": "llm_request", "ts": 1.5e9, "run_id": "r", "model": "m"},
        {"kind": "llm_response", "ts": 1.5e9, "run_id": "r", "content": "hi"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list(replay(path, prompt="?")) == [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "hi"},
    ]


@pytest.mark.parametrize("content", [None, "", {}, 7])
def test_a_response_without_its_text_ends_the_list(content: object, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        trace.step("llm_call", content=assistant_message("first"))
        trace.step("llm_call", content=content)
        trace.step("llm_call", content=assistant_message("third"))
    got = replay(path, prompt="?")
    assert [message["content"] for message in got] == ["?", "first"]
    assert "lost" in codes(got)
    with pytest.raises(TraceFileError, match="nothing after it"):
        replay(path, strict=True)


def test_a_result_that_answers_nothing_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        trace.step("llm_call", content=assistant_message(None, call("c1", "t")))
        trace.step("tool_call", name="t", args={})
        trace.step("tool_result", id="c9", output="of something else")
        trace.step("tool_result", id="c1", output="ok")
        trace.step("tool_result", id="c1", output="again")
    got = replay(path, prompt="?")
    assert [message["content"] for message in got] == ["?", None, "ok"]
    assert codes(got).count("orphan") == 2


def test_a_log_of_tokens_and_durations_holds_no_message(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with StepLog(path) as log:
        log.record_llm_call("m", 10, 5, "tool_use")
        log.record_tool_call("search", {"q": 1}, "found")
    for which in ({}, {"n": 1}, {"turn": 1}, {"prompt": "?"}):
        assert (list(replay(path, **which)), codes(replay(path, **which))) == ([], ["no-content"])
    with pytest.raises(TraceFileError):
        replay(path, strict=True)


def test_steps_beside_requests_do_not_disturb_them(tmp_path: Path) -> None:
    """A loop that reports the same call to Trace and to Tap."""
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        trace = Trace(tap._own)
        tap.record_model_request({"model": "gpt-5", "messages": [{"role": "user", "content": "real"}]})
        tap.record_model_response({"choices": [{"message": assistant_message("yes")}]})
        trace.step("llm_call", content=assistant_message("yes"))
        trace.step("note", text="anything")
    assert [message["content"] for message in replay(path, 2)] == ["real", "yes"]
    got = replay(path)
    assert [message["content"] for message in got] == ["real"] and "lost" in codes(got)
