"""Add files to the corpus: `python tests/corpus/grow.py`. What is there already is never changed.

Each file is small and shows one thing a reader must go on reading. ``expected.json`` says what is read
from it; a new entry is looked at by eye before it is committed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from reenact.errors import ReenactError  # noqa: E402
from reenact.recording.recording import Recording  # noqa: E402
from reenact.tracefile.reader import read_events  # noqa: E402
from support import written  # noqa: E402
from support.written import Pen, chain_of, store_blob  # noqa: E402


def new(name: str, *parts: bytes | str | dict) -> None:
    path = HERE / name
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [
        p if isinstance(p, bytes) else p.encode() if isinstance(p, str) else json.dumps(p).encode() + b"\n"
        for p in parts
    ]
    path.write_bytes(b"".join(raw))


def run(pen: Pen, notes: int = 3, end: str | None = "ok", **start: object) -> list[bytes]:
    lines = [pen("run.start", v="1.0", **{"name": "sample", "pid": 1, "host": "elsewhere", **start})]
    lines += [pen("note", text=f"note {i}") for i in range(notes)]
    if end is not None:
        lines.append(
            pen(
                "run.end",
                status=end,
                events=pen.step,
                dropped=0,
                tot={"turns": 0, "in": 0, "out": 0, "err": 0},
            )
        )
    return lines


def version_1_0() -> None:
    folder = HERE / "v1.0"
    folder.mkdir(exist_ok=True)
    if not (folder / "trip.jsonl").exists():
        written.HOTELS = "Hotel Lisboa, 82 EUR\n" * 100
        written.worked_example(folder)
    pen = Pen()
    new(
        "v1.0/killed.jsonl", *run(pen, end=None), pen("tool.called", call="a1", tool="rm", args={"path": "/"})
    )
    pen, child = Pen(), Pen(w="0c0c0c0c")
    new("v1.0/segments.jsonl", *run(pen, end=None))
    new(
        "v1.0/segments.s0001.jsonl",
        pen("run.more", v="1.0", segment=1),
        pen("note", text="later"),
        pen("run.end", status="ok"),
    )
    new(
        "v1.0/segments.p0c0c0c0c.jsonl",
        child("proc.start", v="1.0", pid=2, parent_w=written.W),
        child("note", text="child"),
        child("proc.end"),
    )
    one, two = Pen(run="r1", w="00000001"), Pen(run="r2", w="00000002")
    new(
        "v1.0/shared.jsonl",
        *(line for pair in zip(run(one), run(two, end="error"), strict=True) for line in pair),
    )
    pen = Pen()
    error = {"type": "ValueError", "message": "no such city", "frames": ["tools.py:7 in search"]}
    new(
        "v1.0/front_ends.jsonl",
        pen("run.start", v="1.0", name="front"),
        pen(
            "llm_call",
            model="m",
            input_tokens=1200,
            output_tokens=80,
            stop_reason="tool_use",
            duration_ms=300.5,
            tot={"turns": 1, "in": 1200, "out": 80, "err": 0},
        ),
        pen(
            "tool_call",
            tool="search",
            input={"q": "x"},
            output=None,
            error=error,
            duration_ms=3.5,
            tot={"turns": 1, "in": 1200, "out": 80, "err": 1},
        ),
        pen("tool_call", name="search", args={"q": "x"}),
        pen("tool_result", id="call_1", output={"$cut": "blob", "bytes": 9000, "head": "…"}, lossy=True),
        pen("user.run.custom", fields={"call": 7, "ts": "mine"}, **{"$$set": {"$$x": 1}}),
        pen(
            "note",
            nan={"$float": "nan"},
            data={"$bytes": "AAE=", "bytes": 2},
            thing={"$repr": "<Thing>", "type": "m.Thing"},
        ),
        pen(
            "note", secret={"$hash": "blake2b:" + "0" * 32, "bytes": 12}, withheld={"$none": True, "bytes": 3}
        ),
        pen("proc.note", what="quota", detail="metadata only"),
        pen("final", text="done"),
        pen("run.end", status="ok", tot={"turns": 1, "in": 1200, "out": 80, "err": 1}),
    )
    pen = Pen()
    first, second = {"role": "user", "content": "a"}, {"role": "user", "content": "b"}
    long = store_blob(HERE / "v1.0" / "delta.jsonl", "long text " * 500)
    third = {
        "role": "user",
        "content": [{"type": "text", "text": long, "cache_control": {"type": "ephemeral"}}],
    }
    moved = {"role": "user", "content": [{"type": "text", "text": long}]}
    new(
        "v1.0/delta.jsonl",
        pen("run.start", v="1.0", name="delta"),
        pen("model.request", call="a", n=2, chain=chain_of([first, third]), body={"model": "m", "tools": [{"name": "t"}], "messages": [first, third]}),
        pen("model.response", call="a", error=None, usage={"input": 3, "output": 4}, body={"choices": [{"message": {"role": "assistant", "content": "hi", "refusal": None}}]}),
        pen("model.request", call="b", base="a", keep={"model": True, "tools": True, "messages": 1}, n=4,
            chain=chain_of([first, moved, {"role": "assistant", "content": "hi"}, second]),
            body={"messages": [{"$same": ["a", 1], "drop": ["/content/0/cache_control"]}, {"$answer": "a", "at": "/choices/0/message", "keys": ["role", "content"]}, second]}),
        pen("model.request", call="c", attempt=2, base="b", keep={"model": True, "tools": True, "messages": True}, n=4,
            chain=chain_of([first, moved, {"role": "assistant", "content": "hi"}, second]), body={}),
        pen("run.end", status="ok"),
    )  # fmt: skip
    new(
        "v1.0/newer_minor.jsonl",
        Pen()("run.start", v="1.7", name="minor", hologram={"x": 1}),
        Pen(step=1)("hologram", x=1),
    )
    new("v1.0/newer_major.jsonl", Pen()("run.start", v="2.0", name="major"))


def version_1_1() -> None:
    pen = Pen()
    body = {"model": "m", "messages": [{"role": "user", "content": "vote"}]}
    new(
        "v1.1/who_asks.jsonl",
        pen("run.start", v="1.1", name="votes"),
        pen("model.request", call="a", lane="main", who="main/ask.0", n=1, chain=chain_of(body["messages"]), body=body),
        pen("model.request", call="b", lane="lane-2", who="main/ask.1", n=1, chain=chain_of(body["messages"]), body=body),
        pen("model.response", call="b", error=None, body={"content": [{"type": "text", "text": "no"}]}),
        pen("model.response", call="a", error=None, body={"content": [{"type": "text", "text": "yes"}]}),
        pen("tool.called", call="c", who="main", done=["main/ask.1", "main/ask.0"], parent="a", tool="count", args={"yes": 1}),
        pen("tool.result", call="c", tool="count", error=None, result=1),
        pen("run.end", status="ok"),
    )  # fmt: skip


def damaged() -> None:
    lines = run(Pen())
    new("damaged/torn.jsonl", *lines[:-1], lines[-1][:60])
    new("damaged/fused.jsonl", lines[0], lines[1][:40], *lines[2:])
    new("damaged/together.jsonl", lines[0], lines[1].strip(), lines[2].strip(), *lines[3:])
    new("damaged/nul.jsonl", *lines[:2], b"\0" * 512, b"\n", *lines[2:], b"\0" * 100)
    new("damaged/bom_crlf.jsonl", b"\xef\xbb\xbf", *(line.replace(b"\n", b"\r\n") for line in lines))
    new("damaged/not_utf8.jsonl", lines[0], lines[1].replace(b"note 0", b"n\xf6te\xff"), *lines[2:])
    new("damaged/no_header.jsonl", *lines[1:])
    new("damaged/gap.jsonl", *lines[:2], *lines[3:])
    new("damaged/repeat.jsonl", *lines[:3], lines[2], *lines[3:])
    new(
        "damaged/garbage.jsonl",
        lines[0],
        "Traceback (most recent call last):\n",
        '  File "x.py", line 1\n',
        *lines[1:],
    )
    new("damaged/flipped.jsonl", lines[0], lines[1].replace(b'"text": ', b'"text"; '), *lines[2:])
    new("damaged/empty.jsonl")
    blob = {"$blob": "sha256:" + "ab" * 32, "bytes": 9999, "head": "gone"}
    new(
        "damaged/blob_missing.jsonl",
        Pen()("run.start", v="1.0"),
        Pen(step=1)("tool.result", call="a", tool="x", error=None, result=blob),
    )
    new(
        "damaged/base_lost.jsonl",
        Pen()("run.start", v="1.0"),
        Pen(step=1)(
            "model.request",
            call="b",
            base="a",
            keep={"model": True, "messages": 3},
            n=4,
            chain="0" * 16,
            body={"messages": [{"role": "user", "content": "x"}]},
        ),
    )


def dialects() -> None:
    base = {"run": "3f2a9c01"}
    new(
        "dialects/trace.jsonl",
        {
            "ts": 1763200000.1,
            **base,
            "kind": "llm_call",
            "turn": 0,
            "content": None,
            "usage": {"prompt_tokens": 9, "completion_tokens": 3},
        },
        {"ts": 1763200000.2, **base, "kind": "error", "tool": "search", "err": "timeout"},
        {"ts": 1763200000.3, **base, "kind": "tool_call", "name": "search", "args": {"q": "hotels"}},
        {"ts": 1763200000.4, **base, "kind": "tool_result", "id": "call_1", "output": "error: timeout"},
        {
            "ts": 1763200000.5,
            **base,
            "kind": "llm_call",
            "turn": 1,
            "content": "no hotels",
            "usage": {"prompt_tokens": 12, "completion_tokens": 5},
        },
        {"ts": 1763200000.6, **base, "kind": "final", "text": "no hotels"},
    )
    new(
        "dialects/step_log.jsonl",
        {
            "type": "llm_call",
            "model": "m",
            "input_tokens": 1200,
            "output_tokens": 80,
            "stop_reason": "tool_use",
            "run_id": "run-1",
            "step": 1,
            "ts": 1763200000.1,
        },
        {
            "type": "tool_call",
            "tool": "search",
            "input": {"q": "x"},
            "output": "y",
            "error": None,
            "duration_ms": 12,
            "run_id": "run-1",
            "step": 2,
            "ts": 1763200000.2,
        },
        {
            "type": "llm_call",
            "model": "m",
            "input_tokens": 2000,
            "output_tokens": 40,
            "stop_reason": "end_turn",
            "run_id": "run-1",
            "step": 3,
            "ts": 1763200000.3,
        },
    )
    new(
        "dialects/family.jsonl",
        {
            "event_type": "tool.called",
            "timestamp": "2026-01-02T03:04:05Z",
            "run_id": "r",
            "tool_name": "search",
            "tool_args": {"q": 1},
        },
        {
            "event_type": "tool.result",
            "timestamp": "2026-01-02T03:04:06Z",
            "run_id": "r",
            "tool_name": "search",
            "tool_output": None,
            "error": {"name": "E", "message": "m"},
        },
        {"kind": "tool_called", "ts": 1767323047, "run_id": "r", "tool_name": "x", "args": {}},
        {"index": 3, "step_type": "error", "content": "boom", "timestamp": 1767323048},
    )
    text = [line.decode() for line in run(Pen())]
    new(
        "dialects/docker.jsonl",
        *({"log": line, "stream": "stdout", "time": "2026-01-02T03:04:05.6Z"} for line in text),
    )
    halves = [
        {"log": part, "stream": "stdout", "time": "t"} for line in text for part in (line[:99], line[99:])
    ]
    new("dialects/docker_split.jsonl", {"log": "starting\n", "stream": "stderr", "time": "t"}, *halves)
    new("dialects/cri.log", *(f"2026-01-02T03:04:05.678901234Z stdout F {line}" for line in text))
    new("dialects/cloudwatch.jsonl", *({"timestamp": 1767323045000, "message": line} for line in text))
    new("dialects/cloudwatch.log", *(f"2026-01-02T03:04:05.678Z {line}" for line in text))


def foreign() -> None:
    new(
        "foreign/claude_code.jsonl",
        {
            "type": "user",
            "uuid": "u",
            "parentUuid": None,
            "sessionId": "s",
            "timestamp": "2026-01-02T03:04:05Z",
            "message": {"role": "user", "content": "x"},
        },
    )
    new(
        "foreign/codex.jsonl",
        {"timestamp": "2026-01-02T03:04:05Z", "type": "session_meta", "payload": {"id": "x"}},
    )
    new("foreign/otlp.jsonl", {"resourceSpans": [{"scopeSpans": []}]})
    new("foreign/app_log.jsonl", {"level": "info", "msg": "x", "time": "2026-01-02T03:04:05Z"})
    new("foreign/text.jsonl", "hello\nworld\n")


def facts(path: Path) -> dict:
    findings: list = []
    try:
        events = list(read_events(path, on_finding=findings.append))
        recording = Recording.load(path)
        for event in events:
            _ = event.payload
    except ReenactError as why:
        return {"refused": type(why).__name__}
    return {
        "kinds": [event.kind for event in events],
        "steps": [event.step for event in events],
        "findings": sorted({finding.code for finding in findings}),
        "status": recording.status,
        "name": recording.name,
        "tot": recording.totals.as_tot(),
        "calls": [[call.kind, call.tool, call.is_open, call.error] for call in recording.calls()],
        "contexts": [
            len(recording.context_at(event)) for event in recording.events if event.kind == "model.request"
        ],
    }


def members() -> list[Path]:
    files = [path for path in sorted(HERE.rglob("*")) if path.suffix in (".jsonl", ".log")]
    return [path for path in files if ".s0" not in path.name and ".p" not in path.stem]


def main() -> None:
    version_1_0(), version_1_1(), damaged(), dialects(), foreign()
    known = HERE / "expected.json"
    expected = json.loads(known.read_text()) if known.exists() else {}
    for path in members():
        expected.setdefault(path.relative_to(HERE).as_posix(), facts(path))
    known.write_text(
        "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(expected.items())) + "\n}\n"
    )


if __name__ == "__main__":
    main()
