"""Whatever stands in the lines of a trace, replay() answers with a list or a sentence, and text can be made of it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reenact import Trace, replay
from reenact.errors import ReenactError
from reenact.wire import pairing
from support.examples import up_to
from support.spoken import SHAPES, record

KEYS = """role content type text parts tool_calls function name arguments id call_id call parent lane tool tool_id body messages
input contents output choices message candidates functionCall toolUse toolUseId $blob $gap $answer $same $cut $hash $float $$x
base keep n chain result error provider url toolConfig tools status ended kind attempt images function_call""".split()
WORDS = """assistant user tool model function_call function_call_output tool_use tool_result search call_1 toolu_1 main
anthropic gemini model.request tool.result llm_call""".split()
words = st.sampled_from(KEYS + WORDS) | st.text(max_size=3)
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)


@functools.cache
def originals(folder: Path) -> dict[str, list[bytes]]:
    """The lines of a run in every shape; no fixture, because Hypothesis prints those."""
    lines = {name: record(folder / f"{name}.jsonl", name).read_bytes().splitlines() for name in SHAPES}
    path = folder / "article.jsonl"
    with Trace(path) as trace:
        use = {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
        trace.step("llm_call", content={"role": "assistant", "content": None, "tool_calls": [use]})
        trace.step("error", tool="search", err="no")
        trace.step("tool_call", name="search", args={})
        trace.step("tool_result", id="call_1", output="x")
        trace.step("llm_call", content="done")
    lines["article"] = path.read_bytes().splitlines()
    return lines


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) in a value."""
    found = []
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(item, dict | list):
            found += places(item)
    return found


@settings(up_to(400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from([*sorted(SHAPES), "article"]),
    changes=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 999), anything), min_size=1, max_size=3),
    which=st.fixed_dictionaries({}, optional={"n": st.integers(0, 8)})
    | st.fixed_dictionaries({"turn": st.integers(1, 3)})
    | st.fixed_dictionaries({"prompt": st.just("?")}),
)
def test_no_value_breaks_it(
    name: str,
    changes: list[tuple[int, int, Any]],
    which: dict[str, Any],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.getbasetemp()
    events = [json.loads(line) for line in originals(folder)[name]]
    for line, place, value in changes:
        found = places(events[line % len(events)])
        container, key = found[place % len(found)]
        container[key] = value
    path = folder / "any.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    try:
        got = replay(path, **which)
    except ReenactError:
        return
    elsewhere = any(finding.code == "not-whole" for finding in got.findings)
    assert pairing.consistent(got, got.provider, kept_elsewhere=elsewhere).length == len(got)
    for target in ("anthropic", "openai", "gemini", "text"):
        got.to(target)
    json.dumps(got.request())
