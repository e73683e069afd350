"""No function of the door raises, whatever JSON it is given."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from test_reading_providers import ANSWERS

from reenact.wire import reading
from support.examples import up_to

KEYS = """type role content text messages input contents output choices message error usage usageMetadata candidates
parts functionCall functionResponse tool_calls function function_call name arguments args id call_id stop_reason stopReason
finish_reason finishReason status done done_reason thinking reasoning images system tools input_schema max_tokens model
tool_use tool_result function_call_output reasoning_text refusal toolUse toolResult reasoningContent summary detail
prompt_tokens completion_tokens input_tokens output_tokens inputTokens outputTokens promptTokenCount eval_count total_tokens
prompt_tokens_details input_tokens_details output_tokens_details completion_tokens_details cached_tokens reasoning_tokens
incomplete_details promptFeedback blockReason object response assistant user tool execution $blob $hash head custom code
""".split()

words = st.sampled_from(KEYS) | st.text(max_size=5)
leaves = st.none() | st.booleans() | st.integers() | st.floats() | words
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=30,
)


def ask_everything(body, provider=None, url=None):
    assert reading.provider_of_request(body, url) in {None, *reading.NAMES}
    assert reading.provider_of_response(body) in {None, *reading.NAMES}
    for usage in (reading.usage(body, provider), reading.usage_from_raw(body)):
        assert usage is None or all(type(count) is int and count >= 0 for count in usage.values())
    assert isinstance(reading.text(body, provider), str)
    assert isinstance(reading.stop_reason(body, provider), str | None)
    assert isinstance(reading.model_of(body, url), str | None)
    error = reading.error_of(body, provider)
    assert error is None or (isinstance(error[0], str | None) and isinstance(error[1], str))
    assert all(isinstance(use.name, str) for use in reading.tool_uses(body, provider))
    assert all(isinstance(answer, dict) for _, answer in reading.answers(body, provider))
    reading.conversation_key(body)


@up_to(400)
@given(
    body=anything,
    provider=st.none() | st.sampled_from(reading.NAMES),
    url=st.none() | st.text(max_size=20),
)
def test_no_function_raises_for_any_json_value(body, provider, url):
    ask_everything(body, provider, url)


@st.composite
def damaged_answers(draw):
    """A real answer with one value anywhere in it replaced by anything."""
    body = json.loads(json.dumps(ANSWERS[draw(st.sampled_from(sorted(ANSWERS)))]))
    place = body
    for _ in range(draw(st.integers(0, 6))):
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys)) if keys else None
        if key is None or not isinstance(place[key], dict | list) or not place[key]:
            break
        place = place[key]
    keys = list(place) if isinstance(place, dict) else list(range(len(place)))
    if keys:
        place[draw(st.sampled_from(keys))] = draw(anything)
    return body


@up_to(400)
@given(body=damaged_answers(), provider=st.none() | st.sampled_from(reading.NAMES))
def test_no_function_raises_for_a_damaged_answer(body, provider):
    ask_everything(body, provider)


def test_deep_nesting_does_not_exhaust_the_stack():
    deep: object = "end"
    for _ in range(5000):
        deep = [{"content": deep}]
    for body in (
        deep,
        {"messages": deep},
        {"role": "user", "content": deep},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "tool_use", "name": "f", "input": deep}],
            "usage": deep,
        },
        {"candidates": deep, "error": {"code": 1, "status": "s", "message": deep}},
    ):
        ask_everything(body)


def test_importing_the_reader_loads_no_heavy_module():
    import subprocess
    import sys
    from pathlib import Path

    source = Path(reading.__file__).parents[2]
    code = (
        f"import sys; sys.path.insert(0, {str(source)!r}); before = set(sys.modules); import reenact.wire.reading;"
        "print(*(name.partition('.')[0] for name in set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert loaded <= sys.stdlib_module_names | {"reenact"}
    assert not loaded & {"asyncio", "dataclasses", "inspect", "logging", "pathlib", "socket", "threading"}
