"""Which run an event belongs to when no path names it: the context's, else the process's own.

Never another run's: where the context is lost, the event goes to the process's run.
"""

from __future__ import annotations

import os
from _contextvars import ContextVar
from _thread import RLock
from typing import TYPE_CHECKING

from ..front.options import Options
from ..recorder.recorder import Recorder, begin_run
from .location import is_begun_for_us, notebook_name, parent_run

if TYPE_CHECKING:
    from .run import RunContext

current_run: ContextVar[RunContext | None] = ContextVar("reenact_run", default=None)

only: Recorder | None = None
"""Takes all that would go to the run at hand, whichever that is: a test has one file for what it does."""

_process_run: Recorder | None = None
_locks: dict[int, RLock] = {}


def making() -> RLock:
    """Return the lock under which a run gets its one recorder; nothing else may be waited for inside.

    One per process: in a forked child another thread of the parent may have held the parent's.
    """
    return _locks.setdefault(os.getpid(), RLock())


def current_recorder() -> Recorder:
    """Return the recorder of the run in this context, or of the process."""
    if only is not None:
        return only
    run = current_run.get()
    return process_recorder() if run is None else run.recorder()


def process_recorder() -> Recorder:
    """Return the process's own run, begun (or joined, in a child process) the first time it is needed."""
    global _process_run
    with making():
        if _process_run is None or _process_run.closed:
            _process_run = _join_parent() or begin_run(None, Options(), name=notebook_name())
        return _process_run


def known_process_recorder() -> Recorder | None:
    return _process_run if _process_run is not None and not _process_run.closed else None


def _join_parent() -> Recorder | None:
    """Join the run a parent process announced in the environment, or go on with the one begun for us."""
    run_id, w, stem = parent_run()
    if not stem:
        return None
    recorder = Recorder(stem + ".jsonl", Options(), run_id=run_id)
    if is_begun_for_us(stem + ".jsonl"):
        recorder.take_over(w)
    else:
        recorder.join(stem, w)
    return recorder
