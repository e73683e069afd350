"""Real requests that providers accepted: none would be cut, and each still pairs after conversion."""

from __future__ import annotations

from collections import Counter

import pytest

from reenact.wire import pairing, reading
from reenact.wire.convert import convert
from support.cassettes import SAMPLES, interactions, json_body

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the captures beside the repository are absent")


def accepted_requests():
    """(name, provider, body) of every recorded conversation that got an answer."""
    for path in sorted((SAMPLES / "vcr").glob("*.yaml")):
        for number, call in enumerate(interactions(path)):
            body = json_body(call["request"]) if "request" in call else None
            if reading.conversation_key(body) and call["response"]["status"]["code"] == 200:
                yield (
                    f"{path.stem}#{number}",
                    reading.provider_of_request(body, call["request"]["uri"]),
                    body,
                )


def test_no_accepted_request_would_be_cut():
    counts = Counter()
    for name, provider, body in accepted_requests():
        messages = body[reading.conversation_key(body)]
        elsewhere = bool(body.get("previous_response_id") or body.get("conversation"))
        prefix = pairing.consistent(messages, provider, kept_elsewhere=elsewhere)
        assert prefix.length == len(messages), name
        counts[provider] += any(pairing.uses(message) for message in messages)
        for target in () if elsewhere else ("anthropic", "openai", "gemini"):
            made = convert(messages, body.get("tools") or [], {}, provider, target).messages
            assert pairing.consistent(made, target).length == len(made), (name, target)
    assert {"anthropic", "bedrock", "gemini", "openai"} <= set(+counts), "each with tool uses"
