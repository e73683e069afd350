"""A stream cut, damaged or invented anywhere: nothing raises, nothing is made up, and the end is known."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.wire import reading
from reenact.wire.assembler import Problems
from reenact.wire.inflate import inflater, packed
from reenact.wire.providers.openai_chat import StreamAssembler as Chat
from reenact.wire.sse import _lines
from reenact.wire.sse import events as sse_events
from reenact.wire.streams import Assembled, assemble
from support.examples import LONG, up_to
from support.streams import (
    ANTHROPIC_EVENTS,
    BEDROCK_EVENTS,
    CHAT_EVENTS,
    COHERE_EVENTS,
    GEMINI_EVENTS,
    OLLAMA_EVENTS,
    RESPONSES_EVENTS,
    STREAMS,
    chunk_frames,
    frames,
    ndjson,
    sse,
    texts,
)

END_OF_ANSWER = {
    "anthropic": sse(*ANTHROPIC_EVENTS, named=True),
    "anthropic in bedrock": chunk_frames(*ANTHROPIC_EVENTS),
    "chat": sse(*CHAT_EVENTS),
    "responses": sse(*RESPONSES_EVENTS, named=True),
    "gemini": STREAMS["gemini"].data,
    "gemini array": STREAMS["gemini array"].data,
    "bedrock": frames(*BEDROCK_EVENTS[:-1]),
    "ollama": ndjson(*OLLAMA_EVENTS),
    "cohere": sse(*COHERE_EVENTS, named=True),
}
"""The stream up to the event that says that the answer is whole; what may follow is no part of it."""

PROVIDERS = st.sampled_from([*sorted({stream.provider for stream in STREAMS.values()}), None, "mistral"])


def sound(found: Assembled, data: bytes) -> None:
    """What holds for any bytes at all."""
    assert found.body is None or isinstance(found.body, dict)
    assert isinstance(found.complete, bool)
    assert found.error is None or (isinstance(found.error[0], str | None) and isinstance(found.error[1], str))
    assert found.first_content is None or 0 < found.first_content <= len(data)
    assert all(isinstance(half, dict) for half in found.aborted)
    assert len(found.problems) <= 21 and all(isinstance(problem, str) for problem in found.problems)
    for read in (reading.usage, reading.stop_reason, reading.error_of, reading.text, reading.tool_uses):
        read(found.body)


@pytest.mark.parametrize("name", STREAMS)
def test_cut_at_every_byte(name: str) -> None:
    stream = STREAMS[name]
    whole = texts(stream.body)
    seen, first = 0, assemble(stream.data, stream.provider).first_content
    end = len(END_OF_ANSWER[name].rstrip(b"\r\n] ")) if name != "bedrock" else len(END_OF_ANSWER[name])
    each = 1 if LONG else 8
    for at in sorted({*range(0, len(stream.data), each), *range(end - 30, len(stream.data) + 1)}):
        found = assemble(stream.data[:at], stream.provider)
        sound(found, stream.data[:at])
        assert found.complete == (at >= end), at
        cut = texts(found.body)
        assert {place for place in cut if not whole[place].startswith(cut[place])} == set(), at
        printed = sum(map(len, cut.values()))
        assert printed >= seen, at  # what came once does not vanish
        seen = printed
        assert found.error is None
        assert found.first_content is None or at >= found.first_content
        assert found.first_content is not None or at < first
    assert found.body == stream.body


@up_to(300)
@given(st.data())
def test_a_damaged_stream_never_raises(data: st.DataObject) -> None:
    stream = STREAMS[data.draw(st.sampled_from(sorted(STREAMS)))]
    damaged = bytearray(stream.data)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged)))
        length = data.draw(st.integers(0, 40))
        damaged[at : at + length] = data.draw(st.binary(max_size=8))
    content_type = data.draw(
        st.sampled_from([None, "text/event-stream", "application/vnd.amazon.eventstream"])
    )
    sound(assemble(bytes(damaged), data.draw(PROVIDERS), content_type), bytes(damaged))


@up_to(200)
@given(data=st.binary(max_size=300), provider=PROVIDERS)
def test_any_bytes_never_raise(data: bytes, provider: str | None) -> None:
    sound(assemble(data, provider), data)


@up_to(100)
@given(
    pieces=st.lists(st.binary(max_size=50), min_size=1, max_size=8),
    encoding=st.sampled_from(["gzip", "deflate"]),
    size=st.integers(1, 40),
)
def test_what_is_packed_is_unpacked_however_it_is_cut(pieces: list[bytes], encoding: str, size: int) -> None:
    sent = b"".join(packed(pieces, encoding, is_whole=True) or [])
    unpack = inflater(encoding)
    assert unpack is not None
    found = [unpack(sent[at : at + size]) for at in range(0, len(sent), size)]
    assert b"".join(found) == b"".join(pieces)


WORDS = sorted({
    word
    for events in (ANTHROPIC_EVENTS, BEDROCK_EVENTS, CHAT_EVENTS, COHERE_EVENTS, GEMINI_EVENTS, OLLAMA_EVENTS,
                   RESPONSES_EVENTS)
    for event in events
    for word in json.dumps(event).split('"')[1::2]
    if word.isidentifier() or "-" in word or "." in word
} | {"__type", "error", "code", "partialArgs", "jsonPath", "stringValue", "willContinue", "citations", "citation",
     "redactedContent", "reasoning_details", "logprobs", "function_call", "audio", "custom", "object", "[DONE]",
     "chat.completion", "response", "command_index", "x_groq", "fallback", "text_completion", "$.a[0].b"})  # fmt: skip
words = st.sampled_from(WORDS) | st.text(max_size=3)
leaves = st.none() | st.booleans() | st.integers(-2, 10**12) | st.floats() | words
anything = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5),
    max_leaves=20,
)


@st.composite
def odd_events(draw: st.DrawFn) -> tuple[str | None, list[object]]:
    """The events of one dialect, some of them with a value replaced by anything."""
    dialects = {
        "anthropic": ANTHROPIC_EVENTS,
        "bedrock": BEDROCK_EVENTS,
        "openai": CHAT_EVENTS,
        "cohere": COHERE_EVENTS,
        "gemini": GEMINI_EVENTS,
        "ollama": OLLAMA_EVENTS,
        "openai-responses": RESPONSES_EVENTS,
    }
    name = draw(st.sampled_from(sorted(dialects)))
    events = json.loads(json.dumps(dialects[name]))
    events = events[: draw(st.integers(1, len(events)))]
    for _ in range(draw(st.integers(1, 6))):
        place: object = events
        while isinstance(place, list | dict) and place:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = draw(st.sampled_from(keys))
            inner = place[key]
            if not isinstance(inner, list | dict) or not inner or draw(st.integers(0, 3)) == 0:
                place[key] = draw(anything)
                break
            place = inner
    return draw(st.sampled_from([name, None])), events


@up_to(250)
@given(odd_events())
def test_events_with_any_value_anywhere_never_raise(drawn: tuple[str | None, list[object]]) -> None:
    provider, events = drawn
    data = sse(*events)
    sound(assemble(data, provider), data)


@up_to(80)
@given(events=st.lists(st.dictionaries(words, anything, max_size=4), max_size=6), provider=PROVIDERS)
def test_invented_events_never_raise(events: list[dict[str, object]], provider: str | None) -> None:
    data = sse(*events, done=True)
    sound(assemble(data, provider), data)


@up_to(100)
@given(pieces=st.lists(st.text(max_size=6), min_size=1, max_size=12))
def test_any_text_in_any_pieces_comes_out_as_it_went_in(pieces: list[str]) -> None:
    chat = sse(*({"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces), done=True)
    assert assemble(chat, None).body["choices"][0]["message"]["content"] == "".join(pieces)  # type: ignore[index]


@up_to(100)
@given(
    args=st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=3),
    cuts=st.sets(st.integers(0, 80)),
)
def test_arguments_cut_anywhere_are_whole_again(args: dict[str, str], cuts: set[int]) -> None:
    text = json.dumps(args)
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    blocks = [
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": piece}}}}
        for piece in pieces
    ]
    assert [use[:3] for use in reading.tool_uses(assemble(frames(*blocks), "bedrock").body)] == [
        (None, "", args)
    ]


LINES = st.sampled_from(
    [b"data: {", b'"a": 1', b"}", b"{}", b"event: x", b"data: [DONE]", b"data:{}", b": ping", b"id: 7", b"\n"]
    + [
        b"\n\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\xff",
        b"\xc3\xa9",
        b'data: {"type": "ping"}',
        b'data: {"error": 1}',
        b'{"a":',
    ]
)


@up_to(1500)
@given(parts=st.lists(LINES, max_size=24))
def test_events_read_at_once_are_those_read_line_by_line(parts: list[bytes]) -> None:
    data = b"".join(parts)
    at_once, by_line = Problems(), Problems()
    found = [(event.data, event.end) for event in sse_events(data, at_once)]
    if data.lstrip(b" \t\r\n")[:1] not in (b"[", b"{"):
        assert found == [(event.data, event.end) for event in _lines(data, 0, len(data), by_line)]
        assert at_once == by_line


DELTAS = st.sampled_from(
    [{"content": "a"}, {"content": ""}, {"content": None}, {"role": "assistant", "content": "b"}, {}]
    + [{"content": [{"type": "text", "text": "part"}]}, {"refusal": "no"}, {"content": "c", "x": 1}]
)
CHUNKS = st.fixed_dictionaries(
    {"choices": st.lists(
        st.fixed_dictionaries(
            {"index": st.sampled_from([0, 0, 0, 1, True]), "delta": DELTAS},
            optional={"finish_reason": st.sampled_from([None, None, "stop"]), "logprobs": st.none(),
                      "stop_reason": st.none(), "usage": st.just({"total_tokens": 3})},
        ), min_size=1, max_size=2)},
    optional={"id": st.sampled_from(["", "x"]), "created": st.sampled_from([0, 1]), "model": st.just("m"),
              "usage": st.sampled_from([None, None, {"total_tokens": 2}]), "obfuscation": st.text("ab", max_size=3),
              "error": st.sampled_from([None, None, "broken"])},
)  # fmt: skip


@pytest.mark.long
@up_to(1500)
@given(chunks=st.lists(CHUNKS, max_size=8))
def test_chunks_that_only_say_more_are_taken_in_as_any_other(chunks: list[dict]) -> None:
    class Careful(Chat):
        def _only_says_more(self, event: dict) -> None:
            return None

    quick, careful = Chat(Problems()), Careful(Problems())
    for chunk in chunks:
        assert quick.add(copy.deepcopy(chunk)) == careful.add(copy.deepcopy(chunk))
    assert json.dumps(quick.body()) == json.dumps(careful.body())
    assert (quick.error, quick.complete) == (careful.error, careful.complete)
