"""Child processes find the run they belong to in the environment.

Used by runs. The environment is the whole process's, so it names a run only while exactly one is open.
"""

from __future__ import annotations

import os
from _thread import RLock, _count
from typing import TYPE_CHECKING

from .location import RUN_VARIABLE, shown

if TYPE_CHECKING:
    from .run import RunContext

MAX_RUNS = 64
"""A process that begins more is a server: setting a variable costs memory that C never gives back.
Its children join by ``env=run.env()``."""

_count_of_runs = 0
_announced: list[RunContext] = []
_environment_locks: dict[int, RLock] = {}


def announce(context: RunContext) -> None:
    """Tell child processes which run they belong to, as long as there is only one it can be."""
    global _count_of_runs
    _count_of_runs += 1
    if _count_of_runs <= MAX_RUNS:
        _announced.append(context)
        _set_environment()


def withdraw(context: RunContext) -> None:
    if context in _announced:
        _announced.remove(context)
        _set_environment()


def _set_environment() -> None:
    with _environment_locks.setdefault(os.getpid(), RLock()):
        runs = tuple(_announced)
        wanted = runs[0].variables() if len(runs) == 1 else {}
        for name in (RUN_VARIABLE, "TRACEPARENT"):
            ours, before = shown.pop(name, (None, None))
            now = os.environ.get(name)
            if now != ours:  # the agent's own, from the beginning or by now
                ours, before = None, now
            value = wanted.get(name)
            if value is not None and not (before and name == "TRACEPARENT"):
                shown[name] = (value, before)
                os.environ[name] = value
            elif ours is not None:
                _put_back(name, before)


def _put_back(name: str, value: str | None) -> None:
    if value is None and _count() == 0:
        os.environ.pop(name, None)
    else:  # in another thread os.environ.copy() would fail with a KeyError if a name vanished
        os.environ[name] = value or ""
