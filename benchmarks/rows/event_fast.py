"""One event with orjson installed, against a bare os.write of the bytes it ends up as."""

from __future__ import annotations

from pathlib import Path

from ..harness import Table, best_p50, interleave, us
from ..workload import PAYLOAD_BYTES
from . import event

BUDGETS = dict(zip(PAYLOAD_BYTES, (2.5, 1.6, 1.2), strict=True))


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    for text, ascii_only in (("ASCII text", True), ("mixed text", False)):
        for size in PAYLOAD_BYTES:
            events = event.events_for(size, quick, ascii_only=ascii_only)
            lines = event.our_lines(folder, events)
            rounds = interleave(
                {
                    "off": lambda e=events: event.record_all(event.ours(False), folder, e),
                    "on": lambda e=events: event.record_all(event.ours(True), folder, e),
                    "floor": lambda b=lines: event.write_all(folder, b),
                },
                4 if quick else 7,
            )
            p50 = {name: best_p50(spent) for name, spent in rounds.items()}
            table.add(
                f"{size}, {text}, redaction off",
                p50["off"] / p50["floor"],
                budget=BUDGETS[size],
                ours=us(p50["off"]),
                against="os.write of ready bytes",
                theirs=us(p50["floor"]),
            )
            table.add(
                f"{size}, {text}, redaction on",
                p50["on"] / p50["off"],
                budget=event.REDACTED_SHARE[size],
                ours=us(p50["on"]),
                against="redaction off",
                theirs=us(p50["off"]),
            )
    table.notes.append("mixed text: a few characters beyond ASCII in every string")
    return table
