"""For tests of agents and of programs that read traces; works with any test runner.

``recorded()`` records a block and returns it as a Debugger, ``replaying()`` answers a block from a recording;
the ``assert_*`` functions show what a run did if it differs from what was expected; ``write_trace()`` writes
a trace file by hand. pytest has a marker and a fixture (``pytest_plugin``).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .. import lines, schema
from ..capture.runs.run import run
from ..debugger.debugger import Debugger
from ..errors import Diverged
from .drive import Rerun, assert_tools_alike, call, fork_command, replay_command, send
from .reenactment import REPLAY, Reenactment, wrap
from .trajectory import ORDERED, difference, parse_expected

__all__ = [
    "Recorded", "Rerun", "assert_no_errors", "assert_tools_alike", "assert_trajectory", "assert_within",
    "call", "fork_command", "recorded", "replay_command", "replaying", "send", "tools_of", "wrap",
    "write_trace",
]  # fmt: skip

_SHOWN = 20


class Recorded:
    """The result of a ``recorded()`` block: its file, and the run as a Debugger."""

    def __init__(self, path: str | None = None) -> None:
        if path is None:
            folder = tempfile.mkdtemp(prefix="reenact-test-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)  # events are read until then
        self.path = path or os.path.join(folder, "run.jsonl")
        self._debugger: Debugger | None = None

    @property
    def debugger(self) -> Debugger:
        """The run as recorded so far; reloaded while it grows."""
        if self._debugger is None:
            self._debugger = Debugger.load(self.path)
        elif self._debugger.recording.end is None:
            self._debugger.reload()
        return self._debugger


@contextmanager
def recorded(
    name: str = "test", *, path: str | os.PathLike[str] | None = None, **options: Any
) -> Iterator[Recorded]:
    """Record the block as one run, in a temporary file unless ``path`` names one."""
    found = Recorded(None if path is None else os.fspath(path))
    with run(name, path=found.path, **options):
        yield found


@contextmanager
def replaying(path: str | os.PathLike[str], *, mode: str = REPLAY, **options: Any) -> Iterator[Reenactment]:
    """Answer the calls of the block from a recording; AssertionError if recorded calls are missing.

    A call that is not recorded raises ``Diverged``, and AssertionError in the end if the code caught that.
    ``mode`` and options are those of the pytest plugin: ``guard``, ``hosts``, ``live_tools``,
    ``allow_unused``.
    """
    found = Reenactment(path, mode=mode, **options)
    found.begin()
    try:
        try:
            yield found
        except BaseException as exc:
            found.finish(exc)
            if isinstance(exc, Diverged | KeyboardInterrupt | SystemExit) or not found.missed():
                raise
            raise AssertionError("\n\n".join(found.missed())) from exc
        found.finish()
        problems = found.problems()
    finally:
        found.end()
    if problems:
        raise AssertionError("\n\n".join(problems))
    found.keep()


Run = Recorded | Reenactment | Debugger | str | os.PathLike[str]


def tools_of(run: Run) -> list[tuple[str, Any]]:
    """Return (name, arguments) of the tools a run called, in the order it called them."""
    return [(call.tool or "", call.args) for call in _debugger(run).calls("tool")]


def assert_trajectory(run: Run, expected: Sequence[Any], how: str = ORDERED) -> None:
    """Fail unless a run called these tools: each a name, or a name and required arguments.

    ``how``: ``ordered`` exactly these in this order, ``any-order`` exactly these, ``subset`` at least these,
    ``subsequence`` at least these, in this order.
    """
    wanted = parse_expected(expected)
    wrong = difference(tools_of(run), wanted, how)
    if wrong is not None:
        raise AssertionError(wrong + _see(run))


def assert_no_errors(run: Run) -> None:
    """Fail if anything in a run failed, except a call that was retried with success."""
    debugger = _debugger(run)
    errors = [event.summary() for event in debugger.errors()]
    if debugger.recording.error is not None and not errors:
        errors = [f"the run itself: {debugger.recording.error}"]
    if errors:
        listed = "\n  ".join(errors[:_SHOWN])
        raise AssertionError(f"{len(errors)} errors:\n  {listed}{_see(run)}")


def assert_within(
    run: Run,
    *,
    turns: int | None = None,
    tool_calls: int | None = None,
    tokens: int | None = None,
    usd: float | None = None,
) -> None:
    """Fail if a run exceeds a limit; an unknown cost exceeds any."""
    summary = _debugger(run).summary()
    totals, cost = summary.totals, summary.cost
    over = [
        f"{used:,} {what}, {allowed:,} allowed"
        for what, used, allowed in (
            ("turns", totals.turns, turns),
            ("tool calls", totals.tool_calls, tool_calls),
            ("tokens", totals.total_tokens, tokens),
        )
        if allowed is not None and used > allowed
    ]
    if usd is not None and (cost.unknown_calls or float(cost.usd) > usd):
        over.append(f"cost {cost.text()}, ${usd:g} allowed")
    if over:
        raise AssertionError("; ".join(over) + _see(run))


def write_trace(
    path: str | os.PathLike[str],
    events: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    run: str = "0" * 32,
    status: str | None = "ok",
) -> str:
    """Write a trace file of (kind, fields) pairs, one second apart, the same bytes every time.

    The run's first and last line are added; with ``status=None`` it has no end, as if killed.
    """
    rows: list[tuple[str, Mapping[str, Any]]] = [(schema.RUN_START, {"v": schema.VERSION, "name": "test"})]
    rows += [(schema.user_kind(kind), fields) for kind, fields in events]
    if status is not None:
        rows.append((schema.RUN_END, {"status": status}))
    place = os.fspath(path)
    with open(place, "w", encoding="ascii", newline="\n") as file:
        for step, (kind, fields) in enumerate(rows, 1):
            file.write(lines.whole(float(step), run, "0" * 8, step, kind, fields))
    return place


def _debugger(run: Run) -> Debugger:
    if isinstance(run, Recorded):
        return run.debugger
    if isinstance(run, Reenactment):
        return run.run
    return run if isinstance(run, Debugger) else Debugger.load(run)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _see(run: Run) -> str:
    debugger = _debugger(run)
    shown = [event.summary() for event in debugger.all()[:_SHOWN]]
    more = debugger.count() - len(shown)
    return "\nthe run:\n  " + "\n  ".join([*shown, *([f"… {more} more events"] if more else [])])
