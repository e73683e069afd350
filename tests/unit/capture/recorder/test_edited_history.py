"""Recording a request of an agent that edits its history encodes what is new, not the conversation again."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording, Tap, lines
from support.examples import long
from support.work import calls_of

REQUEST = "model.request"
TURNS = 120
SECRET = "sk-ant-api03-" + "Zk3vQ9xT7bLm2NcR8wYpHd5sJgFaUe" * 3

Messages = list[dict[str, Any]]


def clear_old_results(messages: Messages, turn: int) -> Messages:
    if len(messages) > 7:
        messages[-7]["content"][0]["content"] = "[cleared]"
    return messages


def slide(messages: Messages, turn: int) -> Messages:
    return [messages[0], *messages[-20:]] if len(messages) > 21 else messages


def edit_in_place(messages: Messages, turn: int) -> Messages:
    if turn % 10 == 0:
        messages[len(messages) // 3]["note"] = f"seen at turn {turn}"
    return messages


def drop_two(messages: Messages, turn: int) -> Messages:
    """Leave out two places, so that what comes after each has moved by another distance."""
    return [each for at, each in enumerate(messages) if at not in (3, 9, 10)] if turn % 2 else messages


def move_marker(messages: Messages, turn: int) -> Messages:
    for message in messages:
        message["content"][0].pop("cache_control", None)
    messages[-1]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return messages


SHAPES = [clear_old_results, slide, edit_in_place, drop_two, move_marker]


def turn_of(turn: int, secret: str) -> Messages:
    use = {"type": "tool_use", "id": f"toolu_{turn}", "name": "run", "input": {"n": turn, "ratio": turn / 7}}
    text = f"result {turn} " * 8 + secret
    result = {"type": "tool_result", "tool_use_id": f"toolu_{turn}", "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


@pytest.mark.parametrize("secret", [long(""), SECRET], ids=["plain", "redacted"])
@pytest.mark.parametrize("change", SHAPES, ids=lambda change: change.__name__)
def test_a_request_encodes_as_many_messages_late_in_a_run_as_early(
    tmp_path: Path, change: Callable[[Messages, int], Messages], secret: str
) -> None:
    path = tmp_path / "run.jsonl"
    messages: Messages = [{"role": "user", "content": [{"type": "text", "text": "go"}]}]
    sent: list[str] = []
    counts: list[int] = []
    with Tap(path) as tap:
        for turn in range(TURNS):
            messages += turn_of(turn, secret)
            body = {"model": "m", "messages": change(messages, turn)}
            sent.append(json.dumps(body))
            counts.append(calls_of(partial(tap.record_model_request, body), only=lines.dumps.__code__))
    early, late = sum(counts[30:60]), sum(counts[-30:])
    assert late <= 1.3 * early + 30, counts  # before, with the length of the conversation: 2 to 3 times
    assert late / 30 < 25, counts

    recording = Recording.load(str(path))
    rebuilt = [json.dumps(event.payload["body"]) for event in recording.events if event.kind == REQUEST]
    assert recording.findings == []
    if not secret:
        assert rebuilt == sent
    else:
        assert SECRET not in path.read_text()
        assert [text.count("<redacted:") for text in rebuilt] == [text.count(SECRET) for text in sent]


def test_equal_messages_under_another_name_are_not_referred_to(tmp_path: Path) -> None:
    """A reference names a call and a place; the list is the one it stands in."""
    path = tmp_path / "run.jsonl"
    lists: dict[str, Messages] = {"messages": [], "input": []}
    sent: list[str] = []
    with Tap(path, redact=False) as tap:
        for turn in range(40):
            for name, messages in lists.items():
                messages += turn_of(turn if name == "messages" else turn // 2, "")
                body = {"model": "m", name: clear_old_results(slide(messages, turn), turn)}
                sent.append(json.dumps(body))
                tap.record_model_request(body)
    recording = Recording.load(str(path))
    rebuilt = [json.dumps(event.payload["body"]) for event in recording.events if event.kind == REQUEST]
    assert rebuilt == sent
    assert recording.findings == []
