"""Showing every turn of a run takes work in proportion to the run, whatever the agent does to its history."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording, Tap
from reenact.cli.main import main
from support.examples import long
from support.work import calls_of

Messages = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests put into the cache of prices, or push out of it, would change the number of calls."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


FEW, MANY = 20, 80


def mark_last(messages: Messages) -> Messages:
    for message in messages:
        message["content"][0].pop("cache_control", None)
    messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return messages


def clear_old_results(messages: Messages) -> Messages:
    if len(messages) > 7:
        messages[-7]["content"][0]["content"] = "[cleared]"
    return messages


def slide(messages: Messages) -> Messages:
    return [messages[0], *messages[-12:]] if len(messages) > 13 else messages


def copied(messages: Messages) -> Messages:
    return copy.deepcopy(messages)


def record(path: Path, turns: int, change: Callable[[Messages], Messages]) -> None:
    """Record two conversations that take turns in one lane, one of them with tools."""
    talks: list[Messages] = [
        [{"role": "user", "content": [{"type": "text", "text": f"question {number}"}]}] for number in (0, 1)
    ]
    with Tap(path) as tap:
        for turn in range(turns):
            is_other = turn % 5 == 3
            messages = talks[is_other]
            call = tap.record_model_request({"model": "m", "messages": change(messages)})
            use = {"type": "tool_use", "id": f"toolu_{turn}", "name": "run", "input": {"n": turn}}
            printed = {"type": "text", "text": f"answer {turn}"} if is_other else use
            tap.record_model_response(
                {"type": "message", "role": "assistant", "content": [printed]}, call=call
            )
            result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": f"result {turn}"}
            block = {"type": "text", "text": f"question {turn}"} if is_other else result
            messages += [
                {"role": "assistant", "content": [copy.deepcopy(printed)]},
                {"role": "user", "content": [block]},
            ]


@pytest.mark.parametrize("more", [[], long(["--json", "--turns"])], ids=["text", "json"])
@pytest.mark.parametrize(
    "change", [copied, long(mark_last), clear_old_results, long(slide)], ids=lambda one: one.__name__
)
def test_four_times_the_turns_take_four_times_the_work(
    tmp_path: Path, change: Callable[[Messages], Messages], more: list[str]
) -> None:
    work = []
    for turns in (FEW, FEW, MANY):  # the first time modules are loaded
        path = tmp_path / f"{turns}.jsonl"
        if not path.exists():
            record(path, turns, change)
        out = io.StringIO()
        with redirect_stdout(out):
            work.append(calls_of(partial(main, ["show", "--all", *more, str(path)])))
        assert out.getvalue().count('"turn": ' if more else "run(n=") == (turns if more else turns * 4 // 5)
    assert work[2] <= 1.25 * MANY / FEW * work[1], work


def test_a_tool_that_was_never_answered_is_not_sought_in_all_later_prompts_again(tmp_path: Path) -> None:
    work = []
    for turns in (FEW, FEW, MANY):
        path = tmp_path / f"{turns}.jsonl"
        if not path.exists():
            talk_on(path, turns)
        recording = Recording.load(path)
        recording.calls()
        found: list[Any] = []
        work.append(calls_of(partial(recorded_tools, recording, found)))
        assert [tool.tool for tool in found if tool.end is None] == ["run"]
        assert len(found) == 1 + len(range(2, turns, 3))
    assert work[2] <= 1.25 * MANY / FEW * work[1], work


def recorded_tools(recording: Recording, found: list[Any]) -> None:
    found += [call for call in recording.calls(derived=True) if call.derived]


def talk_on(path: Path, turns: int) -> None:
    """Record an agent that drops a tool the model asks for, and goes on talking."""
    messages: Messages = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    use = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {}}
    with Tap(path) as tap:
        for turn in range(turns):
            call = tap.record_model_request({"model": "m", "messages": messages})
            printed = [{"type": "text", "text": f"answer {turn}"}, *([use] if turn == 1 else [])]
            block = {"type": "text", "text": f"question {turn}"}
            if turn % 3 == 2:
                printed += [{**use, "id": f"toolu_{turn}", "name": "look"}]
                block = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": "seen"}
            tap.record_model_response({"type": "message", "role": "assistant", "content": printed}, call=call)
            kept = printed[:1] if turn == 1 else printed
            messages += [{"role": "assistant", "content": kept}, {"role": "user", "content": [block]}]
