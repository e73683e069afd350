"""Events between blank lines are parsed at once: what comes of them is what reading line by line gives.

The same stream with other line ends is read line by line.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from reenact.wire.streams import assemble

LETTERS = [
    "Lis",
    "bon",
    " has",
    "",
    " sev\u00e9n",
    " \u65e5\u672c",
    ' "hills"',
    " a\\b",
    "\n",
    "\u2028",
    " and",
    " no",
    " more.",
]


def anthropic(letters: list[str], **dumped: Any) -> bytes:
    deltas = [{"type": "text_delta", "text": each} for each in letters]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
        {"type": "message_stop"},
    ]
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event, **dumped)}\n\n".encode() for event in events
    )


def openai(letters: list[str], *, padded: bool = False, **dumped: Any) -> bytes:
    lines = []
    for number, each in enumerate(letters):
        choice = {"index": 0, "delta": {"content": each}, "logprobs": None, "finish_reason": None}
        padding = {"obfuscation": "xY3" * (number % 4)} if padded else {}
        lines.append(
            {"id": "c", "object": "chat.completion.chunk", "choices": [choice], "usage": None, **padding}
        )
    lines[0]["choices"][0]["delta"]["role"] = "assistant"
    lines.append({**lines[-1], "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return (
        b"".join(f"data: {json.dumps(each, **dumped)}\n\n".encode() for each in lines) + b"data: [DONE]\n\n"
    )


COMPACT, RAW = {"separators": (",", ":")}, {"separators": (",", ":"), "ensure_ascii": False}
STREAMS = {
    "anthropic": anthropic(LETTERS, **RAW),
    "anthropic, escaped": anthropic(LETTERS, **COMPACT),
    "anthropic, spaced": anthropic(LETTERS),
    "openai": openai(LETTERS, **RAW),
    "openai, padded": openai(LETTERS, padded=True, **RAW),
    "openai, spaced": openai(LETTERS, padded=True),
}


def assembled(data: bytes) -> tuple[Any, ...]:
    found = assemble(data, None, "text/event-stream")
    return found.body, found.complete, found.error, found.problems, found.aborted


def line_by_line(data: bytes) -> tuple[Any, ...]:
    return assembled(data.replace(b"\n", b"\r\n"))


@pytest.mark.parametrize("name", STREAMS)
def test_the_answer_is_the_one_that_reading_line_by_line_gives(name: str) -> None:
    body, complete, *_ = assembled(STREAMS[name])
    printed = body["content"][0]["text"] if "content" in body else body["choices"][0]["message"]["content"]
    assert complete and printed == "".join(LETTERS)
    assert assembled(STREAMS[name]) == line_by_line(STREAMS[name])


@pytest.mark.parametrize("name", STREAMS)
def test_cut_anywhere(name: str) -> None:
    data = STREAMS[name]
    for at in range(0, len(data), 7):
        cut = data[:at]
        if not cut.endswith(b"\n"):  # a cut line reads the same in either form, but for how it is told of
            assert assembled(cut)[0] == line_by_line(cut)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'" and"', b'" and","text":"twice","content":"twice"'),
        (b'" and"', b'" a\tnd"'),
        (b'" and"', b'" a\xffnd"'),
        (b'" and"', b'" a\nnd"'),
        (b'" and"', b'" and'),
        (b'" and"', b"and"),
        (b'" and"', b"7"),
        (b'"index":0', b'"index":1'),
        (b'" no"}', b'" no","role":"user"}'),
        (b'"xY3xY3"', b'"xY3\\"xY3"'),
        (b'" no"}', b'" no"},"error":{"message":"overloaded"}'),
    ],
)
@pytest.mark.parametrize("name", STREAMS)
def test_an_odd_one_among_them_is_read_the_same_way(name: str, old: bytes, new: bytes) -> None:
    before, found, after = STREAMS[name].rpartition(old)
    data = before + (new if found else b"") + after
    assert assembled(data) == line_by_line(data)
