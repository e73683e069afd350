"""Threads, tasks of event loops and work items of thread pools: each gets a name where it is started.

The thread, the task or the executor's own record of the work carries it. The work, its context, its pickled
form and the tracebacks of its exceptions are as without us.
"""

from __future__ import annotations

import sys

from .. import guard
from ..calls import callers
from ..calls.callers import MARK
from .patching import look_like, replace, undo_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DOING = "name a new thread or task"


def patch(module: Any, watch: Any) -> Callable[[], None]:
    """Listen to one of the modules that start work; returns what undoes it.

    A module that is not as expected is left alone: its callers are not known then, and a replay reports it
    where it matters.
    """
    if module.__name__ == "asyncio.tasks":
        return _listen_to_as_completed(module)
    owner_name, wrappers = _WRAPPERS[module.__name__]
    owner = getattr(module, owner_name, None)
    if not all(hasattr(owner, name) for name in wrappers):
        return undo_all()
    originals = {name: getattr(owner, name) for name in wrappers}
    methods = {name: wrappers[name](original) for name, original in originals.items()}
    for name, method in methods.items():
        look_like(method, originals[name])
    return replace(owner, methods)


def _start_thread(original: Any) -> Any:
    def start(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            vars(self)[MARK] = _caller_of_thread(self)
        except Exception as exc:
            guard.swallow(_DOING, exc)
        return original(self, *args, **kwargs)

    return start


def _caller_of_thread(thread: Any) -> callers.Caller | None:
    library = type(thread).__module__.partition(".")[0]
    if library == "anyio":
        return callers.SHARED_WORKER
    if library == "multiprocessing":  # a ThreadPool's: which of them does which work is chance
        return None
    target = vars(thread).get("_target")
    return callers.new_caller(type(thread) if target is None else target)


def _run_thread(original: Any) -> Any:
    def _bootstrap_inner(self: Any, *args: Any, **kwargs: Any) -> Any:
        with callers.Running(vars(self).get(MARK)):
            return original(self, *args, **kwargs)

    return _bootstrap_inner


def _create_item(original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        try:
            work = args[1] if len(args) > 1 else None
            caller = callers.new_caller(work[0] if type(work) is tuple and work else work)
            setattr(self, MARK, caller)
            if caller is not None:
                # First of all callbacks: that of an event loop lets other threads run, which would overtake.
                args[0].add_done_callback(lambda _: caller.ends())
        except Exception as exc:
            guard.swallow(_DOING, exc)

    return __init__


def _run_item(original: Any) -> Any:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with callers.Running(getattr(self, MARK, None)):
            try:
                return original(self, *args, **kwargs)
            finally:
                del self  # an exception of the work refers to this frame: no cycle through its future

    return run


def _create_task(original: Any) -> Any:
    def create_task(self: Any, *args: Any, **kwargs: Any) -> Any:
        coroutine = args[0] if args else kwargs.get("coro")
        caller = None
        try:
            caller = callers.new_task(self, coroutine)
        except Exception as exc:
            guard.swallow(_DOING, exc)
        try:
            return _marked(original(self, *args, **kwargs), caller)
        finally:
            callers.created(coroutine)

    return create_task


def _marked(task: Any, caller: callers.Caller | None) -> Any:
    """Return a task with its caller; in asyncio's debug mode, without our frame where it was created."""
    try:
        if caller is not None:
            setattr(task, MARK, caller)
    except Exception as exc:  # a task of the application's own kind may take no attribute
        guard.pass_on(exc)
    frames = getattr(task, "_source_traceback", None)
    while frames and frames[-1].filename == _OURS:
        del frames[-1]
    return task


def _listen_to_as_completed(module: Any) -> Callable[[], None]:
    """Name the tasks of ``as_completed`` in the order of its argument: it makes a set of them."""
    original = module.as_completed

    def as_completed(*args: Any, **kwargs: Any) -> Any:
        try:
            coroutines: Any = args[0] if args else kwargs.get("fs")
            if type(coroutines) in (list, tuple):  # an iterator is left for the original
                callers.expect_tasks(coroutines)
        except Exception as exc:
            guard.swallow(_DOING, exc)
        return original(*args, **kwargs)

    look_like(as_completed, original)
    package = sys.modules.get("asyncio")
    owners = [module, *([package] if getattr(package, "as_completed", None) is original else [])]
    return undo_all(*(replace(owner, {"as_completed": as_completed}) for owner in owners))


_WRAPPERS: dict[str, tuple[str, dict[str, Callable[[Any], Any]]]] = {
    "threading": ("Thread", {"start": _start_thread, "_bootstrap_inner": _run_thread}),
    "concurrent.futures.thread": ("_WorkItem", {"__init__": _create_item, "run": _run_item}),
    "asyncio.base_events": ("BaseEventLoop", {"create_task": _create_task}),
    "uvloop": ("Loop", {"create_task": _create_task}),
}
"""The class of each module, and what wraps its methods."""
_OURS = _create_task.__code__.co_filename
