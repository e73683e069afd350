"""How a run dies: uncaught exceptions in main, threads, asyncio tasks and finalisers become ``error`` events.

Every hook calls the one that was there before it and can be taken out again. No signal handler is set.
"""

from __future__ import annotations

import sys

from .. import guard
from ..calls.error_fields import failure
from . import exit_and_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..recorder.recorder import Recorder

_previous: dict[str, Any] = {}
_main_died: dict[str, Any] | None = None
_seen: list[tuple[object, ...]] = []
"""Exceptions already in the trace of the run they left; newest last."""


def install() -> None:
    """Set the hooks that are not set yet; threading and asyncio only once the agent has loaded them."""
    exit_and_fork.how_it_ended = how_it_ended
    if "main" not in _previous:
        _previous["main"], sys.excepthook = sys.excepthook, _main_hook
        _previous["unraisable"], sys.unraisablehook = sys.unraisablehook, _unraisable_hook
    threading: Any = sys.modules.get("threading")
    if threading is not None and "thread" not in _previous and hasattr(threading, "excepthook"):
        _previous["thread"], threading.excepthook = threading.excepthook, _thread_hook
    if "asyncio" in sys.modules and "logging" in sys.modules and "asyncio" not in _previous:
        # The default handlers of asyncio and uvloop report through this logger. A filter sees the
        # records and changes nothing; a handler would silence Python's handler of last resort.
        logger = sys.modules["logging"].getLogger("asyncio")
        logger.addFilter(_asyncio_filter)
        _previous["asyncio"] = logger


def remove() -> None:
    """Take the hooks out, as far as nobody has set others on top of them."""
    exit_and_fork.how_it_ended = None
    if _previous.get("main") is not None and sys.excepthook is _main_hook:
        sys.excepthook = _previous.pop("main")
    if _previous.get("unraisable") is not None and sys.unraisablehook is _unraisable_hook:
        sys.unraisablehook = _previous.pop("unraisable")
    threading: Any = sys.modules.get("threading")
    if threading is not None and _previous.get("thread") and threading.excepthook is _thread_hook:
        threading.excepthook = _previous.pop("thread")
    if "asyncio" in _previous:
        _previous.pop("asyncio").removeFilter(_asyncio_filter)


def seen(exc: BaseException) -> None:
    """Remember that this exception is recorded already."""
    _seen.append(_marks(exc))
    del _seen[:-100]


def _marks(exc: BaseException) -> tuple[object, ...]:
    """Tell an exception from others without keeping it alive; an id alone is soon that of another one."""
    error = failure(exc) or {}
    return (id(exc), error["type"], error["message"], *error["frames"][:1])


def how_it_ended(recorder: Recorder) -> tuple[str, dict[str, Any]]:
    """Return status and details for a run that nobody closed before the interpreter exits."""
    if _main_died is None:
        return "unclosed", {}
    interrupted = _main_died["type"] == "KeyboardInterrupt"
    return ("cancelled" if interrupted else "error"), {"exit": 130 if interrupted else 1, "error": _main_died}


def died_of(exc: Any, tb: Any, recorders: Iterable[Recorder]) -> None:
    """Record what the main thread died of."""
    global _main_died
    if exc is not None and exc.__traceback__ is None:
        exc = exc.with_traceback(tb)
    _main_died = failure(exc)
    for recorder in recorders:
        recorder.emit("error", {"where": "main", "error": _main_died})


def _main_hook(kind: Any, exc: Any, tb: Any) -> None:
    try:
        if exit_and_fork.end_unread is not None:
            exit_and_fork.end_unread()
        died_of(exc, tb, [recorder for recorder in exit_and_fork.open_recorders() if recorder.step])
    except Exception as own:
        guard.swallow("record an uncaught exception", own)
    previous = _previous.get("main") or sys.__excepthook__
    previous(kind, exc, tb)


def _thread_hook(args: Any) -> None:
    _record("thread", args.exc_value, thread=getattr(args.thread, "name", None))
    _previous["thread"](args)


def _unraisable_hook(args: Any) -> None:
    _record("unraisable", args.exc_value)
    (_previous.get("unraisable") or sys.__unraisablehook__)(args)


def _asyncio_filter(record: Any) -> bool:
    if type(record.exc_info) is tuple:
        _record("task", record.exc_info[1])
    return True


def _record(where: str, exc: BaseException | None, **more: Any) -> None:
    """Put an exception into the run it belongs to; nowhere if that is unknown."""
    try:
        if exc is None or isinstance(exc, SystemExit) or _marks(exc) in _seen:
            return
        # Finalisers, and asyncio's word on a forgotten task, come in the context of whoever runs just then.
        recorder = _run_at_hand(in_context=where == "thread")
        if recorder is not None:
            recorder.emit("error", {"where": where, **more, "error": failure(exc)})
    except Exception as own:
        guard.swallow("record an uncaught exception", own)


def _run_at_hand(*, in_context: bool) -> Recorder | None:
    """Return the run an error belongs to: the context's, else the process's own, else the only one."""
    current = sys.modules.get("reenact.capture.runs.current")
    if current is not None and hasattr(current, "known_process_recorder"):  # no thread still imports it
        run = current.current_run.get() if in_context else None
        if run is not None:
            found: Recorder = run.recorder()
            return found
        own: Recorder | None = current.known_process_recorder()
        if own is not None:
            return own
    recorders = [recorder for recorder in exit_and_fork.open_recorders() if recorder.step]
    return recorders[0] if len(recorders) == 1 else None
