"""What is known of one run after reading it once: the rows that ``runs()`` and ``stats`` stand on.

Sums are those of ``totals.Totals``, money that of ``prices.Bill``; each duration is kept, 8 bytes a call.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import UsageError
from ..money.prices import Bill
from ..recording.listing import Summed
from ..totals import Totals
from ..tracefile import status
from ..tracefile.events.text import count

# Percentiles by nearest rank: always a duration that was measured, exact over all of them.


def nearest_rank(q: float, ordered: Sequence[float]) -> float | None:
    """Return the smallest value that at least ``q`` percent of the ordered values do not exceed.

    >>> nearest_rank(95, range(1, 101)), nearest_rank(50, [7]), nearest_rank(50, [])
    (95, 7, None)
    """
    if not isinstance(q, int | float) or not 0 < q <= 100:
        raise UsageError(
            f"{q!r} is not a percentile", hint="it is a number above 0 and up to 100, such as 95"
        )
    if not ordered:
        return None
    # Rounded first: 0.07 * 100 is a little more than 7, and the rank is not 8.
    rank = math.ceil(round(q * len(ordered) / 100, 9))
    return ordered[max(rank, 1) - 1]


NOT_RECORDED = "-"
"""Where a run or call does not say what it is grouped by."""


class CallStats:
    """Sums over model or tool calls. Model calls count when answered, tool calls when begun."""

    __slots__ = ("cost", "durations", "failed", "open", "totals")

    def __init__(self) -> None:
        self.totals = Totals()
        self.cost: Bill = Bill()
        self.failed = 0
        """Calls that ended in an error, each attempt by itself."""
        self.open = 0
        """Calls whose end is not recorded."""
        self.durations = array("d")
        """Milliseconds of every call with a recorded duration."""

    @property
    def calls(self) -> int:
        return self.totals.llm_calls + self.totals.tool_calls

    @property
    def total_ms(self) -> float:
        return sum(self.durations)

    def percentile(self, q: float) -> float | None:
        """Return the nearest-rank percentile of the durations; None without any."""
        return nearest_rank(q, sorted(self.durations))

    def __iadd__(self, other: CallStats) -> CallStats:
        self.totals += other.totals
        self.cost += other.cost
        self.failed += other.failed
        self.open += other.open
        self.durations.extend(other.durations)
        return self

    def __repr__(self) -> str:
        return f"<CallStats {self.calls} calls, {self.failed} failed, {self.open} open>"


class RunStats(Summed):
    """One run, summed up."""

    __slots__ = (
        "by_model_and_stop", "ended", "error_types", "findings", "id", "meta", "name", "parent_run",
        "path", "retried", "started", "status", "tools", "totals",
    )  # fmt: skip

    def __init__(self, path: str) -> None:
        self.path = path
        self.id: str | None = None
        self.name = ""
        self.status = status.UNKNOWN
        self.started: float | None = None
        self.ended: float | None = None
        """The time of the last line there is."""
        self.meta: dict[str, Any] = {}
        self.parent_run: str | None = None
        self.totals = Totals()
        self.by_model_and_stop: dict[tuple[str, str], CallStats] = {}
        self.tools: dict[str, CallStats] = {}
        self.error_types: dict[str, int] = {}
        """The errors that count, by type: what a retry recovered is not among them."""
        self.retried = 0
        """Failures after which a retry succeeded."""
        self.findings = 0
        """Damage met in its files."""

    @property
    def duration_ms(self) -> float | None:
        """From the first line to the last, of a running one so far."""
        if self.started is None or self.ended is None:
            return None
        return max(self.ended - self.started, 0.0) * 1000

    @property
    def failed(self) -> bool:
        """True if it ended in an error or was killed."""
        return self.status in status.FAILED

    @property
    def llm_calls(self) -> int:
        return self.totals.llm_calls

    @property
    def tool_calls(self) -> int:
        return self.totals.tool_calls

    @property
    def tokens(self) -> int:
        return self.totals.total_tokens

    @property
    def cache_read(self) -> int:
        return self.totals.cache_read

    @property
    def cache_write(self) -> int:
        return self.totals.cache_write

    @property
    def reasoning(self) -> int:
        return self.totals.reasoning

    @property
    def cost(self) -> Bill:
        """What its model calls cost."""
        return summed(self.by_model_and_stop.values()).cost

    @property
    def models(self) -> dict[str, CallStats]:
        """Its model calls, by model."""
        return gathered((model, stats) for (model, _), stats in self.by_model_and_stop.items())

    @property
    def stop_reasons(self) -> dict[str, int]:
        """Why its model calls stopped, in the neutral words of the trace; untold ones are left out."""
        counts: dict[str, int] = {}
        for (_, reason), stats in self.by_model_and_stop.items():
            if reason != NOT_RECORDED:
                counts[reason] = counts.get(reason, 0) + stats.calls
        return counts

    def as_dict(self) -> dict[str, Any]:
        """Return its facts as plain values, as ``--json`` gives them."""
        cost = self.cost
        return {
            "id": self.id,
            "name": self.name,
            "status": self.status,
            "path": self.path,
            "started": self.started,
            "ended": self.ended,
            "duration_ms": None if self.duration_ms is None else round(self.duration_ms, 3),
            "turns": self.turns,
            "llm_calls": self.llm_calls,
            "tool_calls": self.tool_calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "cache_read": self.cache_read,
            "cache_write": self.cache_write,
            "reasoning": self.reasoning,
            "errors": self.errors,
            "retried": self.retried,
            "usd": float(cost.usd) if cost.priced else None,
            "unknown_calls": cost.unknown_calls,
            "findings": self.findings,
            "models": list(self.models),
            "stop_reasons": self.stop_reasons,
            "tools": {name: stats.calls for name, stats in self.tools.items()},
            "error_types": dict(self.error_types),
            "meta": self.meta,
            "parent_run": self.parent_run,
        }

    def __str__(self) -> str:
        took = "" if self.duration_ms is None else f" in {self.duration_ms / 1000:,.1f} s"
        rows = [
            f"{self.name}  {self.status}",
            f"{count(self.steps, 'event')}, {count(self.turns, 'turn')}, {count(self.errors, 'error')}{took}",
            f"{self.tokens:,} tokens ({self.tokens_in:,} in, {self.tokens_out:,} out), "
            f"cost {self.cost.text()}",
        ]
        if self.tools:
            rows.append("tools: " + ", ".join(_tool_text(name, stats) for name, stats in self.tools.items()))
        if self.stop_reasons:
            rows.append("stopped: " + ", ".join(f"{why} {n}" for why, n in self.stop_reasons.items()))
        return "\n".join(rows)

    def __repr__(self) -> str:
        return f"<RunStats {self.name} {self.status}, {self.turns} turns, {self.tokens} tokens>"


def _tool_text(name: str, stats: CallStats) -> str:
    return f"{name} {stats.calls}" + (f" ({stats.failed} failed)" if stats.failed else "")


def summed(parts: Iterable[CallStats]) -> CallStats:
    """Return the sum of several."""
    total = CallStats()
    for part in parts:
        total += part
    return total


def gathered(pairs: Iterable[tuple[str, CallStats]]) -> dict[str, CallStats]:
    """Return the sums by name, in order of first appearance."""
    result: dict[str, CallStats] = {}
    for name, stats in pairs:
        if name not in result:
            result[name] = CallStats()
        result[name] += stats
    return result


def merged(parts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Return the sums of counts by name, largest first."""
    counts: dict[str, int] = {}
    for part in parts:
        for name, number in part.items():
            counts[name] = counts.get(name, 0) + number
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
