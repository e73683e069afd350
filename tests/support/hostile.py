"""Traces that nobody's recorder wrote, and every reading command run on them in this process."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from reenact.cli.main import main
from support.written import RUN, A, B, C, Pen, chain_of

CORPUS = Path(__file__).parent.parent / "corpus"

COMMANDS = [
    ["ls", "{path}"],
    ["ls", "{path}", "--json"],
    ["show", "{path}"],
    ["show", "{path}", "--all"],
    ["show", "{path}", "--turn", "1"],
    ["show", "{path}", "--events", "--all"],
    ["show", "{path}", "--event", "2"],
    ["show", "{path}", "--json"],
    ["show", "{path}", "--json", "--turns"],
    ["cat", "{path}"],
    ["cat", "{path}", "--full"],
    ["cat", "{path}", "--stable"],
    ["cat", "{path}", "--json", "--full", "--run", "*"],
    ["tail", "{path}", "--no-follow", "-n", "100"],
    ["grep", "a", "{path}"],
    ["grep", "-F", "hotels", "{path}", "--json"],
    ["doctor", "{path}"],
    ["messages", "{path}"],
    ["messages", "{path}", "--full", "--json", "--as", "openai"],
    ["diff", "{path}", "{path}"],
    ["diff", "{path}", "{path}", "--all", "--json"],
    ["why", "{path}"],
    ["why", "{path}", "hotels"],
    ["why", "{path}", "2", "--json"],
    ["why", "{path}", "--uses", "2"],
    ["why", "{path}", "--claims"],
    ["stats", "{path}"],
    ["stats", "{path}", "--by", "model"],
    ["stats", "{path}", "--by", "tool", "--json"],
    ["stats", "{path}", "--by", "run", "--csv"],
    ["stats", "{path}", "--by", "day"],
    ["debug", "{path}", "-c", "w; l; n; s; ctx; why; uses; delta; a; rv; p; pp; raw; ll; diff turn:1; print usage; rc; n; b error; c; w; lanes; info"],
    ["debug", "{path}", "--json", "-c", "w; l; n; ctx; p; rv; a; c; ll; lanes; info"],
]  # fmt: skip
"""Every command that reads and runs nothing, in its main forms."""


class Done(NamedTuple):
    code: int
    out: str
    err: str


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def command(*words: object, terminal: bool = False) -> Done:
    """Run a command in this process, as if its output went to a terminal or to a pipe."""
    make = _Terminal if terminal else io.TextIOWrapper
    out, err = (make(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
    threshold = gc.get_threshold()
    gc.disable()  # finalisers of what other tests have dropped are not to run at the bottom of a deep stack
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([str(word) for word in words])
    finally:
        gc.enable()
        gc.set_threshold(*threshold)
    out.flush(), err.flush()
    return Done(
        code,
        out.buffer.getvalue().decode("utf-8", "replace"),
        err.buffer.getvalue().decode("utf-8", "replace"),
    )


DEEP = 480
ODD_VALUES = [
    None, True, 0, -1, 2**63, 2**64, -(10**30), 0.5, 1e308, float("nan"), float("inf"), "", "x", "\x1b[2J", "\ud800", "a" * 5000,
    "1.0", "9" * 50, [], {}, [[]], [None], {"": None}, {"$blob": 1}, {"$blob": "sha256:" + "0" * 64, "head": 5}, {"$float": []},
    {"$same": [A, 0]}, {"$answer": A}, {"$answer": A, "at": "/content", "keys": 5}, {"$same": [A, 0], "set": {"/a/b": 1}, "drop": 5},
    {"$gap": "x"}, {"$cut": 1}, {"type": "text", "text": 5}, {"type": "tool_use", "name": {}, "id": [], "input": "x"},
    {"role": 5, "content": {}}, {"type": {}, "payload": 1}, {"message": {}, "type": 5, "frames": "x"}, {"turns": "x", "in": -1},
    {"input": "many", "output": None}, {"messages": -1}, A, B, C, "main", "/../../etc/passwd", "2026-13-45", "@last", "*",
]  # fmt: skip
RAW_VALUES = [
    b"9" * 400, b"-" + b"9" * 3990, b"9" * 5000, b"1e400", b"-0", b"NaN", b"-Infinity",
    b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * 5000 + b"]" * 5000,
]  # fmt: skip
"""What cannot be made by ``json.dumps``."""
_MARK = "\x00raw"


def rich_run(path: Path, text: str = "") -> Path:
    """A run with every kind and nearly every field of the format; ``text`` is in each string that has no fixed form."""
    t = text
    pen = Pen(run=RUN + t)
    call, tool, retried, http = A + t, B + t, C + t, "d" * 16 + t
    messages = [{"role": "user", "content": f"Plan {t}"}]
    error = {"type": f"Err{t}", "message": f"no {t}", "frames": [f"agent.py:4 in {t}"]}
    second = [*messages, {"role": "assistant", "content": [{"type": "tool_use", "id": f"toolu{t}", "name": f"search{t}", "input": {f"q{t}": f"h{t}"}}]},
              {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu{t}", "content": f"found {t}"}]}]  # fmt: skip
    rows = [
        ("run.start", {"v": "1.0", "name": f"trip{t}", "entry": f"agent:main{t}", "entry_from": f"/x{t}", "input": {f"k{t}": f"v{t}"},
          "meta": {f"env{t}": f"prod{t}", "replay_of": f"r{t}"}, "pid": 1, "host": f"h{t}", "user": f"u{t}", "cwd": f"/c{t}", "command": [f"a{t}"], "python": f"3{t}",
          "policy": f"p{t}", "parent_run": f"pr{t}", "ambient": [f"m{t}"],
          "fork": {"at": f"a{t}", "parent": f"p{t}", "edits": {"set": [{"name": f"n{t}", "value": f"v{t}"}], "inject_user": t}, "world": t}}),
        ("model.request", {"call": call, "lane": f"lane{t}", "provider": "anthropic", "url": f"https://h/{t}", "headers": {f"x{t}": t}, "n": 1,
          "workspace": f"w{t}", "chain": chain_of(messages), "body": {"model": f"claude{t}", "system": f"s{t}", "tools": [{"name": f"search{t}", "description": t}], "messages": messages}}),
        ("model.response", {"call": call, "status": 200, "duration_ms": 8.5, "ttft_ms": 2.5, "ended": f"e{t}", "problems": [f"p{t}"], "request_id": f"r{t}",
          "model": f"claude{t}", "stop_reason": f"tool_use{t}", "usage": {"input": 5, "output": 3, f"u{t}": 1}, "error": None, "tot": {"turns": 1, "in": 5, "out": 3, "err": 0},
          "body": {"id": f"m{t}", "role": "assistant", "model": f"claude{t}", "content": [{"type": "thinking", "thinking": t}, {"type": "text", "text": f"I look {t}"}, second[1]["content"][0]], "stop_reason": f"tool_use{t}"}}),
        ("tool.called", {"call": tool, "parent": call, "tool": f"search{t}", "tool_id": f"toolu{t}", "args": {f"q{t}": f"h{t}"}, "effect": f"read{t}", "within": t}),
        ("tool.result", {"call": tool, "tool": f"search{t}", "tool_id": f"toolu{t}", "duration_ms": 4.5, "error": error, "replayed": t, "workspace": t, "result": {f"r{t}": f"v{t}"}}),
        ("model.request", {"call": retried, "lane": f"lane{t}", "provider": f"anthropic{t}", "attempt": 1, "base": call, "keep": {"model": True, "messages": 1},
          "n": 3, "chain": chain_of(second), "body": {"messages": second[1:]}}),
        ("model.response", {"call": retried, "status": 529, "attempt": 1, "duration_ms": 9.5, "error": error, "body": {"type": "error", "error": {"message": f"over {t}"}}}),
        ("http.request", {"call": http, "sort": f"embed{t}", "method": f"POST{t}", "url": f"https://h/{t}", "body": {"input": t}}),
        ("http.response", {"call": http, "sort": f"embed{t}", "status": 500, "duration_ms": 1.5, "model": f"m{t}", "error": error, "body": t, "headers": {t or "h": t}}),
        ("llm_call", {"model": f"m{t}", "input_tokens": 5, "output_tokens": 2, "stop_reason": f"end{t}", "duration_ms": 3.5, "content": f"c{t}"}),
        ("tool_call", {"tool": f"t{t}", "input": {"a": t}, "output": f"o{t}", "error": f"e{t}", "duration_ms": 2.5}),
        ("tool_result", {"id": f"i{t}", "output": t}),
        ("mcp.answer", {"server": f"s{t}", "method": f"m{t}", "params": {t or "p": t}, "duration_ms": 1.5, "refused": {"message": t}}),
        ("mcp.exit", {"server": f"s{t}", "code": t, "stderr": [t, f"e{t}"], "shared": t}),
        ("mcp.exit", {"server": f"s{t}", "signal": t}),
        ("model.request", {"call": "c3", "lane": f"lane{t}", "n": 0, "body": {"model": t, "input": t, "previous_response_id": f"m{t}"}}),
        ("model.response", {"call": "c3", "status": 200, "body": {"id": f"r{t}", "object": "response", "output": [{"type": "message", "role": t, "content": t}]}}),
        ("model.request", {"call": "c4", "lane": f"lane{t}", "n": 0, "body": {"model": t, "input": t, "conversation": {"id": f"r{t}"}}}),
        ("socket.message", {"url": f"wss://h/{t}", "socket": 1, "asked": 1, "sent": t, "body": {"type": t}}),
        ("ambient", {"name": f"now{t}", "value": t, "thread": f"th{t}"}),
        ("proc.note", {"what": f"quota{t}", "detail": f"d{t}"}),
        (f"my{t}", {f"own{t}": {f"deep{t}": [t]}, "text": f"t{t}"}),
        ("note", {"text": f"note {t}", "name": f"n{t}"}),
        ("final", {"text": f"done {t}"}),
        ("error", {"where": f"main{t}", "error": error}),
        ("run.end", {"status": f"error{t}", "exit": 1, "error": error, "unseen": [{"what": "host", "host": f"h{t}"}, {"what": f"x{t}", "name": t, "detail": t}], "events": 26, "tot": {"turns": 2, "in": 5, "out": 3, "err": 2}}),
    ]  # fmt: skip
    path.write_bytes(b"".join(pen(kind, **fields) for kind, fields in rows))
    return path


def folders() -> list[Path]:
    """The corpus files that begin a run."""
    return sorted(
        path for path in CORPUS.rglob("*.jsonl") if ".s0001" not in path.name and ".p" not in path.stem
    )


def mutated(source: Path, folder: Path, chance: random.Random) -> Path:
    """Copy a trace with its blobs and change it; returns the copy."""
    for beside in source.parent.glob(f"{source.stem}.*"):
        target = folder / beside.name
        if beside.is_dir():
            shutil.copytree(beside, target)
        else:
            shutil.copy(beside, target)
    path = folder / source.name
    data = path.read_bytes()
    for _ in range(chance.choice([1, 1, 2, 4])):
        change = chance.choice(
            [_odd_value, _odd_value, _odd_value, _without_a_key, _moved_lines, _changed_bytes]
        )
        with contextlib.suppress(RecursionError):  # what an earlier change has nested
            data = change(data, chance)
    path.write_bytes(data)
    return path


def _places(value: Any, way: tuple = ()) -> list[tuple]:
    items = value.items() if type(value) is dict else enumerate(value) if type(value) is list else ()
    return [place for key, item in items for place in [(*way, key), *_places(item, (*way, key))]]


def _one_line(data: bytes, chance: random.Random) -> tuple[list[bytes], int, Any]:
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    try:
        return lines, at, json.loads(lines[at])
    except ValueError:
        return lines, at, None


def _ours(fields: dict[str, Any]) -> bytes:
    texts = (
        f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in fields.items()
    )
    return ("{" + ", ".join(texts) + "}").encode()


def _odd_value(data: bytes, chance: random.Random) -> bytes:
    lines, at, fields = _one_line(data, chance)
    if type(fields) is not dict or not (places := _places(fields)):
        return data
    *way, last = chance.choice(places) if chance.random() < 0.6 else (chance.choice(list(fields)),)
    inner = fields
    for key in way:
        inner = inner[key]
    raw = chance.choice(RAW_VALUES) if chance.random() < 0.15 else None
    inner[last] = _MARK if raw is not None else chance.choice(ODD_VALUES)
    lines[at] = _ours(fields).replace(json.dumps(_MARK).encode(), raw or b"")
    return b"\n".join(lines)


def _without_a_key(data: bytes, chance: random.Random) -> bytes:
    lines, at, fields = _one_line(data, chance)
    if type(fields) is not dict or not (places := _places(fields)):
        return data
    *way, last = chance.choice(places)
    inner = fields
    for key in way:
        inner = inner[key]
    del inner[last]
    lines[at] = _ours(fields)
    return b"\n".join(lines)


def _moved_lines(data: bytes, chance: random.Random) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(chance.randrange(len(lines)))
    for _ in range(chance.choice([0, 1, 1, 2])):
        lines.insert(chance.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _changed_bytes(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(data) + 1)
    new = chance.choice(
        [b"", b"\n", b"\0" * 64, b'{"ts": ', b"\xff\xfe", b"\r\n", b"}", b'"', b"\\", chance.randbytes(4)]
    )
    return data[:at] + new + data[at + chance.choice([0, 1, 1, 8, 100]) :]


def sizes(folder: Path) -> dict[str, tuple[int, int]]:
    """What is in a folder: the size and the time of change of each file."""
    return {
        os.path.join(place, name): (state.st_size, state.st_mtime_ns)
        for place, _, names in os.walk(folder)
        for name in names
        for state in [os.lstat(os.path.join(place, name))]
    }
