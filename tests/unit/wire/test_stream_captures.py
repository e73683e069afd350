"""The real captures: every recorded stream is put together, with usage and stop reason, or a reason why not."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from reenact.wire import reading
from reenact.wire.streams import assemble, stream_kind
from support.cassettes import SAMPLES, interactions, json_body
from support.streams import sse, texts

pytestmark = pytest.mark.skipif(not SAMPLES.is_dir(), reason="the captures beside the repository are absent")

WITHOUT_FINISH_REASON = {"llm__test_tools_streaming_variant_a#0", "llm__test_tools_streaming_variant_b#0"}
"""Answers of a server that gave no finish_reason."""
TWO_TURNS = ("message_start", "response.created")
"""Some files hold the streams of several requests one after another; each begins with one of these."""


def single_streams(lines):
    """The streams of one file: a new one begins where a beginning follows an end."""
    found, ended = [[]], False
    for line in lines:
        kind = json.loads(line).get("type")
        if ended and kind in TWO_TURNS:
            found.append([])
            ended = False
        ended = ended or kind in ("message_stop", "response.completed")
        found[-1].append(line)
    return [b"".join(b"data: " + line.encode() + b"\n\n" for line in lines) for lines in found]


def wire_streams():
    """(name, bytes) of every stream among the wire captures."""
    for path in sorted((SAMPLES / "wire").rglob("*.txt")):
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        if path.name == "parallel-tool-call-wrapper.1.chunks.txt":
            continue  # two of its lines are not JSON; see below
        for number, data in enumerate(single_streams(lines)):
            yield path.name.removesuffix(".chunks.txt") + (f"/{number}" if number else ""), data
    for path in sorted((SAMPLES / "wire").rglob("*.sse")):
        yield path.name, path.read_bytes()
    for path in sorted((SAMPLES / "wire").rglob("*.responses")):
        for number, line in enumerate(path.read_text("utf-8").splitlines()):
            call = json.loads(line)
            if call["method"] == "generateContentStream":
                yield f"{path.name}#{number}", sse(*call["response"])


def cassette_streams():
    """(name, provider, content type, bytes) of every stream among the cassettes."""
    for path in sorted((SAMPLES / "vcr").glob("*.yaml")):
        for number, call in enumerate(interactions(path)):
            if "request" not in call or call["response"]["status"]["code"] != 200:
                continue
            headers = {name.lower(): value for name, value in call["response"]["headers"].items()}
            content_type = (headers.get("content-type") or [None])[0]
            body, uri = json_body(call["request"]), call["request"]["uri"]
            provider = reading.provider_of_request(body, uri)
            kind = stream_kind(provider, uri, content_type, body)
            if provider is None or kind is None:
                continue
            data = call["response"]["body"]["string"]
            yield (
                f"{path.stem}#{number}",
                provider,
                content_type,
                data if isinstance(data, bytes) else data.encode(),
            )


def look(name, data, found):
    """Check one stream; one that failed must say why, all others everything."""
    assert found.problems == [], name
    assert found.aborted == [] or "spliced" in name, name
    assert found.complete, name
    if found.error is not None:
        assert reading.stop_reason(found.body) == "error", name
        return "failed"
    assert reading.provider_of_response(found.body), name
    if b'"usage' in data:  # it was taken out of some before they were published
        usage = reading.usage(found.body)
        assert usage is not None and {"input", "output"} <= set(usage), name
    stop = reading.stop_reason(found.body)
    assert bool(stop) != (name in WITHOUT_FINISH_REASON), name
    if stop == "tool_use":
        assert all(isinstance(use.args, dict) or "custom" in name for use in reading.tool_uses(found.body)), (
            name
        )
    assert (found.first_content is None) == (reading.text(found.body) == ""), name
    return reading.provider_of_response(found.body)


def test_every_stream_of_the_wire_captures_is_put_together():
    counts = Counter(look(name, data, assemble(data, None)) for name, data in wire_streams())
    print(dict(counts))
    assert counts.total() >= 120
    assert set(counts) == {"anthropic", "openai", "openai-responses", "gemini", "bedrock", "failed"}


def test_every_stream_of_the_cassettes_is_put_together():
    counts = Counter()
    for name, provider, content_type, data in cassette_streams():
        found = look(name, data, assemble(data, provider, content_type))
        assert found == provider, name
        counts[found] += 1
    print(dict(counts))
    assert counts.total() >= 20
    assert set(counts) == {"anthropic", "openai", "gemini", "bedrock"}


def test_lines_that_are_not_json_cost_only_themselves():
    data = (SAMPLES / "wire/openai-responses/parallel-tool-call-wrapper.1.chunks.txt").read_bytes()
    found = assemble(data, "openai-responses")
    assert len(found.problems) == 2
    assert not found.complete
    assert len(reading.tool_uses(found.body)) >= 1


def test_finished_items_say_the_same_as_the_final_response():
    """The second way of putting Responses together agrees with the first."""
    checked = 0
    for name, data in wire_streams():
        if b'"type":"response.completed"' not in data:
            continue
        events = [line for line in data.split(b"\n\n") if line]
        whole = assemble(data, None).body
        rebuilt = assemble(
            b"\n\n".join(line for line in events if b'"response.completed"' not in line), None
        ).body
        assert reading.text(rebuilt) == reading.text(whole), name
        assert reading.tool_uses(rebuilt) == reading.tool_uses(whole), name
        checked += 1
    assert checked >= 25


def test_a_capture_cut_anywhere_gives_the_beginning_of_its_texts():
    for name, data in wire_streams():
        if "spliced" in name:
            continue  # its first half is another answer
        whole = texts(assemble(data, None).body)
        for at in range(0, len(data), max(1, len(data) // 12)):
            cut = texts(assemble(data[:at], None).body)
            assert {place for place in cut if not whole.get(place, "").startswith(cut[place])} == set(), (
                name,
                at,
            )
