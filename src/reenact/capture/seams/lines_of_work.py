"""Who asks: each thread, each task of an event loop and each function submitted to a thread pool gets a name.

The name is given where the work is begun, and carried by the thread, the task or the executor's own record of
the work. The work, its context, its pickled form and the tracebacks of its exceptions are as without us.
"""

from __future__ import annotations

import sys

from .. import guard
from ..calls import askers
from ..calls.askers import MARK
from .patching import listen, look_like, replace, undo_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DOING = "note who begins a thread or a task"


def patch(module: Any, watch: Any) -> Callable[[], None]:
    """Listen to one of the modules that begin work; returns what undoes it.

    A module that is not as expected is left alone: who asks is not known then, and a replay says so where
    it matters.
    """
    if module.__name__ == "asyncio.tasks":
        return _listen_to_as_completed(module)
    owner_name, taps = _TAPS[module.__name__]
    owner = getattr(module, owner_name, None)
    return listen(owner, taps) if all(hasattr(owner, name) for name in taps) else undo_all()


def _start(thread: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        is_visitor = type(thread).__module__.partition(".")[0] == "anyio"
        work = getattr(thread, "_target", None) or type(thread)
        vars(thread)[MARK] = askers.VISITOR if is_visitor else askers.new_line(work)
    except Exception as exc:
        guard.swallow(_DOING, exc)
    return original(thread, *args, **kwargs)


def _run_thread(thread: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
    with askers.Working(vars(thread).get(MARK)):
        return original(thread, *args, **kwargs)


def _submit(item: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
    original(item, *args, **kwargs)
    try:
        work = args[1] if len(args) > 1 else None
        setattr(item, MARK, askers.new_line(work[0] if type(work) is tuple and work else work))
    except Exception as exc:
        guard.swallow(_DOING, exc)


def _run_item(item: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
    with askers.Working(getattr(item, MARK, None)):
        return original(item, *args, **kwargs)


def _create_task(loop: Any, original: Any, coroutine: Any, *args: Any, **kwargs: Any) -> Any:
    asker = None
    try:
        asker = askers.new_task(loop, coroutine)
    except Exception as exc:
        guard.swallow(_DOING, exc)
    if asker is None:
        return _as_created(original(loop, coroutine, *args, **kwargs))
    with askers.Creating(asker):
        task = original(loop, coroutine, *args, **kwargs)
    try:
        setattr(task, MARK, asker)
    except Exception as exc:  # a task of the application's own kind may take no attribute
        guard.pass_on(exc)
    return _as_created(task)


def _listen_to_as_completed(module: Any) -> Callable[[], None]:
    """Note the order of the coroutines that ``as_completed`` makes a set of, and so tasks in any order."""
    original = module.as_completed

    def as_completed(*args: Any, **kwargs: Any) -> Any:
        try:
            given: Any = args[0] if args else kwargs.get("fs")
            if type(given) in (list, tuple):  # an iterator is left for the original
                askers.expect_tasks(given)
        except Exception as exc:
            guard.swallow(_DOING, exc)
        return original(*args, **kwargs)

    look_like(as_completed, original)
    package = sys.modules.get("asyncio")
    owners = [module, *([package] if getattr(package, "as_completed", None) is original else [])]
    return undo_all(*(replace(owner, {"as_completed": as_completed}) for owner in owners))


_TAPS: dict[str, tuple[str, dict[str, Callable[..., Any]]]] = {
    "threading": ("Thread", {"start": _start, "_bootstrap_inner": _run_thread}),
    "concurrent.futures.thread": ("_WorkItem", {"__init__": _submit, "run": _run_item}),
    "asyncio.base_events": ("BaseEventLoop", {"create_task": _create_task}),
    "uvloop": ("Loop", {"create_task": _create_task}),
}
"""The class of each module, and what is called in place of its methods."""
_OURS = tuple(function.__code__.co_filename for function in (_create_task, listen))


def _as_created(task: Any) -> Any:
    """Return a task; in asyncio's debug mode, without our frames in the place where it was created."""
    frames = getattr(task, "_source_traceback", None)
    while frames and frames[-1].filename in _OURS:
        del frames[-1]
    return task
