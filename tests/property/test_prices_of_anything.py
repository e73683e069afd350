"""No line of a trace, however odd, makes the price book raise or call an unknown cost known."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.prices import Bill, Book
from support.examples import up_to

NAMES = [
    "body", "usage", "model", "provider", "url", "ts", "error", "status", "batch", "cost", "is_byok",
    "cost_details", "response_cost", "cost_usd", "headers", "_hidden_params", "iterations", "type", "content",
    "stop_reason", "input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "total_tokens",
    "prompt_tokens_details", "cached_tokens", "cache_creation", "cache_creation_input_tokens",
    "ephemeral_1h_input_tokens", "usageMetadata", "promptTokenCount", "candidatesTokenCount",
    "promptTokensDetails", "modality", "tokenCount", "inputTokens", "cacheDetails", "ttl", "x_groq", "choices",
    "output", "object", "service_tier", "trafficType", "server_tool_use", "web_search_requests", "input",
    "candidates", "done", "message", "speed", "fallback_credit",
]  # fmt: skip
TEXTS = ["claude-sonnet-4-5", "gpt-5", "message", "compaction", "response", "AUDIO", "1h", "batch", "flex", "openai",
         "bedrock", "https://api.openai.com/v1", "https://[", "\0", "NaN", "-1", "1e999"]  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(0, 10**6)
    | st.just(10**400)
    | st.floats()
    | st.sampled_from(TEXTS)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
    max_leaves=25,
)
LINES = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=8)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory):
    import_module("genai_prices")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield Book.open(str(tmp_path_factory.mktemp("no settings")))


@up_to(200)
@given(LINES, LINES | st.none())
def test_any_line_has_a_cost_or_a_reason(book, line, request_):
    price = book.price(line, request_)
    if price.usd is None:
        assert price.why and not price.source and not price.parts
    else:
        assert 0 <= price.usd < Decimal(10) ** 30
        assert price.source and price.why is None
    bill = Bill()
    bill.add(price)
    assert bill.priced + bill.unknown_calls == 1
    assert bill.text() and bill.as_dict()
