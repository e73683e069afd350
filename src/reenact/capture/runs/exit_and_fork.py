"""Every open recorder of the process: ended at exit, renewed after fork, flushed on request.

The hooks are set with the first recorder, never at import.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
from _weakref import ref

from ... import lines
from .. import guard
from ..recorder import file, listeners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..recorder.recorder import Recorder

_open: dict[int, ref[Recorder]] = {}
_hooked = False
exiting = False
"""True from our exit handler on: threads may be frozen from now, with a lock in their hands."""
how_it_ended: Callable[[Recorder], tuple[str, dict[str, Any]]] | None = None
"""Set by crashes.py when the crash hooks know more than that nobody closed the run."""
unseen: Callable[[], list[dict[str, Any]]] | None = None
"""Set by install.py: what the seams could not see in this process. Never raises."""
end_unread: Callable[[], None] | None = None
"""Set by exchange.py: records responses that came and were never read, before what the run died of."""
forget_searches: Callable[[], None] | None = None
"""Set by prefilter.py with RE2, which no Python loads at its start."""


def add(recorder: Recorder) -> None:
    """Remember a recorder until it is closed."""
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_at_exit)
        os.register_at_fork(after_in_child=_after_fork)
        if "orjson" in sys.modules:
            lines.accelerate()
    _open[id(recorder)] = ref(recorder)


def remove(recorder: Recorder) -> None:
    _open.pop(id(recorder), None)


def open_recorders() -> list[Recorder]:
    """Return every recorder that is not closed, oldest first."""
    return [recorder for each in list(_open.values()) if (recorder := each()) is not None]


def _at_exit() -> None:
    global exiting
    exiting = True
    if end_unread is not None:
        end_unread()
    for recorder in open_recorders():
        status, end = how_it_ended(recorder) if how_it_ended is not None else ("unclosed", {})
        recorder.exit(status, end)
    listeners.catch_up()


def _after_fork() -> None:
    guard.forget()
    file.after_fork_in_child()
    if forget_searches is not None:
        forget_searches()
    listeners.catch_up(forget=True)  # the parent passes on what its own recorders wrote
    for recorder in open_recorders():
        try:
            recorder.after_fork()
        except Exception as exc:
            guard.swallow("go on in a forked process", exc)


def flush(timeout: float = 5.0) -> bool:
    """Wait until all that was recorded is with the kernel and every bus is empty; False if time ran out."""
    listeners.catch_up()
    until = time.monotonic() + timeout
    done = True
    for recorder in open_recorders():
        for waiting in (recorder.sink, *recorder.listeners):
            if hasattr(waiting, "flush"):
                try:
                    done &= bool(waiting.flush(max(0.0, until - time.monotonic())))
                except Exception as exc:  # a listener of the user's own
                    done = False
                    guard.swallow(f"flush a {type(waiting).__name__}", exc)
    return done
