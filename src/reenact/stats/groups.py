"""Runs -> groups: by a fact of the run, or by a fact of its calls, each call where it belongs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..money.prices import Bill
from ..totals import Totals
from ..tracefile import status
from .rows import NOT_RECORDED, CallStats, RunStats, nearest_rank
from .run_filters import facts

if TYPE_CHECKING:
    from .many_runs import Runs

OF_RUNS = ("day", "name", "status", "run")
OF_CALLS = ("model", "tool", "stop_reason")


class Group:
    """What several runs, or calls out of several runs, have in common and amount to."""

    __slots__ = ("_ordered", "by", "calls", "key", "runs", "totals")

    def __init__(self, by: str, key: str, runs: Runs, calls: CallStats | None) -> None:
        self.by = by
        self.key = key
        self.runs = runs
        """The runs in it; of calls, those that have such a call."""
        self.calls = calls
        """The calls in it; None for a group of runs."""
        self.totals: Totals = calls.totals if calls is not None else runs.totals
        self._ordered: list[float] | None = None

    @property
    def cost(self) -> Bill:
        return self.calls.cost if self.calls is not None else self.runs.cost

    @property
    def failed(self) -> int:
        """Calls that ended in an error, or runs that failed."""
        return self.calls.failed if self.calls is not None else sum(row.failed for row in self.runs)

    @property
    def total_ms(self) -> float:
        """All durations together."""
        return sum(self._durations())

    def percentile(self, q: float) -> float | None:
        """Return a nearest-rank percentile of the durations of its calls, or of its runs."""
        return nearest_rank(q, self._durations())

    def _durations(self) -> list[float]:
        if self._ordered is None:
            if self.calls is not None:
                self._ordered = sorted(self.calls.durations)
            else:
                done = [row.duration_ms for row in self.runs if row.status != status.RUNNING]
                self._ordered = sorted(took for took in done if took is not None)
        return self._ordered

    def as_dict(self) -> dict[str, Any]:
        """Return its figures as plain values, as ``--json`` and ``--csv`` give them."""
        result: dict[str, Any] = {self.by: self.key}
        if self.by == "run":
            result |= _identity(self.runs[0])
        else:
            result["runs"] = len(self.runs)
        result["failed"] = self.failed
        if self.calls is not None:
            result |= {"calls": self.calls.calls, "open": self.calls.open}
        if self.by != "tool":
            result |= self._sums()
        for q in (50, 95, 99):
            result[f"p{q}_ms"] = _rounded(self.percentile(q))
        return result | {"total_ms": _rounded(self.total_ms)}

    def _sums(self) -> dict[str, Any]:
        totals, cost = self.totals, self.cost
        calls = {"llm_calls": totals.llm_calls, "tool_calls": totals.tool_calls, "errors": totals.errors}
        return {
            "turns": totals.turns,
            **(calls if self.calls is None else {}),
            "tokens": totals.total_tokens,
            "tokens_in": totals.tokens_in,
            "tokens_out": totals.tokens_out,
            "cache_read": totals.cache_read,
            "cache_write": totals.cache_write,
            "reasoning": totals.reasoning,
            "usd": float(cost.usd) if cost.priced else None,
            "unknown_calls": cost.unknown_calls,
        }

    def __repr__(self) -> str:
        return f"<Group {self.by} {self.key}: {len(self.runs)} runs, {self.failed} failed>"


def group(runs: Runs, by: str) -> list[Group]:
    """Return the groups in order of first appearance; days and runs are in order of time anyway."""
    if by == "run":
        return [Group(by, row.id or NOT_RECORDED, runs[at : at + 1], None) for at, row in enumerate(runs)]
    if by in _PARTS:
        return _of_calls(runs, by, _PARTS[by])
    if by in ("day", "name", "status") or (by.startswith("meta.") and len(by) > 5):
        keys: dict[str, list[RunStats]] = {}
        for row in runs:
            keys.setdefault(_key(row, by), []).append(row)
        return [Group(by, key, runs.only(rows), None) for key, rows in keys.items()]
    raise UsageError(
        f"runs cannot be grouped by {by!r}",
        hint=f"there are {', '.join((*OF_CALLS, *OF_RUNS))} and meta.KEY, for instance meta.environment",
    )


def _of_calls(
    runs: Runs, by: str, parts: Callable[[RunStats], Iterable[tuple[str, CallStats]]]
) -> list[Group]:
    sums: dict[str, CallStats] = {}
    rows: dict[str, dict[RunStats, None]] = {}
    for row in runs:
        for key, stats in parts(row):
            if key not in sums:
                sums[key], rows[key] = CallStats(), {}
            sums[key] += stats
            rows[key][row] = None
    return [Group(by, key, runs.only(list(rows[key])), stats) for key, stats in sums.items()]


_PARTS: dict[str, Callable[[RunStats], Iterable[tuple[str, CallStats]]]] = {
    "model": lambda row: ((model, stats) for (model, _), stats in row.by_model_and_stop.items()),
    "stop_reason": lambda row: ((reason, stats) for (_, reason), stats in row.by_model_and_stop.items()),
    "tool": lambda row: row.tools.items(),
}


def _key(row: RunStats, by: str) -> str:
    if by == "day":
        return _day(row.started)
    found = facts(row, by)
    return found[0] if found else NOT_RECORDED


def _day(started: float | None) -> str:
    """Return the local date."""
    if started is None or not abs(started) < 1e11:
        return NOT_RECORDED
    return time.strftime("%Y-%m-%d", time.localtime(started))


def _identity(row: RunStats) -> dict[str, Any]:
    return {"name": row.name, "status": row.status, "path": row.path, "started": row.started}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
