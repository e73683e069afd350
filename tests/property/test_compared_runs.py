"""Properties of comparing runs: nothing differs from itself, sides mirror, ids do not count, one insert is one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reenact import Recording, diff
from reenact.compare.comparison import Comparison
from reenact.compare.masks import Masks
from support.examples import up_to
from support.sample_runs import Sample, record

Words = st.text("ab c{}[]:\"'é\n", max_size=12)
Step = st.one_of(
    st.tuples(st.just("say"), Words, Words),
    st.tuples(st.just("call"), st.sampled_from(["search", "price", "book"]), Words),
)
Steps = st.lists(Step, min_size=1, max_size=7)


def conversation(steps: list[tuple[str, str, str]], ids: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "s"}, {"role": "user", "content": "go"}]
    for number, (sort, name, text) in enumerate(steps):
        if sort == "say":
            messages += [{"role": "assistant", "content": name}, {"role": "user", "content": text or "more"}]
        else:
            key = f"call_{ids}{number}"
            function = {"name": name, "arguments": json.dumps({"n": len(text) % 3})}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": key, "type": "function", "function": function}],
                }
            )
            messages.append({"role": "tool", "tool_call_id": key, "content": text})
    return [*messages, {"role": "assistant", "content": "done"}]


def compared(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> tuple[Any, Any]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            record(Sample("run", None, each), Path(folder, f"{n}.jsonl"))
            for n, each in enumerate((one, other))
        ]
        return diff(*paths), diff(*reversed(paths))


@up_to(200)
@given(Steps)
def test_the_same_steps_with_other_ids_are_the_same_run(steps: list[tuple[str, str, str]]) -> None:
    found, mirrored = compared(conversation(steps, "a"), conversation(steps, "b"))
    assert found.verdict == mirrored.verdict == "same" and not found.differences


@up_to(200)
@given(Steps, Steps)
def test_the_sides_mirror_each_other(
    one: list[tuple[str, str, str]], other: list[tuple[str, str, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            Recording.load(record(Sample("run", None, conversation(each, ids)), Path(folder, f"{ids}.jsonl")))
            for ids, each in zip("ab", (one, other), strict=True)
        ]
        found, mirrored = (Comparison.of(left, right, Masks()) for left, right in (runs, reversed(runs)))
        assert pairs_of(found) == [(left, right) for right, left in pairs_of(mirrored)]
        assert differences_of(found) == [
            (MIRRORED.get(cause, cause), *rest, left, right)
            for cause, *rest, right, left in differences_of(mirrored)
        ]


MIRRORED = {"extra-step": "missing-step", "missing-step": "extra-step"}


def pairs_of(comparison: Comparison) -> list[tuple[int | None, int | None]]:
    return [(one and one.number, other and other.number) for (one, other), _ in comparison.pairs]


def differences_of(comparison: Comparison) -> list[tuple[Any, ...]]:
    return [
        (
            each.cause,
            each.detail,
            each.follows,
            [step.number for step in each.left],
            [step.number for step in each.right],
        )
        for each in comparison.walk.found
    ]


@up_to(200)
@given(Steps, st.integers(0, 7), st.text("xyz", min_size=3, max_size=9))
def test_an_inserted_step_is_one_difference(steps: list[tuple[str, str, str]], at: int, text: str) -> None:
    at = min(at, len(steps))
    inserted = [*steps[:at], ("call", "weather", text), *steps[at:]]
    found, mirrored = compared(conversation(steps, "a"), conversation(inserted, "b"))
    assert [each.cause for each in found.differences] == ["extra-step"], found.differences
    assert [each.cause for each in mirrored.differences] == ["missing-step"]
