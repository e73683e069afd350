"""How one event's cost is taken: a fresh recorder per round, no payload twice, the lowest median."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from .. import floors
from ..baselines import available
from ..harness import Table, best_p50, interleave, timed, us
from ..ours import ReenactTrace
from ..workload import PAYLOAD_BYTES, payloads

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


def _search_all(look: Callable[[bytes], object], lines: list[bytes]) -> list[int]:
    return timed(partial(look, line) for line in lines)


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


def against_article(
    table: Table,
    quick: bool,
    folder: Path,
    text: str,
    off: tuple[float, ...] | None,
    on: tuple[float, ...],
) -> None:
    """Add the lines of all sizes: redaction off and on against the article's Trace, and a bare write."""
    article = available(["article Trace"])[0]["article Trace"]
    for at, size in enumerate(PAYLOAD_BYTES):
        events = events_for(size, quick, ascii_only=text == "ASCII text")
        lines = our_lines(folder, events)
        rounds = interleave(
            {
                "off": partial(record_all, ours(False), folder, events),
                "on": partial(record_all, ours(True), folder, events),
                "article": partial(record_all, article, folder, events),
                "write": partial(write_all, folder, lines),
                "floor off": partial(record_all, partial(floors.Writer, look=None), folder, events),
                "floor on": partial(record_all, partial(floors.Writer, look=floors.search()), folder, events),
                "passes": partial(_search_all, floors.passes(), lines),
            },
            4 if quick else 7,
        )
        p50 = {name: best_p50(spent) for name, spent in rounds.items()}
        for state, budget in (("off", off), ("on", on)):
            table.add(
                f"{size}, {text}, redaction {state}",
                p50[state] / p50["article"],
                budget=None if budget is None else budget[at],
                floor=p50[f"floor {state}"] / p50["article"],
                ours=us(p50[state]),
                against="article Trace",
                theirs=us(p50["article"]),
                note=f"os.write of the same bytes {us(p50['write'])}"
                + (f", the search's passes alone {us(p50['passes'])}" if state == "on" else ""),
            )
