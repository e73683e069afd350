"""How one event's cost is taken: a fresh recorder per round, no payload twice, the lowest median."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from ..harness import timed
from ..ours import ReenactTrace
from ..workload import PAYLOAD_BYTES, payloads

REDACTED_SHARE = dict(zip(PAYLOAD_BYTES, (1.5, 2, 3.5), strict=True))
"""Budgets of redaction: an event's cost with it on, times its cost with it off."""

KIND = "note"
_serial = count()


def batch(size: str, quick: bool) -> int:
    return {"0.3 KB": 2000, "4 KB": 1000, "100 KB": 100}[size] // (2 if quick else 1)


def record_all(make: Callable[[Path], Any], folder: Path, events: list[dict[str, Any]]) -> list[int]:
    """Return the nanoseconds of each record() of a fresh recorder, the first few (its warm-up) left out."""
    home = folder / f"event{next(_serial)}"
    home.mkdir()
    recorder = make(home / "run.jsonl")
    for event in events[:3]:
        recorder.record(KIND, event)
    spent = timed(partial(recorder.record, KIND, event) for event in events)
    recorder.close()
    for path in home.rglob("*"):
        if path.is_file():
            path.unlink()
    return spent


def write_all(folder: Path, lines: list[bytes]) -> list[int]:
    """Return the nanoseconds of each bare os.write of ready bytes: the floor."""
    fd = os.open(folder / f"floor{next(_serial)}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        for line in lines[:3]:
            os.write(fd, line)
        return timed(partial(os.write, fd, line) for line in lines)
    finally:
        os.ftruncate(fd, 0)
        os.close(fd)


def events_for(size: str, quick: bool, *, ascii_only: bool) -> list[dict[str, Any]]:
    return payloads(PAYLOAD_BYTES[size], batch(size, quick), ascii_only=ascii_only)


def ours(redact: bool) -> Callable[[Path], Any]:
    return partial(ReenactTrace, redact=redact)


def our_lines(folder: Path, events: list[dict[str, Any]]) -> list[bytes]:
    """Return the very lines our recorder writes for these events."""
    path = folder / f"lines{next(_serial)}" / "run.jsonl"
    path.parent.mkdir()
    recorder = ReenactTrace(path)
    for event in events:
        recorder.record(KIND, event)
    recorder.close()
    mark = b'"kind": "%s"' % KIND.encode()
    return [line for line in path.read_bytes().splitlines(keepends=True) if mark in line[:200]]
