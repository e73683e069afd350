"""Real captures: what we would be charged for is what a plain reading of each usage object says."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from importlib import import_module

import pytest

from reenact.money.usage import counts_of, hidden_calls, usage_object
from reenact.prices import Book
from reenact.wire import reading
from support.cassettes import SAMPLES, interactions, json_body

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the captures beside the repository are absent")


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    import_module("genai_prices")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield Book.open(str(tmp_path_factory.mktemp("no settings")))


def plain(usage: dict) -> dict[str, int]:
    """Input in all, cached part, output in all; read by the rules of each provider's documents."""
    get = usage.get
    if "promptTokenCount" in usage:
        prompt_tokens = get("promptTokenCount") + get("toolUsePromptTokenCount", 0)
        made = get("candidatesTokenCount", 0) + get("thoughtsTokenCount", 0)
        return {"in": prompt_tokens, "read": get("cachedContentTokenCount", 0), "write": 0, "out": made}
    if "inputTokens" in usage:
        read, write = get("cacheReadInputTokens", 0), get("cacheWriteInputTokens", 0)
        return {
            "in": get("inputTokens") + read + write,
            "read": read,
            "write": write,
            "out": get("outputTokens"),
        }
    if "prompt_tokens" in usage:
        details = get("prompt_tokens_details") or {}
        read = details.get("cached_tokens") or get("prompt_cache_hit_tokens") or 0
        made = max(get("completion_tokens"), get("total_tokens", 0) - get("prompt_tokens"))
        write = details.get("cache_write_tokens") or 0
        return {"in": get("prompt_tokens"), "read": read, "write": write, "out": made}
    if "input_tokens_details" in usage:
        details = usage["input_tokens_details"]
        read, write = details.get("cached_tokens", 0), details.get("cache_write_tokens", 0)
        return {"in": get("input_tokens"), "read": read, "write": write, "out": get("output_tokens")}
    read, write = get("cache_read_input_tokens") or 0, get("cache_creation_input_tokens") or 0
    return {
        "in": get("input_tokens") + read + write,
        "read": read,
        "write": write,
        "out": get("output_tokens"),
    }


def counted(body: dict) -> dict[str, int]:
    counts = counts_of(body, usage_object(body))
    names = {
        "in": "input_tokens",
        "read": "cache_read_tokens",
        "write": "cache_write_tokens",
        "out": "output_tokens",
    }
    return {short: counts[name] for short, name in names.items()}


def wire_bodies():
    for path in sorted((SAMPLES / "wire").rglob("*.json")):
        yield f"{path.parent.name}/{path.name}", None, json.loads(path.read_text("utf-8"))


def cassette_bodies():
    for path in sorted((SAMPLES / "vcr").glob("*.yaml")):
        for number, call in enumerate(interactions(path)):
            if "request" in call and isinstance(json_body(call["response"]), dict):
                yield f"{path.stem}#{number}", call["request"]["uri"], json_body(call["response"])


def with_usage():
    for name, url, body in [*wire_bodies(), *cassette_bodies()]:
        usage = body.get("usage") or body.get("usageMetadata")
        if usage and reading.error_of(body) is None:
            yield name, url, body, usage


def test_every_usage_object_is_counted_as_a_plain_reading_counts_it():
    wrong, seen = [], 0
    for name, _, body, usage in with_usage():
        seen += 1
        if counted(body) != plain(usage):
            wrong.append((name, counted(body), plain(usage)))
    assert wrong == []
    assert seen >= 100


def test_every_answer_is_priced_or_says_why_not(book):
    reasons = Counter()
    for name, url, body, usage in with_usage():
        provider = reading.provider_of_response(body)
        line = {"ts": 1_794_000_000.0, "kind": "model.response", "body": body}
        price = book.price(line, {"provider": provider, **({"url": url} if url else {})})
        reasons[price.source or price.why] += 1
        if price.usd is None:
            assert price.why, name
        elif price.source == "told":
            reported = usage.get("cost", usage.get("cost_in_usd_ticks", 0))
            scale = 1 if "cost" in usage else Decimal(10**10)
            assert price.usd * scale == Decimal(repr(reported)), name
        else:
            assert price.usd == sum(price.parts.values()), name
            assert price.usd > 0 or not any(plain(usage).values()), name
    print(dict(reasons))
    assert reasons["genai-prices"] >= 90
    assert reasons["told"] >= 5


def test_the_cost_a_price_list_gives_is_the_one_openrouter_and_litellm_counted(book):
    """Our estimate beside a told cost: equal, where the same list price held."""
    run = json.loads(
        (SAMPLES / "mini-swe-agent" / "Xelron__mini-swe-agent-trajectory.json").read_text("utf-8")
    )
    bodies = [
        message["extra"]["response"] for message in run["messages"] if "response" in message.get("extra", {})
    ]
    total = sum(book.price({"ts": 1.75e9, "body": body}).usd for body in bodies)
    assert len(bodies) == 3
    assert total == Decimal(str(round(run["info"]["model_stats"]["instance_cost"], 9)))


def test_hidden_calls_of_the_captures_are_those_the_top_level_leaves_out():
    found = {}
    for name, _, body, usage in with_usage():
        hidden = hidden_calls(usage, body.get("model"))
        entries = usage.get("iterations") or []
        if entries:
            own = [entry for entry in entries if entry["type"] in ("message", "fallback_message")]
            served = [entry for entry in own if entry.get("model", body["model"]) == body["model"]]
            assert sum(entry["input_tokens"] for entry in served) == usage["input_tokens"], name
            assert sum(entry["output_tokens"] for entry in served) == usage["output_tokens"], name
            found[name] = [(model, counts["input_tokens"]) for model, counts in hidden]
    assert found["anthropic/anthropic-compaction.1.json"] == [("claude-opus-4-6", 60385)]
    assert found["anthropic/anthropic-advisor-20260301.1.json"] == [("claude-opus-4-7", 2728)]
    assert found["anthropic/anthropic-fallback.json"] == []


def claude_code_responses(path):
    """(model, usage) of each response once: its usage is repeated on every record."""
    found = {}
    for line in path.read_text("utf-8").splitlines():
        try:
            message = json.loads(line).get("message")
        except (ValueError, AttributeError):
            continue
        if isinstance(message, dict) and isinstance(message.get("usage"), dict):
            found[message.get("id") or line] = (message.get("model"), message["usage"])
    return list(found.values())


def test_claude_code_sessions_are_charged_once_per_response(book):
    seen = Counter()
    for path in sorted((SAMPLES / "claude-code").rglob("*.jsonl")):
        for model, usage in claude_code_responses(path):
            price = book.price({"ts": 1_794_000_000.0, "kind": "llm_call", "model": model, "usage": usage})
            seen[price.source or price.why] += 1
            if price.usd is not None and not usage.get("iterations"):
                whole = plain(usage)
                counts = counts_of({}, usage)
                assert [counts["input_tokens"], counts["output_tokens"]] == [whole["in"], whole["out"]], path
    print(dict(seen))
    assert seen["genai-prices"] >= 50


def test_codex_sessions_add_up_to_the_sums_they_state(book):
    checked = 0
    for path in sorted((SAMPLES / "codex").glob("*.jsonl")):
        input_tokens, made, read, most, before = 0, 0, 0, {"total_tokens": 0}, None
        for line in path.read_text("utf-8").splitlines():
            try:
                info = json.loads(line)["payload"]["info"]
                total, last = info["total_token_usage"], info["last_token_usage"]
            except (ValueError, KeyError, TypeError):
                continue
            if total == before:
                continue  # told again, not used again
            before = total
            most = max(most, total, key=lambda usage: usage["total_tokens"])
            counts = counts_of({}, last)
            input_tokens += counts["input_tokens"]
            made += counts["output_tokens"]
            read += counts["cache_read_tokens"]
            used = (last["input_tokens"] + last["output_tokens"]) > 0
            assert (book.price({"ts": 1.764e9, "model": "gpt-5", "usage": last}).usd > 0) is used
        if most["total_tokens"]:
            checked += 1
            stated = (most["input_tokens"], most["output_tokens"], most["cached_input_tokens"])
            assert (input_tokens, made, read) == stated, path.name
    assert checked >= 3
