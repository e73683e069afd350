"""RunSummary: one run in figures, from the same sums and prices as every report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..summary import Totals
from ..tracefile.event import ErrorText
from ..tracefile.recording import Recording
from .state import bill_of

if TYPE_CHECKING:
    from ..prices import Bill


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run in figures; ``str()`` gives them as a few lines."""

    run_id: str | None
    name: str
    status: str
    error: ErrorText | None
    duration_ms: float | None
    """From the first line to the last."""
    events: int
    totals: Totals
    cost: Bill
    stop_reasons: dict[str, int]
    tools: dict[str, int]
    """Calls by tool."""
    failed_tools: dict[str, int]
    """Of those, the ones that ended in an error."""

    @property
    def total_tokens(self) -> int:
        return self.totals.total_tokens

    def __str__(self) -> str:
        totals = self.totals
        took = "" if self.duration_ms is None else f" in {self.duration_ms / 1000:,.1f} s"
        told = "" if self.error is None else f": {self.error.type or 'error'}: {self.error[:200]}"
        rows = [
            f"{self.name}  {self.status}{told}",
            f"{self.events:,} events, {totals.turns:,} turns, {totals.errors:,} errors{took}",
            f"{totals.total_tokens:,} tokens ({totals.tokens_in:,} in, {totals.tokens_out:,} out), "
            f"cost {self.cost.text()}",
        ]
        if self.tools:
            rows.append("tools: " + ", ".join(self._tool(name) for name in self.tools))
        if self.stop_reasons:
            rows.append("stopped: " + ", ".join(f"{why} {n}" for why, n in self.stop_reasons.items()))
        return "\n".join(rows)

    def _tool(self, name: str) -> str:
        failed = self.failed_tools.get(name)
        return f"{name} {self.tools[name]}" + (f" ({failed} failed)" if failed else "")


def summary_of(recording: Recording) -> RunSummary:
    """Sum up a whole run."""
    calls = recording.calls()
    stops: Counter[str] = Counter()
    for call in calls:
        reason = call.end.stop_reason if call.kind == "model" and call.end is not None else None
        if type(reason) is str:
            stops[reason] += 1
    tools = [call for call in calls if call.kind == "tool"]
    started, ended = recording.started, recording.ended
    return RunSummary(
        run_id=recording.run_id,
        name=recording.name,
        status=recording.status,
        error=recording.error,
        duration_ms=None if started is None or ended is None else max(ended - started, 0.0) * 1000,
        events=recording.count(),
        totals=recording.totals,
        cost=bill_of(calls),
        stop_reasons=dict(stops.most_common()),
        tools=dict(Counter(call.tool or "?" for call in tools).most_common()),
        failed_tools=dict(Counter(call.tool or "?" for call in tools if call.error is not None)),
    )
