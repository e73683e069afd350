"""The real captures: every answer that is not a stream has provider, usage and stop reason, or a reason why not."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from reenact.wire import reading
from support.cassettes import SAMPLES, interactions, json_body

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the captures beside the repository are absent")

FOLDERS = {
    "anthropic": "anthropic",
    "bedrock": "bedrock",
    "deepseek": "openai",
    "google": "gemini",
    "openai-chat": "openai",
    "openai-compatible": "openai",
    "openai-responses": "openai-responses",
}


def wire_answers():
    for path in sorted((SAMPLES / "wire").rglob("*.json")):
        yield (
            f"{path.parent.name}/{path.name}",
            FOLDERS[path.parent.name],
            json.loads(path.read_text("utf-8")),
        )


def cassette_calls():
    """(name, interaction) of every recorded HTTP exchange with a model."""
    for path in sorted((SAMPLES / "vcr").glob("*.yaml")):
        for number, call in enumerate(interactions(path)):
            if "request" in call:
                yield f"{path.stem}#{number}", call


def why_not_an_answer(call):
    uri = call["request"]["uri"]
    if "/fileSearchStores" in uri or "huggingface.co/api/models" in uri:
        return "not a model call"
    if "count_tokens" in uri or "count-tokens" in uri:
        return "counts tokens"
    content_type = (
        call["response"]["headers"].get("content-type")
        or call["response"]["headers"].get("Content-Type")
        or [""]
    )[0]
    if "event-stream" in content_type or "eventstream" in content_type or "stream" in uri:
        if call["response"]["status"]["code"] == 200:
            return "stream"
    body = json_body(call["request"])
    return "stream" if isinstance(body, dict) and body.get("stream") is True else None


def look(name, provider, body, counts):
    """Check one answer; error bodies must say what is wrong, all others everything."""
    error = reading.error_of(body)
    found = reading.provider_of_response(body)
    if error is not None:
        counts["error body"] += 1
        assert found in (provider, "openai"), name  # Responses' HTTP errors are those of Chat
        assert error[1], name
        return
    counts[f"answer of {provider}"] += 1
    assert found == provider, name
    usage = reading.usage(body)
    assert usage is not None and {"input", "output"} <= set(usage), name
    assert usage["output"] >= usage.get("reasoning", 0), name
    assert reading.stop_reason(body), name
    assert reading.answers(body) or reading.text(body) == "", name
    if reading.stop_reason(body) == "tool_use":
        assert reading.tool_uses(body), name


def test_every_plain_answer_of_the_wire_captures_is_understood():
    counts = Counter()
    for name, provider, body in wire_answers():
        look(name, provider, body, counts)
    print(dict(counts))
    assert counts.total() >= 80


def test_every_plain_answer_of_the_cassettes_is_understood():
    counts = Counter()
    for name, call in cassette_calls():
        reason = why_not_an_answer(call)
        if reason:
            counts[reason] += 1
            continue
        provider = reading.provider_of_request(json_body(call["request"]), call["request"]["uri"])
        look(name, provider, json_body(call["response"]), counts)
    print(dict(counts))
    assert sum(number for key, number in counts.items() if key.startswith("answer")) >= 30


def test_the_shape_of_a_request_says_the_same_as_its_url_or_nothing():
    counts = Counter()
    for name, call in cassette_calls():
        body, uri = json_body(call["request"]), call["request"]["uri"]
        by_url = reading.provider_of_request({}, uri)
        if by_url is None:
            continue
        by_shape = reading.provider_of_request(body)
        counts["told by shape" if by_shape else "left open"] += 1
        assert by_shape in (by_url, None), name
        assert reading.model_of(body, uri), name
        assert reading.text(body) or by_url == "gemini", name
    print(dict(counts))
    assert counts["told by shape"] > 10 * counts["left open"]


def test_totals_the_providers_state_agree_with_our_sums():
    """Input + cache + output is the provider's own total, wherever it states one."""
    checked = 0
    bodies = [(name, body) for name, _, body in wire_answers()]
    bodies += [(name, json_body(call["response"])) for name, call in cassette_calls()]
    for name, body in bodies:
        usage = reading.usage(body)
        if usage is None:
            continue
        raw = body.get("usage") or body.get("usageMetadata")
        total = raw.get("total_tokens", raw.get("totalTokens", raw.get("totalTokenCount")))
        if total is None:
            continue
        checked += 1
        parts = ("input", "cache_read", "cache_write", "output")
        assert sum(usage.get(part, 0) for part in parts) == total, (name, usage, raw)
    print(checked, "totals checked")
    assert checked >= 60


def test_no_text_of_a_capture_shows_reasoning_or_binary_data():
    for name, _, body in wire_answers():
        text = reading.text(body)
        assert "encrypted_content" not in text and '"signature"' not in text, name
