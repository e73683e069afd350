"""Long runs, of which a comparison does not read what both have in common: the report is the same as if it did."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording, Tap
from reenact.compare import equal_lines
from reenact.compare.comparison import Comparison
from reenact.compare.masks import Masks
from reenact.compare.report import CANNOT_TELL, DIFFERENT, SAME, RunDiff
from support.examples import one_in
from support.faults import NAMES, plant
from support.sample_runs import record_in

Messages = list[dict[str, Any]]
OWN: list[Messages] = [
    each["messages"] for each in json.loads((Path(__file__).parent / "conversations.json").read_text())
]
CONVERSATIONS = 48
"""As many as make a file over a megabyte, of which only the places of its lines are read at first."""


def conversations(ids: str) -> list[Messages]:
    """Conversations about different tasks; every run has ids of its own."""
    found = []
    for number in range(CONVERSATIONS):
        messages = copy.deepcopy(OWN[number % len(OWN)])
        for message in messages:
            if message["role"] == "user":
                message["content"] = f"Task {number}, {message['content']}" + f" detail {number}" * 900
        text = json.dumps(messages)
        for use in (use for message in messages for use in message.get("tool_calls") or ()):
            text = text.replace(use["id"], f"call_{ids}_{number}_{use['id'][-6:]}")
        found.append(json.loads(text))
    return found


def record(path: Path, some: list[Messages]) -> Recording:
    with Tap(path, name="long") as tap:
        for messages in some:
            record_in(tap, messages, {"model": "gpt-4o"})
    return Recording.load(path)


def both_ways(left: Recording, right: Recording, monkeypatch: pytest.MonkeyPatch) -> tuple[RunDiff, RunDiff]:
    """The report of a comparison that leaves stretches out, and of one that reads everything."""
    short = Comparison.of(left, right, Masks())
    monkeypatch.setattr(equal_lines, "LEAST", 1 << 60)
    whole = Comparison.of(Recording.load(left.path), Recording.load(right.path), Masks())
    assert not whole.left.equal
    assert len(short.left.steps) < len(whole.left.steps) / 2, "most of it is left out"
    return short.report(), whole.report()


@pytest.mark.parametrize("fault", one_in(3, [name for name in NAMES if name != "model"]))
def test_the_report_is_the_same_as_if_all_were_read(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(fault)
    before, after = conversations("a"), conversations("b")
    for number in sorted(rng.sample(range(CONVERSATIONS), 3)):
        planted = plant(after[number], [fault], rng.randrange(1000))
        if planted is not None:
            before[number], after[number] = planted.before, planted.after
    left, right = record(tmp_path / "a.jsonl", before), record(tmp_path / "b.jsonl", after)
    short, whole = both_ways(left, right, monkeypatch)
    assert short == whole
    assert short.left.steps > 600


def unrecorded_tools(tap: Tap) -> None:
    """A response requests two tools; only what the model was sent shows that they ran."""
    uses = [
        {"type": "tool_use", "id": f"toolu_{tap.run_id}_{name}", "name": name, "input": {}} for name in "ab"
    ]
    messages: Messages = [{"role": "user", "content": "Go."}]
    call = tap.record_model_request({"model": "m", "messages": messages}, "anthropic")
    tap.record_model_response({"type": "message", "role": "assistant", "content": uses}, call=call)
    results = [{"type": "tool_result", "tool_use_id": use["id"], "content": use["name"]} for use in uses]
    messages += [{"role": "assistant", "content": uses}, {"role": "user", "content": results}]
    call = tap.record_model_request({"model": "m", "messages": messages}, "anthropic")
    done = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    tap.record_model_response(done, call=call)


def redacted(tap: Tap) -> None:
    """The result of a tool is not in the file as it was."""
    called = tap.record_tool_call("login", {"user": "casa"})
    tap.record_tool_result("login", {"password": f"hunter2-{tap.run_id}"}, call=called)


def results_that_crossed(tap: Tap) -> None:
    """Two calls run side by side; in one run each gets the result of the other."""
    calls = [tap.record_tool_call("price", {"hotel": hotel}) for hotel in ("casa", "mar")]
    for call, price in zip(calls if "a.jsonl" in tap.path else reversed(calls), (82, 97), strict=True):
        tap.record_tool_result("price", price, call=call)


@pytest.mark.parametrize("special", [unrecorded_tools, redacted, results_that_crossed])
def test_what_bytes_cannot_tell_is_read(
    special: Callable[[Tap], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = []
    for ids in "ab":
        with Tap(tmp_path / f"{ids}.jsonl", name="long") as tap:
            for number, messages in enumerate(conversations(ids)):
                record_in(tap, messages, {"model": "gpt-4o"})
                if number == CONVERSATIONS // 2:
                    special(tap)
        runs.append(Recording.load(tmp_path / f"{ids}.jsonl"))
    short, whole = both_ways(runs[0], runs[1], monkeypatch)
    assert short == whole
    assert short.verdict == {unrecorded_tools: SAME, redacted: CANNOT_TELL}.get(special, DIFFERENT)
