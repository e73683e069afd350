"""Properties of comparing runs: nothing differs from itself, sides mirror, ids do not count, one insert is one."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reenact import diff
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
    found, mirrored = compared(conversation(one, "a"), conversation(other, "b"))
    assert found.verdict == mirrored.verdict

    assert len(found.differences) > 0 or found.verdict == "same"
    assert bool(found.roots) == bool(mirrored.roots)
    first, other_first = found.first, mirrored.first
    if first is not None and first.left and first.right and other_first.left and other_first.right:
        assert (first.cause, first.left[0].number) == (other_first.cause, other_first.right[0].number)


@up_to(200)
@given(Steps, st.integers(0, 7), st.text("xyz", min_size=3, max_size=9))
def test_an_inserted_step_is_one_difference(steps: list[tuple[str, str, str]], at: int, text: str) -> None:
    at = min(at, len(steps))
    inserted = [*steps[:at], ("call", "weather", text), *steps[at:]]
    found, mirrored = compared(conversation(steps, "a"), conversation(inserted, "b"))
    assert [each.cause for each in found.differences] == ["extra-step"], found.differences
    assert [each.cause for each in mirrored.differences] == ["missing-step"]
