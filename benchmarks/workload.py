"""The one workload all rows share: a tool-using agent's run made of provider-shaped bodies.

Deterministic for a given number of turns and a given text source. Bodies are the agent's own live
objects, changed in place from turn to turn as agents do, so a consumer has to record them at once.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

SAMPLES = Path(__file__).resolve().parents[1] / ".." / "shared" / "samples"
TURNS = (10, 50, 200, 1000)
PAYLOAD_BYTES = {"0.3 KB": 300, "4 KB": 4_000, "100 KB": 100_000}

MODEL = "claude-sonnet-4-6"
MARKER = {"type": "ephemeral"}
SYSTEM = (
    "You are a careful engineer working in a repository. Read before you write, run the tests after "
    "every change, and say what you did in one paragraph. Never guess a path: list the folder first. "
) * 8
TOOLS = [
    {
        "name": name,
        "description": text,
        "input_schema": {
            "type": "object",
            "properties": {key: {"type": "string", "description": f"The {key} to use"} for key in keys},
            "required": keys[:1],
        },
    }
    for name, text, keys in (
        ("read_file", "Return the text of a file, at most 2,000 lines", ["path", "from_line", "to_line"]),
        ("search", "Find a pattern in all files below a folder", ["pattern", "folder"]),
        ("run", "Run a shell command and return what it printed", ["command", "workdir"]),
        ("edit", "Replace a passage of a file", ["path", "old", "new"]),
    )
]
WORDS = (
    "the parser reads header fields before body lines so that value of timeout stays integer when "
    "server answers late and cache holds older entry while test checks rounding of milliseconds in "
    "serialize method def return None self assert raise import class path naïve café → ≤ 日本 –"
).split()


class Step(NamedTuple):
    """One thing the agent would tell a recorder; ``kind`` is request, response, called or result.

    A request's ``new`` are the messages it is the first to send in this form.
    """

    kind: str
    conversation: int
    fields: dict[str, Any]


class Text:
    """An endless deterministic supply of prose and tool output of a wanted length."""

    def __init__(self, samples: Path | None = SAMPLES) -> None:
        self.source, self._corpus = _corpus(samples)
        self._random = random.Random(20260615)
        self._serial = count(1)

    def piece(self, chars: int) -> str:
        """Return that many characters, none of them the same passage as before."""
        at = self._random.randrange(len(self._corpus) - chars) if chars < len(self._corpus) else 0
        body = (self._corpus * (chars // len(self._corpus) + 1))[at : at + chars]
        return f"[{next(self._serial)}] {body}"[:chars]

    def ident(self, prefix: str) -> str:
        alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
        return prefix + "".join(self._random.choices(alphabet, k=24))


@cache
def _corpus(samples: Path | None) -> tuple[str, str]:
    texts: list[str] = []
    if samples is not None and samples.is_dir():
        for path in sorted((samples / "swe-agent").glob("*.traj")):
            for step in json.loads(path.read_text("utf-8")).get("trajectory", []):
                texts += (step.get("thought") or "", step.get("observation") or "")
    if texts:
        return "samples/swe-agent", "\n".join(texts)
    words = random.Random(7).choices(WORDS, k=60_000)
    return "own words", " ".join(words)


class Conversation:
    """One message list, as an agent loop keeps it."""

    def __init__(self, text: Text, number: int, big_results: bool, markers: bool) -> None:
        self.text, self.number, self.big_results, self.markers = text, number, big_results, markers
        first = [{"type": "text", "text": text.piece(600), "cache_control": MARKER}]
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": first}]
        self._marked: dict[str, Any] = first[0]
        self._new: list[dict[str, Any]] = [*self.messages]
        self.turns = 0

    def turn(self, last: bool) -> Iterator[Step]:
        self.turns += 1
        request = {
            "model": MODEL,
            "max_tokens": 8192,
            "system": [{"type": "text", "text": SYSTEM, "cache_control": MARKER}],
            "tools": TOOLS,
            "messages": self.messages,
        }
        new, self._new = self._new, []
        yield Step("request", self.number, {"body": request, "new": new})
        answer = self._answer(last)
        yield Step("response", self.number, {"body": answer})
        self._append({"role": "assistant", "content": answer["content"]})
        results = []
        for use in answer["content"]:
            if use["type"] == "tool_use":
                called = {"tool": use["name"], "id": use["id"], "args": use["input"]}
                yield Step("called", self.number, called)
                output = self._output()
                yield Step("result", self.number, {"tool": use["name"], "id": use["id"], "result": output})
                results.append({"type": "tool_result", "tool_use_id": use["id"], "content": output})
        if results:
            self._append({"role": "user", "content": results})
            self._move_marker(results[-1])

    def edit(self) -> None:
        """Clear an old tool result in place, as context editing does."""
        old = next(m for m in self.messages[len(self.messages) // 3 :] if m["role"] == "user")
        old["content"][-1]["content" if "tool_use_id" in old["content"][-1] else "text"] = "[cleared]"
        self._new.append(old)

    def _append(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self._new.append(message)

    def _move_marker(self, block: dict[str, Any]) -> None:
        if not self.markers:
            return
        del self._marked["cache_control"]
        block["cache_control"] = MARKER
        self._marked = block

    def _answer(self, last: bool) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": self.text.piece(260)}]
        for _ in range(0 if last else 2 if self.turns % 7 == 0 else 1):
            args = {"command": self.text.piece(90), "workdir": "/srv/app"}
            content.append(
                {"type": "tool_use", "id": self.text.ident("toolu_01"), "name": "run", "input": args}
            )
        return {
            "id": self.text.ident("msg_01"),
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": "end_turn" if last else "tool_use",
            "stop_sequence": None,
            "usage": {
                "input_tokens": 12,
                "cache_creation_input_tokens": 410,
                "cache_read_input_tokens": 400 * self.turns,
                "output_tokens": 118,
            },
        }

    def _output(self) -> str:
        if self.big_results and self.turns % 40 == 20:
            return self.text.piece(120_000)
        return self.text.piece(900)


def agent_run(
    turns: int, *, big_results: bool = False, markers: bool = True, samples: Path | None = SAMPLES
) -> Iterator[Step]:
    """Yield a whole run: two interleaved conversations, moved cache markers, one edit of the history.

    Without ``markers`` they stay where they are, and no message is edited: the conversations only grow.
    """
    text = Text(samples)
    main, helper = (Conversation(text, number, big_results, markers) for number in (0, 1))
    for turn in range(1, turns + 1):
        if turn == turns // 2 and markers:
            main.edit()
        speaker = helper if turn % 5 == 3 else main
        yield from speaker.turn(last=turn == turns)


def wire_bytes(value: Any) -> int:
    """Return the size of a value as a provider gets it: compact UTF-8 JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass"))


class Distinct(NamedTuple):
    """The linear limit: every different message and every different other content once, in wire bytes."""

    messages: int
    other: int


def distinct(steps: Iterator[Step]) -> Distinct:
    """Count each message once however often it is sent; a moved cache marker makes no new message."""
    messages: dict[str, dict[str, Any]] = {}
    other: dict[str, Any] = {}
    for step in steps:
        body = step.fields.get("body", {})
        if step.kind == "request":
            for message in step.fields["new"]:
                bare = _unmarked(message)
                messages.setdefault(repr(bare), bare)
            other.update(system=body["system"], tools=body["tools"])
        elif step.kind == "response":
            message = {"role": body["role"], "content": body["content"]}
            messages.setdefault(repr(message), message)
    return Distinct(sum(map(wire_bytes, messages.values())), sum(map(wire_bytes, other.values())))


def _unmarked(message: dict[str, Any]) -> dict[str, Any]:
    content = [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]]
    return {"role": message["role"], "content": content}


def payloads(size: int, how_many: int, *, ascii_only: bool = False) -> list[dict[str, Any]]:
    """Return events' fields of about that many bytes each, no text twice: numbers, then short texts."""
    text = Text()
    return [_payload(text, size, "" if ascii_only else " café → 日本") for _ in range(how_many)]


def _payload(text: Text, size: int, mark: str) -> dict[str, Any]:
    usage = {"input_tokens": 1200, "output_tokens": 340}
    fields: dict[str, Any] = {"turn": 17, "model": MODEL, "usage": usage, "items": []}
    room = size - wire_bytes(fields)
    while room > 60:
        piece = (
            text.piece(max(8, min(1600, room) - 45 - len(mark))).encode("ascii", "replace").decode() + mark
        )
        fields["items"].append({"role": "user", "content": piece})
        room -= wire_bytes(fields["items"][-1])
    return fields
