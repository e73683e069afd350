"""The median of one record() for reenact and every alternative, at three sizes, in one process."""

from __future__ import annotations

from pathlib import Path

from ..baselines import available
from ..harness import Table, best_p50, interleave, us
from ..workload import PAYLOAD_BYTES
from . import event


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    remark = _with_orjson()
    found, table.notes = available()
    table.notes.append(remark)
    makers = {"reenact": event.ours(True), "reenact, redact=False": event.ours(False), **found}
    for size in PAYLOAD_BYTES:
        events = event.events_for(size, quick, ascii_only=True)[: 50 if quick else 300]
        contenders = {
            name: (lambda m=make, e=events: event.record_all(m, folder, e)) for name, make in makers.items()
        }
        p50 = {name: best_p50(spent) for name, spent in interleave(contenders, 2 if quick else 4).items()}
        for name in makers:
            table.add(
                f"{size}: {name}",
                p50[name] / p50["article Trace"],
                ours=us(p50[name]),
                against="article Trace",
                theirs=us(p50["article Trace"]),
                note=getattr(found.get(name), "remark", ""),
            )
    return table


def _with_orjson() -> str:
    """Load orjson before the first recorder exists, so that whoever can use it does; return the remark."""
    try:
        import orjson
    except ImportError:
        return "orjson is not installed: reenact and structlog use the stdlib's encoder"
    return f"orjson {orjson.__version__} is loaded: reenact and structlog use it"
