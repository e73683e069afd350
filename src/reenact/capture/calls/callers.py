"""Callers: the thread, task or work item that makes a call, by a name that is the same in every execution.

A work item is a function submitted to a thread pool. A caller's name is the way it was started:
``main/vote.2`` is the third ``vote`` that the main thread started. The seam ``threads_and_tasks`` keeps this
up to date; without it no caller is known. Light: loaded with ``threading``.
"""

from __future__ import annotations

import sys
from _contextvars import ContextVar
from _thread import _local, get_ident
from _weakref import ref
from itertools import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

MAIN = "main"
MARK = "_reenact_caller"
"""The attribute of a thread, a task and a work item that holds its caller."""
MAX_PATH = 160
"""Characters of a name; where each caller starts the next without end, a digest replaces its beginning."""
MAX_LABEL = 40
MAX_ENDED = 1_000


class Caller:
    """A thread, a task or a work item."""

    __slots__ = ("base", "children", "ended", "has_called", "invoked", "loop", "outside", "path", "root")

    def __init__(
        self, path: str, parent: Caller | None, children: dict[str, count[int]] | None = None
    ) -> None:
        self.path = path
        self.root: Caller = self if parent is None else parent.root
        """The main caller of this recording."""
        self.base: Caller = self if parent is None else parent.base
        """The main caller of the run it was started in: names are relative to that."""
        self.outside: Caller | None = None
        """Of the main caller of a run: the same thread, task or work item outside of the run."""
        self.children = {} if children is None else children
        """How many it has started, by label."""
        self.has_called = False
        self.ended: list[str] = [] if parent is None else parent.ended
        """Threads and work items of the run that made calls and have ended since its last call."""
        self.invoked: Any = None if parent is None else parent.invoked
        """The tool use that a framework acts upon; what it starts may be a work item without its context."""
        self.loop: Any = None
        """A weak reference to the event loop that it runs, or ran last."""

    def child(self, label: str) -> Caller:
        """Return the next caller with this label that this one starts."""
        number = next(self.children.setdefault(label, count()))  # atomic: two threads never share a number
        path = f"{self.path}/{label}.{number}"
        return Caller(path if len(path) <= MAX_PATH else _shortened(path), self)

    def ends(self) -> None:
        """Note the end of a thread or a work item, for the next call.

        Another may overtake it between its last response and its end; who waits for several sees the ends.
        """
        if self.has_called and self.root is _root and len(self.ended) < MAX_ENDED:
            self.has_called = False  # once
            self.ended.append(self.path)


SHARED_WORKER = Caller("", None)
"""A thread of a library that takes work from a queue: its name says nothing about the work."""

_root: Caller | None = None
"""The caller that started the recording; None while nothing is recorded."""
_root_thread = 0
_here = _local()
"""Of each thread: ``caller``."""
_of_context: ContextVar[Caller | None] = ContextVar("reenact_caller", default=None)
"""The thread or work item that this context is from. Never set for a task: tasks are also created in
finalisers, and a finaliser touches no context variable."""


def begin(before: Caller | None) -> Caller:
    """Name callers from now on: the one at hand is the first, or ``before`` was; returns the first."""
    global _root, _root_thread
    _root = before or Caller(MAIN, None)
    _root.ended.clear()
    if before is None:
        _root_thread = get_ident()
        _of_context.set(_root)
        loop = _running_loop()
        task = None if loop is None else _task_of(loop)
        if task is not None:
            setattr(task, MARK, _root)
    if _root_thread == get_ident():
        _here.caller = _root
    return _root


def stop() -> None:
    """Name callers no longer."""
    global _root
    _root = None


def current() -> Caller | None:
    """Return the caller at hand, by its name in the run at hand; None if it is not known."""
    if _root is None:
        return None
    caller, run = _caller(), _current_run()
    base: Caller | None = _root if run is None else run.caller
    if caller is SHARED_WORKER:  # anyio's run the work of one request of a server in its context
        return None if run is None else base
    if caller is None or base is None or caller.root is not _root:
        return None
    if caller.base is base:
        return caller
    return base if base.outside is caller else None


def caller_name() -> str | None:
    """Return the name of the caller at hand, None if it is not known."""
    caller = current()
    return None if caller is None else caller.path


def caller_fields() -> dict[str, Any]:
    """Return the fields of a call that begins here: ``who``, and ``done``, the callers that have ended."""
    caller = current()
    if caller is None:
        return {}
    caller.has_called = True
    fields: dict[str, Any] = {"who": caller.path}
    if caller.ended:
        fields["done"] = _taken(caller.ended)
    return fields


def _taken(names: list[str]) -> list[str]:
    """Empty a list that other threads add to and take from."""
    taken = []
    try:
        while True:
            taken.append(names.pop(0))
    except IndexError:
        return taken


def enter_run() -> Caller | None:
    """Return the main caller of a run that begins here, None if the caller at hand is not known."""
    caller = None if _root is None else _caller()
    if caller is None or caller.root is not _root:
        return None
    main = Caller(MAIN, caller)
    main.base, main.outside, main.ended = main, caller, []
    return main


def _caller() -> Caller | None:
    """Return the thread, task or work item at hand."""
    loop = _running_loop()
    if loop is None:
        return None if _is_one_of_many() else getattr(_here, "caller", None)
    task = _task_of(loop)
    if task is not None:
        return getattr(task, MARK, None) or _expected_of(task.get_coro())
    caller = _of_context.get()  # of a callback: the one whose context it is a copy of
    own_loop = None if caller is None or caller.loop is None else caller.loop()
    is_unclear = own_loop is not None and own_loop.is_running()  # some task of that loop has scheduled it
    return None if is_unclear else caller


def _is_one_of_many() -> bool:
    """True in a task of trio, and where gevent has put greenlets in place of threads: they take turns."""
    threading: Any = sys.modules.get("threading")
    if threading is not None and threading.get_ident is not get_ident:
        return True
    trio: Any = sys.modules.get("trio.lowlevel")
    if trio is None:
        return False
    try:
        return trio.current_task() is not None
    except (AttributeError, RuntimeError):  # still being imported, or not in trio
        return False


def _running_loop() -> Any:
    running = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
    return None if running is None else running()  # None too while another thread still imports asyncio


def _task_of(loop: Any) -> Any:
    tasks: Any = sys.modules["asyncio.tasks"]
    return tasks.current_task(loop)


def _current_run() -> Any:
    current: Any = sys.modules.get("reenact.capture.runs.current")
    if not hasattr(current, "only"):  # not loaded, or another thread still imports it
        return None
    return current.current_run.get() if current.only is None else None


# What the seam calls.


def new_caller(work: object) -> Caller | None:
    """Return the caller of a thread or a work item that starts here, None if the one at hand is not known."""
    parent = current()
    return None if parent is None else parent.child(label_of(work))


def new_task(loop: Any, coroutine: object) -> Caller | None:
    """Return the caller of a task that is created here, until ``created`` known by its coroutine too.

    The first task that a thread creates outside of a loop is the thread itself: it is about to run that loop,
    and to wait for the task.
    """
    caller = _expected_of(coroutine) or _caller_of_task(loop, coroutine)
    if caller is not None:
        _expected[id(coroutine)] = lambda: coroutine, caller
    return caller


def _caller_of_task(loop: Any, coroutine: object) -> Caller | None:
    parent = current()
    if parent is None:
        return None
    if _running_loop() is not None:
        return parent.child(label_of(coroutine))
    is_first = parent.loop is None
    parent.loop = (parent.outside or parent).loop = ref(loop)
    return Caller(parent.path, parent, parent.children) if is_first else parent.child(label_of(coroutine))


_expected: dict[int, tuple[Callable[[], object], Caller]] = {}
"""Callers of tasks that are not created yet, by the id of their coroutine, with a reference to that."""


def _expected_of(coroutine: object) -> Caller | None:
    known = _expected.get(id(coroutine))
    return known[1] if known is not None and known[0]() is coroutine else None


def expect_tasks(coroutines: Iterable[object]) -> None:
    """Name the tasks of these in this order, before they are created in another one."""
    parent = current()
    for each in coroutines:
        if parent is not None and type(each).__name__ == "coroutine":
            key = id(each)
            weakly = ref(each, lambda _, key=key: _expected.pop(key, None))  # type: ignore[misc]
            _expected[key] = weakly, parent.child(label_of(each))


def created(coroutine: object) -> None:
    """The task of a coroutine has its mark; an eager one has run without it."""
    _expected.pop(id(coroutine), None)


class Running:
    """Around the work of a thread or a work item: it is the caller."""

    __slots__ = ("_before", "_caller", "_of_context_before")

    def __init__(self, caller: Caller | None) -> None:
        self._caller = caller

    def __enter__(self) -> None:
        self._before = getattr(_here, "caller", None)
        self._of_context_before = _of_context.get()
        _of_context.set(self._caller)
        _here.caller = self._caller

    def __exit__(self, *_: object) -> None:
        if self._caller is not None:
            self._caller.ends()
        _here.caller = self._before
        _of_context.set(self._of_context_before)  # a token would refuse a context that changed meanwhile


_NAMED = {"function", "method", "builtin_function_or_method", "coroutine", "type"}
"""Types with a ``__name__`` that runs no code of the agent."""


def label_of(work: Any) -> str:
    """Return the name of a function, a coroutine or a class; of anything else, that of its type."""
    kind = type(work)
    if kind.__name__ == "partial" and kind.__module__ == "functools":
        work = work.func
        kind = type(work)
    name = getattr(work, "__name__", None) if kind.__name__ in _NAMED else None
    return (name if type(name) is str else kind.__name__)[:MAX_LABEL]


def _shortened(path: str) -> str:
    from _blake2 import blake2b

    before, _, last = path.rpartition("/")
    return f"{MAIN}~{blake2b(before.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}/{last}"
