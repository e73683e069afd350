"""What calls cost, computed by hand from list prices written here, for every provider's shape."""

from __future__ import annotations

import calendar
from decimal import Decimal
from importlib import import_module

import pytest

from reenact.prices import Bill, Book, Price, money

import_module("genai_prices")

MTOK = Decimal(1_000_000)
NOVEMBER = float(calendar.timegm((2026, 11, 10, 12, 0, 0)))


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield Book.open(str(tmp_path_factory.mktemp("no settings")))


def usd(*lines: tuple[int, str]) -> Decimal:
    """tokens × dollars per million, summed."""
    return sum((tokens * Decimal(rate) / MTOK for tokens, rate in lines), Decimal(0))


def answered(body, **fields):
    return {"ts": NOVEMBER, "kind": "model.response", "body": body, **fields}


def request_to(url, **fields):
    return {"kind": "model.request", "url": url, **fields}


ANTHROPIC = request_to("https://api.anthropic.com/v1/messages", provider="anthropic")
OPENAI = request_to("https://api.openai.com/v1/chat/completions", provider="openai")
RESPONSES = request_to("https://api.openai.com/v1/responses", provider="openai-responses")
GEMINI = request_to(
    "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
    provider="gemini",
)


def message(model="claude-sonnet-4-5-20250929", **usage):
    return {"type": "message", "model": model, "content": [], "stop_reason": "end_turn", "usage": usage}


def chat(model, **usage):
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    return {"object": "chat.completion", "model": model, "choices": [choice], "usage": usage}


def response(model, output=(), **usage):
    return {"object": "response", "status": "completed", "model": model, "output": [*output], "usage": usage}


def candidates(model, **usage):
    return {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP"}],
        "modelVersion": model,
        "usageMetadata": usage,
    }


# Sonnet 4.5: $3 in, $15 out, cache read $0.30, write $3.75 for five minutes, $6 for an hour.


def test_anthropic_counts_the_cache_beside_the_input_and_charges_an_hour_more_than_five_minutes(book):
    body = message(
        input_tokens=1_000,
        output_tokens=500,
        cache_read_input_tokens=40_000,
        cache_creation_input_tokens=3_000,
        cache_creation={"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
        output_tokens_details={"thinking_tokens": 400},
    )
    price = book.price(answered(body), ANTHROPIC)
    assert price.parts == {
        "input": usd((1_000, "3")),
        "output": usd((500, "15")),
        "cache_read": usd((40_000, "0.3")),
        "cache_write": usd((1_000, "3.75")),
        "cache_write_1h": usd((2_000, "6")),
    }
    assert price.usd == Decimal("0.03825000")
    assert (price.source, price.why, price.model) == ("genai-prices", None, "claude-sonnet-4-5-20250929")


def test_a_long_anthropic_prompt_costs_more_for_every_token_of_the_call(book):
    body = message(input_tokens=1, output_tokens=100, cache_read_input_tokens=200_000)
    assert book.price(answered(body), ANTHROPIC).usd == usd((1, "6"), (100, "22.5"), (200_000, "0.6"))
    body["usage"]["cache_read_input_tokens"] = 199_999
    assert book.price(answered(body), ANTHROPIC).usd == usd((1, "3"), (100, "15"), (199_999, "0.3"))


def test_anthropic_batch_is_half_and_searches_are_charged_apiece(book):
    body = message(input_tokens=1_000, output_tokens=100, service_tier="batch")
    assert book.price(answered(body), ANTHROPIC).usd == usd((1_000, "1.5"), (100, "7.5"))
    body = message(input_tokens=1_000, output_tokens=100, server_tool_use={"web_search_requests": 3})
    assert book.price(answered(body), ANTHROPIC).usd == usd((1_000, "3"), (100, "15")) + 3 * Decimal("0.01")


def test_hidden_calls_inside_an_anthropic_answer_are_added_each_at_its_own_model(book):
    own = {"type": "message", "input_tokens": 1_000, "output_tokens": 100}
    advisor = {
        "type": "advisor_message",
        "model": "claude-opus-4-7",
        "input_tokens": 2_000,
        "output_tokens": 800,
    }
    shorter = {"type": "compaction", "input_tokens": 60_000, "output_tokens": 600}
    body = message(input_tokens=1_000, output_tokens=100, iterations=[shorter, own, advisor])
    assert book.price(answered(body), ANTHROPIC).usd == (
        usd((1_000, "3"), (100, "15")) + usd((60_000, "3"), (600, "15")) + usd((2_000, "5"), (800, "25"))
    )


def test_an_attempt_that_declined_is_charged_only_if_it_had_begun_to_answer(book):
    declined = {"type": "message", "model": "claude-opus-4-1", "input_tokens": 400, "output_tokens": 0}
    served = {
        "type": "fallback_message",
        "model": "claude-opus-4-7",
        "input_tokens": 410,
        "output_tokens": 20,
    }
    body = message("claude-opus-4-7", input_tokens=410, output_tokens=20, iterations=[declined, served])
    assert book.price(answered(body), ANTHROPIC).usd == usd((410, "5"), (20, "25"))
    declined["output_tokens"] = 7
    assert book.price(answered(body), ANTHROPIC).usd == usd((410, "5"), (20, "25"), (400, "15"), (7, "75"))


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        ({"speed": "fast"}, "no fast mode price for claude-opus-4-7"),
        ({"inference_geo": "us"}, "no US-only inference price for claude-opus-4-7"),
        ({"service_tier": "priority"}, "no priority price for claude-opus-4-7"),
        (
            {"fallback_credit": {"status": {"type": "redeemed"}}},
            "no fallback credit price for claude-opus-4-7",
        ),
    ],
)
def test_terms_no_list_has_a_price_for_are_unknown(book, odd, why):
    price = book.price(
        answered(message("claude-opus-4-7", input_tokens=5, output_tokens=5, **odd)), ANTHROPIC
    )
    assert (price.usd, price.why, price.source) == (None, why, "")


# gpt-5: $1.25 in, $0.125 cached, $10 out; flex half, priority double.


def test_openai_counts_cached_tokens_inside_the_prompt_and_reasoning_inside_the_answer(book):
    usage = {
        "prompt_tokens": 10_000,
        "completion_tokens": 2_000,
        "total_tokens": 12_000,
        "prompt_tokens_details": {"cached_tokens": 8_000, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 1_500},
    }
    price = book.price(answered(chat("gpt-5-2025-08-07", **usage)), OPENAI)
    assert price.parts == {
        "input": usd((2_000, "1.25")),
        "cache_read": usd((8_000, "0.125")),
        "output": usd((2_000, "10")),
    }
    assert price.usd == Decimal("0.0235")


@pytest.mark.parametrize(
    ("tier", "rates"), [("default", ("1.25", "0.125", "10")), ("flex", ("0.625", "0.0625", "5"))]
)
def test_openai_responses_with_cache_reasoning_and_a_service_tier(book, tier, rates):
    body = response(
        "gpt-5",
        input_tokens=10_000,
        input_tokens_details={"cached_tokens": 4_000},
        output_tokens=900,
        output_tokens_details={"reasoning_tokens": 800},
        total_tokens=10_900,
    )
    body["service_tier"] = tier
    expected = usd((6_000, rates[0]), (4_000, rates[1]), (900, rates[2]))
    assert book.price(answered(body), RESPONSES).usd == expected


def test_a_tier_is_priced_by_its_day_and_unknown_before_the_list_has_it(book):
    body = {**chat("gpt-5", prompt_tokens=1_000, completion_tokens=0), "service_tier": "priority"}
    assert book.price(answered(body), OPENAI).usd == usd((1_000, "2.5"))
    earlier = book.price({**answered(body), "ts": NOVEMBER - 60 * 86400}, OPENAI)
    assert (earlier.usd, earlier.why) == (None, "no priority price for gpt-5")


def test_hosted_searches_of_a_response_are_charged_apiece_opening_a_page_is_not(book):
    calls = [
        {"type": "web_search_call", "action": {"type": "search"}},
        {"type": "web_search_call", "action": {"type": "open_page"}},
        {"type": "file_search_call"},
    ]
    body = response("gpt-5", calls, input_tokens=0, input_tokens_details={}, output_tokens=100)
    assert book.price(answered(body), RESPONSES).usd == usd((100, "10")) + Decimal("0.01") + Decimal("0.0025")


def test_a_batch_is_what_the_user_says_it_is(book):
    line = {"ts": NOVEMBER, "kind": "llm_call", "model": "o3", "input_tokens": 1_000, "output_tokens": 100}
    assert book.price(line).usd == usd((1_000, "2"), (100, "8"))
    assert book.price({**line, "batch": True}).usd == usd((1_000, "1"), (100, "4"))


def test_a_call_is_charged_by_the_prices_of_its_day(book):
    line = {"kind": "llm_call", "model": "o3", "input_tokens": 1_000, "output_tokens": 0}
    assert book.price({**line, "ts": calendar.timegm((2025, 5, 1, 0, 0, 0))}).usd == usd((1_000, "10"))
    assert book.price({**line, "ts": "2025-07-01T00:00:00Z"}).usd == usd((1_000, "2"))


# Gemini 2.5 Pro: $1.25 in, $0.125 cached, $10 out; over 200,000 tokens $2.50, $0.25, $15.


def test_gemini_counts_the_cache_inside_and_thoughts_and_tool_prompts_outside(book):
    usage = {
        "promptTokenCount": 10_000,
        "cachedContentTokenCount": 6_000,
        "toolUsePromptTokenCount": 500,
        "candidatesTokenCount": 100,
        "thoughtsTokenCount": 900,
        "totalTokenCount": 11_500,
    }
    price = book.price(answered(candidates("gemini-2.5-pro", **usage)), GEMINI)
    assert price.usd == usd((4_500, "1.25"), (6_000, "0.125"), (1_000, "10"))
    usage["promptTokenCount"] = 200_001
    long = book.price(answered(candidates("gemini-2.5-pro", **usage)), GEMINI)
    assert long.usd == usd((194_501, "2.5"), (6_000, "0.25"), (1_000, "15"))


def test_gemini_audio_has_its_own_price_also_from_the_cache(book):
    usage = {
        "promptTokenCount": 1_000,
        "cachedContentTokenCount": 300,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 400},
            {"modality": "AUDIO", "tokenCount": 600},
        ],
        "cacheTokensDetails": [
            {"modality": "AUDIO", "tokenCount": 200},
            {"modality": "TEXT", "tokenCount": 100},
        ],
        "candidatesTokenCount": 10,
    }
    price = book.price(answered(candidates("gemini-2.5-flash", **usage)), GEMINI)
    assert price.usd == usd((300, "0.3"), (100, "0.03"), (400, "1"), (200, "0.1"), (10, "2.5"))


def test_gemini_traffic_types_are_service_tiers(book):
    usage = {"promptTokenCount": 1_000, "candidatesTokenCount": 1, "trafficType": "ON_DEMAND"}
    plain = book.price(answered(candidates("gemini-2.5-pro", **usage)), GEMINI)
    assert plain.usd == usd((1_000, "1.25"), (1, "10"))
    usage["trafficType"] = "PROVISIONED_THROUGHPUT"
    bought = book.price(answered(candidates("gemini-2.5-pro", **usage)), GEMINI)
    assert bought.why == "no provisioned_throughput price for gemini-2.5-pro"


# Sonnet 4.5 in a Bedrock region: a tenth more than at Anthropic.


@pytest.mark.parametrize(
    "model",
    [
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-5-20250929-v1%3A0",
    ],
)
def test_bedrock_names_the_model_in_the_address_and_counts_the_cache_beside_the_input(book, model):
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": "x"}]}},
        "stopReason": "end_turn",
        "usage": {
            "inputTokens": 100,
            "outputTokens": 50,
            "totalTokens": 3_150,
            "cacheReadInputTokens": 2_000,
            "cacheWriteInputTokens": 1_000,
            "cacheDetails": [{"ttl": "5m", "inputTokens": 400}, {"ttl": "1h", "inputTokens": 600}],
        },
    }
    url = f"https://bedrock-runtime.us-east-1.amazonaws.com/model/{model}/converse"
    price = book.price(answered(body), request_to(url, provider="bedrock"))
    assert price.usd == usd((100, "3.3"), (2_000, "0.33"), (400, "4.125"), (600, "6.6"), (50, "16.5"))


def test_the_same_model_over_bedrock_in_anthropics_shape_has_the_price_of_the_region(book):
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke"
    price = book.price(answered(message(input_tokens=1_000, output_tokens=0)), request_to(url))
    assert price.usd == usd((1_000, "3.3"))


def test_vertex_and_azure_addresses_lead_to_the_model_they_serve(book):
    vertex = "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict"
    assert book.price(answered(message(input_tokens=1_000, output_tokens=0)), request_to(vertex)).usd == usd(
        (1_000, "3")
    )
    azure = "https://my-resource.openai.azure.com/openai/deployments/mine/chat/completions?api-version=2025"
    body = chat("gpt-4o-2024-08-06", prompt_tokens=1_000, completion_tokens=10, total_tokens=1_010)
    body["usage"]["prompt_tokens_details"] = {"cached_tokens": 400}
    assert book.price(answered(body), request_to(azure)).usd == usd((600, "2.5"), (400, "1.25"), (10, "10"))


def test_deepseek_says_hits_and_misses_and_charges_by_the_hour_of_the_day(book):
    usage = {
        "prompt_tokens": 1_000,
        "completion_tokens": 100,
        "total_tokens": 1_100,
        "prompt_cache_hit_tokens": 600,
        "prompt_cache_miss_tokens": 400,
    }
    line = answered(chat("deepseek-chat", **usage))
    request = request_to("https://api.deepseek.com/chat/completions", provider="openai")
    day, night = NOVEMBER, NOVEMBER + 6 * 3600  # 12:00 and 18:00 UTC; the night begins at 16:30
    assert book.price({**line, "ts": day}, request).usd == usd((400, "0.27"), (600, "0.07"), (100, "1.1"))
    assert book.price({**line, "ts": night}, request).usd == usd(
        (400, "0.135"), (600, "0.035"), (100, "0.55")
    )


def test_groq_keeps_the_usage_of_a_stream_in_a_place_of_its_own(book):
    body = chat("llama-3.3-70b-versatile")
    body["usage"] = None
    body["x_groq"] = {"usage": {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}}
    request = request_to("https://api.groq.com/openai/v1/chat/completions")
    assert book.price(answered(body), request).usd == usd((1_000, "0.59"), (100, "0.79"))


def test_an_address_is_believed_before_the_name_of_the_model(book):
    body = message("claude-sonnet-4-5", input_tokens=1_000, output_tokens=0)
    elsewhere = book.price(
        answered(body), request_to("https://api.z.ai/api/anthropic/v1/messages", provider="anthropic")
    )
    assert (elsewhere.usd, elsewhere.why) == (None, "no price for claude-sonnet-4-5")
    behind_a_gateway = request_to("http://localhost:4000/v1/messages", provider="anthropic")
    assert book.price(answered(body), behind_a_gateway).usd == usd((1_000, "3"))


@pytest.mark.parametrize(
    ("provider", "model", "rate"),
    [
        (None, "claude-sonnet-4-5", "3"),
        (None, "anthropic/claude-sonnet-4-5", "3"),
        (None, "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "3.3"),
        (None, "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "3.3"),
        (None, "claude-sonnet-4-5@20250929", "3"),
        (None, "models/gemini-2.5-pro", "1.25"),
        ("openai", "deepseek-chat", "0.27"),
        ("azure", "gpt-4o", "2.5"),
        ("our gateway", "gpt-4o", "2.5"),
        ("groq", "llama-3.3-70b-versatile", "0.59"),
        ("openai", "gpt-5-20250807", "1.25"),
    ],
)
def test_without_an_address_the_provider_and_the_spelling_of_the_name_decide(book, provider, model, rate):
    line = {"ts": NOVEMBER, "kind": "llm_call", "model": model, "input_tokens": 1_000, "output_tokens": 0}
    assert book.price({**line, "provider": provider}).usd == usd((1_000, rate))


# Told.


def test_what_openrouter_says_it_charged_is_believed(book):
    report = book.price(
        answered(chat("vendor/free", prompt_tokens=5, completion_tokens=5, cost=0, is_byok=False))
    )
    assert (report.usd, report.source, report.parts) == (Decimal(0), "told", {})
    report = book.price(
        answered(chat("gpt-4o", prompt_tokens=5, completion_tokens=5, cost=0.00014, is_byok=False))
    )
    assert (report.usd, report.source) == (Decimal("0.00014"), "told")


def test_with_the_users_own_key_openrouters_fee_is_only_a_part(book):
    usage = {"prompt_tokens": 1_000, "completion_tokens": 0, "cost": 0.0001, "is_byok": True}
    body = chat("openai/gpt-4o", **usage, cost_details={"upstream_inference_cost": 0.002})
    assert book.price(answered(body)).usd == Decimal("0.0021")
    request = request_to("https://openrouter.ai/api/v1/chat/completions", provider="openai")
    price = book.price(answered(chat("openai/gpt-4o", **usage)), request)
    assert (price.usd, price.source) == (usd((1_000, "2.5")), "genai-prices")


@pytest.mark.parametrize(
    "line",
    [
        answered(
            {**chat("m", prompt_tokens=1, completion_tokens=1), "_hidden_params": {"response_cost": 0.0125}}
        ),
        answered({**chat("m", prompt_tokens=1, completion_tokens=1), "response_cost": "0.0125"}),
        answered(
            chat("m", prompt_tokens=1, completion_tokens=1), headers={"x-litellm-response-cost": "0.0125"}
        ),
        answered(chat("m", prompt_tokens=1, completion_tokens=1, cost_in_usd_ticks=125_000_000)),
        answered(chat("m", prompt_tokens=1, completion_tokens=1, cost={"total_cost": 0.0125})),
        answered(
            {"type": "result", "total_cost_usd": 0.0125, "usage": {"input_tokens": 1, "output_tokens": 1}}
        ),
        {"kind": "llm_call", "model": "m", "input_tokens": 1, "output_tokens": 1, "response_cost": 0.0125},
        {"kind": "llm_call", "model": "m", "input_tokens": 1, "output_tokens": 1, "cost_usd": 0.0125},
    ],
)
def test_gateways_tell_the_cost_in_many_places(book, line):
    price = book.price(line)
    assert (price.usd, price.source) == (Decimal("0.0125"), "told")


@pytest.mark.parametrize("odd", [None, True, "free", -1, float("nan"), float("inf"), [1], {"total": 1}])
def test_a_cost_that_is_not_an_amount_counts_as_missing(book, odd):
    price = book.price(answered(chat("gpt-4o", prompt_tokens=1_000, completion_tokens=0, cost=odd)), OPENAI)
    assert (price.usd, price.source) == (usd((1_000, "2.5")), "genai-prices")


# Withheld bodies, other dialects.


def test_without_a_body_the_recorded_usage_is_enough(book):
    usage = {"input": 100, "output": 50, "cache_read": 2_000, "cache_write": 1_000}
    expected = usd((100, "3"), (50, "15"), (2_000, "0.3"), (1_000, "3.75"))
    line = {"ts": NOVEMBER, "kind": "model.response", "model": "claude-sonnet-4-5", "usage": usage}
    for body in (
        {},
        {"body": None},
        {"body": {"$hash": "blake2b:00", "bytes": 9}},
        {"body": {"$none": True}},
    ):
        assert book.price({**line, **body}, ANTHROPIC).usd == expected


def test_the_articles_spell_usage_as_their_provider_does(book):
    raw = {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 2_000}
    line = {"ts": NOVEMBER, "kind": "llm_call", "model": "claude-sonnet-4-5", "usage": raw}
    assert book.price(line).usd == usd((100, "3"), (50, "15"), (2_000, "0.3"))
    raw = {"prompt_tokens": 3_000, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 2_000}}
    line = {"ts": NOVEMBER, "kind": "llm_call", "model": "gpt-5", "usage": raw}
    assert book.price(line).usd == usd((1_000, "1.25"), (2_000, "0.125"), (50, "10"))


# Unknown.


@pytest.mark.parametrize(
    ("line", "request_", "why"),
    [
        (
            answered(chat("gpt-99-ultra", prompt_tokens=1, completion_tokens=1)),
            OPENAI,
            "no price for gpt-99-ultra",
        ),
        (answered(chat("gpt-5")), OPENAI, "no usage"),
        ({"kind": "llm_call", "model": "gpt-5"}, None, "no usage"),
        ({"kind": "llm_call", "model": "gpt-5", "usage": {"words": 5}}, None, "usage not understood"),
        (answered(chat(None, prompt_tokens=1, completion_tokens=1)), None, "no model name"),
        (answered(chat({"$hash": "x"}, prompt_tokens=1, completion_tokens=1)), None, "model name withheld"),
        (
            answered(chat("<redacted:env:1>", prompt_tokens=1, completion_tokens=1)),
            None,
            "model name withheld",
        ),
        (answered(None, error={"type": "APIConnectionError"}), OPENAI, "failed without usage"),
        (
            answered(
                {"model": "qwen3", "message": {}, "done": True, "prompt_eval_count": 5, "eval_count": 5}
            ),
            request_to("http://localhost:11434/api/chat", provider="ollama"),
            "local model",
        ),
        (
            answered(
                message(
                    input_tokens=1,
                    output_tokens=1,
                    cache_creation_input_tokens=5,
                    cache_creation={"ephemeral_1h_input_tokens": 9},
                )
            ),
            ANTHROPIC,
            "usage does not add up",
        ),
    ],
)
def test_what_cannot_be_known_says_why(book, line, request_, why):
    price = book.price(line, request_)
    assert (price.usd, price.why, price.source, price.text()) == (None, why, "", "unknown")


@pytest.mark.parametrize(
    "line",
    [
        answered({"error": {"message": "slow down", "type": "rate_limit_error", "code": None}}, status=429),
        answered(
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, error={"type": "x"}
        ),
    ],
)
def test_a_call_the_provider_refused_costs_nothing(book, line):
    price = book.price(line, OPENAI)
    assert (price.usd, price.source, price.text()) == (Decimal(0), "not billed", "$0.00")


@pytest.mark.parametrize(
    "odd", [None, 5, "x", [], {"usage": 5}, {"usage": {"input_tokens": "many"}}, {"model": 5}]
)
def test_odd_lines_are_unknown_and_never_raise(book, odd):
    for fields in (
        {"body": odd},
        {"usage": odd},
        {"model": odd, "usage": {"input": 1}},
        {"ts": odd, "body": odd},
    ):
        assert book.price(fields, {"body": odd, "url": odd, "provider": odd}).usd is None


# The bill.


def test_a_bill_adds_what_is_known_and_counts_what_is_not():
    bill = Bill("a list", "2026-10-20")
    assert (bill.text(), bill.as_dict()["usd"]) == ("-", None)
    bill.add(Price(None, why="no usage"))
    assert (bill.text(), bill.as_dict()["usd"]) == ("unknown", None)
    bill.add(Price(Decimal("0.01"), "told"))
    bill.add(Price(Decimal("0.0023"), "genai-prices"))
    assert (bill.usd, bill.reported, bill.estimated) == (
        Decimal("0.0123"),
        Decimal("0.01"),
        Decimal("0.0023"),
    )
    assert bill.told == bill.reported
    assert bill.text() == "$0.0123 + 1 call unknown"
    other = Bill()
    other.add(Price(None, why="no usage"))
    other.add(Price(None, why="local model"))
    other += bill
    assert other.as_dict() == {
        "usd": 0.0123,
        "told_usd": 0.01,
        "estimated_usd": 0.0023,
        "priced": 2,
        "unknown": {"no usage": 2, "local model": 1},
        "source": "a list",
        "dated": "2026-10-20",
    }
    assert other.text() == "$0.0123 + 3 calls unknown"
    assert other.unknown_calls == 3


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "$0.00"),
        ("0.00000001", "<$0.0001"),
        ("0.0001", "$0.0001"),
        ("0.0042", "$0.0042"),
        ("0.05", "$0.05"),
        ("0.1234567", "$0.1235"),
        ("0.99994", "$0.9999"),
        ("0.99996", "$1.00"),
        ("1.267", "$1.27"),
        ("1234.5", "$1,234.50"),
    ],
)
def test_money_is_shown_as_precisely_as_it_matters(amount, shown):
    assert money(Decimal(amount)) == shown
    assert Price(Decimal(amount), "told").text() == shown


def test_a_bill_of_the_book_says_its_source_and_date(book):
    bill = book.bill()
    assert bill.source == book.source
    assert bill.source.startswith("genai-prices 0.") and f"prices of {bill.dated}" in bill.source
    assert "2026-01-01" < bill.dated
