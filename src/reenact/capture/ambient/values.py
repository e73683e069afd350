"""``reenact.now()``, ``uuid()``, ``random()``: values that differ, recorded and the same in a replay.

Outside of any run they return real values.
"""

from __future__ import annotations

import datetime
import os
import random as python_random
import sys
import time
import uuid as python_uuid
from _thread import RLock
from collections.abc import Callable
from typing import Any

from ... import schema
from .. import guard, replay_hook
from ..recorder.recorder import Recorder
from ..runs import current
from ..runs.location import parent_run

MOST = 10_000
"""Values of one name that a process records: a clock that is read in a loop must not fill the disk."""

_drawn: dict[tuple[str, str], int] = {}
_locks: dict[int, RLock] = {}
"""One per process: in a forked child another thread of the parent may have held the parent's."""


def now(tz: datetime.tzinfo | None = None) -> datetime.datetime:
    """Return the time, in UTC without ``tz``; in a replay, the recorded one."""
    return datetime.datetime.fromtimestamp(drawn("now", time.time, (int, float)), tz or datetime.UTC)


def uuid() -> python_uuid.UUID:
    """Return a random UUID; in a replay, the recorded one."""
    return drawn_uuid("uuid", "uuid4")


def random() -> float:
    """Return a random number from 0 to 1; in a replay, the recorded one."""
    value: float = drawn("random", python_random.random, (int, float))
    return value


def drawn(name: str, make: Callable[[], Any], kind: type | tuple[type, ...]) -> Any:
    """Return a value of a name: the recorded one if there is one of this kind, else a new one, recorded."""
    try:
        recorder = _run_at_hand()
    except Exception as exc:
        guard.swallow(f"record {name}", exc)
        return make()
    if recorder is None:
        return make()
    thread = _thread()
    with _locks.setdefault(os.getpid(), RLock()):  # what is drawn first stands first in the recording
        value = replay_hook.recorded_value(name, thread)
        if not isinstance(value, kind):
            value = make()
        _record(recorder, name, thread, value)
    return value


def drawn_uuid(name: str, how: str, *args: Any) -> python_uuid.UUID:
    """Return a UUID made by one of Python's own functions."""

    def make() -> str:
        return str(getattr(python_uuid, how)(*args))

    text = drawn(name, make, str)
    try:
        return python_uuid.UUID(text)
    except ValueError:  # the recording does not hold one
        return python_uuid.UUID(make())


def _record(recorder: Recorder, name: str, thread: str | None, value: Any) -> None:
    key = (recorder.w, name)
    count = _drawn[key] = _drawn.get(key, 0) + 1
    if count > MOST:
        guard.tell(
            f"ambient:{name}",
            f"{name} was read {MOST} times; further values are not recorded, and a replay returns real ones.",
        )
        return
    fields = {"name": name, "value": value}
    recorder.emit(schema.AMBIENT, fields if thread is None else {"name": name, "thread": thread, **fields})


def _run_at_hand() -> Recorder | None:
    """Return the recorder of the current run; never starts a run."""
    run = current.current_run.get()
    if current.only is not None or run is not None or current.known_process_recorder() is not None:
        return current.current_recorder()
    return current.process_recorder() if parent_run()[2] else None


def _thread() -> str | None:
    """Return the name of this thread, that of its pool if it is one of many; None for the main one."""
    threading = sys.modules.get("threading")
    if threading is None:
        return None
    here = threading.current_thread()
    if here is threading.main_thread():
        return None
    pool, mark, number = here.name.rpartition("_")
    return str(pool if mark and number.isdigit() else here.name)
