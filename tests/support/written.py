"""Lines of ours made by hand, so that the reader is tested without the writer."""

from __future__ import annotations

import hashlib
from pathlib import Path

from reenact import lines

RUN = "4bf92f3577b34da6a3ce929d0e0e4736"
W = "9f1c2a7e"
TS = 1763200000.0


class Pen:
    """Writes the lines of one writer, steps counted."""

    def __init__(self, run: str = RUN, w: str = W, ts: float = TS, step: int = 0) -> None:
        self.run, self.w, self.ts, self.step = run, w, ts, step

    def __call__(self, kind: str, **fields: object) -> bytes:
        self.step += 1
        self.ts += 0.001
        return lines.whole(self.ts, self.run, self.w, self.step, kind, fields).encode("ascii")


def chain_link(value: bytes, element: object) -> bytes:
    return hashlib.blake2b(value + lines.dumps(element).encode(), digest_size=8).digest()


def chain_of(elements: list[object]) -> str:
    value = bytes(8)
    for element in elements:
        value = chain_link(value, element)
    return value.hex()


def store_blob(path: Path, text: str) -> dict[str, object]:
    """Put a text beside a trace file; returns what stands for it in the line."""
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    folder = path.parent / f"{path.stem}.blobs"
    folder.mkdir(exist_ok=True)
    (folder / digest).write_bytes(data)
    return {"$blob": f"sha256:{digest}", "bytes": len(data), "head": text[:20]}


HOTELS = "Hotel Lisboa, 82 EUR\n" * 9752 + "12345678"
TOOL_USE = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "hotels"}}
ANSWER = {
    "id": "msg_1", "role": "assistant", "content": [TOOL_USE], "stop_reason": "tool_use",
    "usage": {"input_tokens": 52, "output_tokens": 31},
}  # fmt: skip
USER = {"role": "user", "content": "Plan Lisbon"}
A, B, C = "a1b2c3d4e5f60718", "b7e1000000000000", "c9d2000000000000"


def worked_example(folder: Path) -> Path:
    """The run of the format's worked example, with its second process; returns its path."""
    path = folder / "trip.jsonl"
    pen = Pen()
    hotels = store_blob(path, HOTELS)
    tool_message = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": hotels}],
    }
    three = [USER, {"role": "assistant", "content": [TOOL_USE]}, tool_message]
    body = {"model": "claude-sonnet-4-6", "max_tokens": 1024, "system": "You plan trips.", "messages": [USER]}
    keep = {"model": True, "max_tokens": True, "system": True, "messages": 1}
    new = [{"$answer": A, "keys": ["role", "content"]}, tool_message]
    usage = {"input": 52, "output": 31, "cache_read": 0, "cache_write": 0}
    one = {"turns": 1, "in": 52, "out": 31, "err": 0}
    overloaded = {"type": "overloaded_error", "message": "overloaded", "frames": ["agent.py:41 in plan"]}
    no_plan = {"type": "RuntimeError", "message": "no plan", "frames": ["agent.py:44 in main"]}
    meta = {"agent_version": "1.4.2", "environment": "prod"}
    story = [
        pen("run.start", v="1.0", name="trip", entry="agent:main", input={"task": "Lisbon"}, meta=meta, pid=4711),
        pen("model.request", call=A, lane="main", provider="anthropic", n=1, chain=chain_of([USER]), body=body),
        pen("model.response", call=A, status=200, duration_ms=812.4, stop_reason="tool_use", usage=usage,
            error=None, tot=one, body=ANSWER),
        pen("tool.called", call=B, parent=A, tool="search", tool_id="toolu_1", args={"q": "hotels"}),
        pen("tool.result", call=B, tool="search", tool_id="toolu_1", duration_ms=40.1, error=None, tot=one,
            result=hotels),
        pen("model.request", call=C, lane="main", provider="anthropic", base=A, keep=keep, n=3,
            chain=chain_of(three), body={"messages": new}),
        pen("model.response", call=C, status=529, attempt=1, duration_ms=95.0, error=overloaded,
            tot={"turns": 2, "in": 52, "out": 31, "err": 1}, body={"type": "error", "error": {"message": "overloaded"}}),
        pen("error", where="main", error=no_plan, tot={"turns": 2, "in": 52, "out": 31, "err": 2}),
        pen("run.end", status="error", exit=1, events=9, dropped=0, tot={"turns": 2, "in": 52, "out": 31, "err": 2}),
    ]  # fmt: skip
    path.write_bytes(b"".join(story))
    child = Pen(w="77aa01bc", ts=TS + 0.0045)
    (folder / "trip.p77aa01bc.jsonl").write_bytes(child("proc.start", v="1.0", pid=4712, parent_w=W))
    return path
