"""One event with the stdlib alone, against the first article's Trace."""

from __future__ import annotations

from pathlib import Path

from ..baselines import available
from ..harness import Table, best_p50, interleave, us
from ..workload import PAYLOAD_BYTES
from . import event

BUDGETS = dict(zip(PAYLOAD_BYTES, (0.65, 0.85, 1.0), strict=True))


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    article = available(["article Trace"])[0]["article Trace"]
    for size in PAYLOAD_BYTES:
        events = event.events_for(size, quick, ascii_only=False)
        rounds = interleave(
            {
                "off": lambda e=events: event.record_all(event.ours(False), folder, e),
                "on": lambda e=events: event.record_all(event.ours(True), folder, e),
                "article": lambda e=events: event.record_all(article, folder, e),
            },
            4 if quick else 7,
        )
        p50 = {name: best_p50(spent) for name, spent in rounds.items()}
        table.add(
            f"{size}, stdlib, redaction off",
            p50["off"] / p50["article"],
            budget=BUDGETS[size],
            ours=us(p50["off"]),
            against="article Trace",
            theirs=us(p50["article"]),
        )
        table.add(
            f"{size}, stdlib, redaction on",
            p50["on"] / p50["off"],
            budget=event.REDACTED_SHARE[size],
            ours=us(p50["on"]),
            against="redaction off",
            theirs=us(p50["off"]),
        )
    return table
