from __future__ import annotations

import pytest

from reenact.totals import Totals
from reenact.wire.reading import usage_from_raw


def total(*events):
    totals = Totals()
    for kind, fields in events:
        totals.add(kind, fields)
    return totals


def test_the_worked_example_of_the_format_adds_up():
    usage = {"input": 52, "output": 31, "cache_read": 0, "cache_write": 0}
    totals = total(
        ("run.start", {}),
        ("model.request", {"call": "a"}),
        ("model.response", {"call": "a", "usage": usage, "error": None}),
        ("tool.called", {"call": "b"}),
        ("tool.result", {"call": "b", "error": None}),
        ("model.request", {"call": "c"}),
        ("model.response", {"call": "c", "error": {"type": "overloaded_error"}}),
        ("error", {"error": {"type": "RuntimeError"}}),
        ("run.end", {"status": "error"}),
    )
    assert totals.as_tot() == {"turns": 2, "in": 52, "out": 31, "err": 2}
    assert (totals.steps, totals.llm_calls, totals.tool_calls, totals.total_tokens) == (7, 2, 1, 83)


def test_a_retry_takes_back_the_error_of_the_attempt_before_it_in_its_own_lane():
    first = [
        ("model.request", {"call": "a", "lane": "l1"}),
        ("model.response", {"call": "a", "error": {"type": "x"}}),
    ]
    again = [
        ("model.request", {"call": "b", "lane": "l1", "attempt": 2}),
        ("model.response", {"call": "b", "error": None}),
    ]
    assert total(*first).errors == 1
    assert total(*first, *again).errors == 0
    assert total(*first, *again).turns == 1
    elsewhere = [("model.request", {"call": "b", "lane": "l2", "attempt": 2})]
    assert total(*first, *elsewhere).errors == 1


def test_an_empty_text_is_an_error_and_null_is_none():
    assert total(("tool_call", {"tool": "x", "output": "y", "error": ""})).errors == 1
    assert total(("tool_call", {"tool": "x", "output": "y", "error": None})).errors == 0


def test_usage_of_an_llm_call_is_read_in_every_spelling():
    flat = total(("llm_call", {"input_tokens": 5, "output_tokens": 7, "cache_read_tokens": 3}))
    assert (flat.tokens_in, flat.tokens_out, flat.cache_read, flat.uncached_in) == (8, 7, 3, 5)
    chat = total(
        (
            "llm_call",
            {
                "usage": {
                    "prompt_tokens": 9,
                    "completion_tokens": 2,
                    "prompt_tokens_details": {"cached_tokens": 4},
                }
            },
        )
    )
    assert (chat.tokens_in, chat.tokens_out, chat.cache_read) == (9, 2, 4)
    claude = total(
        ("llm_call", {"usage": {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4}})
    )
    assert (claude.tokens_in, claude.tokens_out) == (13, 2)
    assert claude.turns == claude.llm_calls == 1


RAW_USAGES = [
    {"input_tokens": 9, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5},
    {"input_tokens": 9, "output_tokens": 8, "output_tokens_details": {"thinking_tokens": 6}},
    {
        "prompt_tokens": 90,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 30},
        "completion_tokens_details": {"reasoning_tokens": 7},
    },
    {
        "prompt_tokens": 90,
        "completion_tokens": 2,
        "prompt_cache_hit_tokens": 60,
        "prompt_cache_miss_tokens": 30,
    },
    {
        "prompt_tokens": 12,
        "completion_tokens": 2,
        "total_tokens": 334,
        "completion_tokens_details": {"reasoning_tokens": 320},
    },
    {
        "input_tokens": 90,
        "output_tokens": 20,
        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 30},
        "output_tokens_details": {"reasoning_tokens": 7},
    },
    {"input_tokens": 90, "cached_input_tokens": 60, "output_tokens": 20, "reasoning_output_tokens": 7},
    {
        "promptTokenCount": 90,
        "cachedContentTokenCount": 40,
        "toolUsePromptTokenCount": 3,
        "candidatesTokenCount": 20,
        "thoughtsTokenCount": 7,
    },
    {"prompt_token_count": 90, "candidates_token_count": 20, "thoughts_token_count": 7},
    {"inputTokens": 9, "outputTokens": 2, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 5},
    {"prompt_eval_count": 9, "eval_count": 2},
]


@pytest.mark.parametrize("raw", RAW_USAGES)
def test_a_providers_own_usage_counts_as_the_same_usage_made_neutral(raw):
    as_written = total(("llm_call", {"usage": raw}))
    neutral = total(("llm_call", {"usage": usage_from_raw(raw)}))
    assert as_written == neutral
    assert as_written.tokens_in >= 9 and as_written.tokens_out >= 2


def test_odd_values_count_as_nothing():
    totals = total(
        ("llm_call", {"input_tokens": "many", "output_tokens": float("nan")}),
        ("model.response", {"usage": [1], "call": ["x"]}),
        ("model.request", {"lane": ["x"], "attempt": "two"}),
        ("llm_call", {"usage": {"prompt_tokens_details": 3, "input": None}}),
    )
    assert totals.total_tokens == 0


def test_sums_of_two_writers_merge():
    both = total(("llm_call", {"input_tokens": 5}))
    both += total(("llm_call", {"output_tokens": 5}), ("note", {}))
    assert both == total(("llm_call", {"input_tokens": 5}), ("llm_call", {"output_tokens": 5}), ("note", {}))


def test_an_error_under_any_kind_of_the_users_counts() -> None:
    totals = Totals()
    totals.add("retrieval", {"error": "timeout"})
    totals.add("retrieval", {"error": None})
    totals.add("retrieval", {})
    assert (totals.steps, totals.errors) == (3, 1)


def test_a_count_below_zero_takes_nothing_from_the_others():
    calls = [{"input": 100, "output": 10}, {"input": -5, "output": "-7", "cache_read": -3.5}]
    totals = total(*(("model.response", {"usage": usage}) for usage in calls))
    assert (totals.tokens_in, totals.tokens_out, totals.cache_read) == (100, 10, 0)
