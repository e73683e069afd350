"""Who asks: which line of work makes a call, by a name that is the same in every execution of the same code.

A line of work is a thread, a task of an event loop, or a function submitted to a thread pool. Its name is the
way it was begun: ``main/ask.2`` is the third ``ask`` that the main line began. The seam ``lines_of_work``
keeps this up to date; without it nothing is known. Light: loaded with ``threading``.
"""

from __future__ import annotations

import sys
from _contextvars import ContextVar
from _thread import _local, get_ident
from _weakref import ref
from itertools import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAIN = "main"
MARK = "_reenact_asker"
"""The attribute of a thread, a task and a work item that holds its asker."""
MAX_PATH = 160
"""Characters of a name; a line that begins the next, and so on without end, gets a digest instead."""
MAX_LABEL = 40


class Asker:
    """One line of work."""

    __slots__ = ("begun", "has_asked", "line", "loop", "path", "root", "run")

    def __init__(self, path: str, parent: Asker | None, begun: dict[str, count[int]] | None = None) -> None:
        self.path = path
        self.root: Asker = self if parent is None else parent.root
        self.run: str | None = None if parent is None else parent.run
        """The id of the run that it was begun in; names are relative to that."""
        self.line: Asker | None = None
        """The line itself, where this is how it is called in a run that it has entered."""
        self.begun = {} if begun is None else begun
        """How many lines it has begun, by label."""
        self.has_asked = False
        self.loop: Any = None
        """A weak reference to the event loop it has run last, or runs."""

    def child(self, label: str) -> Asker:
        """Return the next line of this label that this one begins."""
        number = next(self.begun.setdefault(label, count()))  # atomic: two threads never share a number
        path = f"{self.path}/{label}.{number}"
        return Asker(path if len(path) <= MAX_PATH else _shortened(path), self)


VISITOR = Asker("", None)
"""A worker thread of anyio: it runs the work of others, in their contexts."""

_root: Asker | None = None
"""The line in which recording began; None while nobody keeps track."""
_root_thread = 0
_here = _local()
"""Of each thread: ``asker``, its line of work; ``creating``, a task that may run before it has its mark."""
_of_context: ContextVar[Asker | None] = ContextVar("reenact_asker", default=None)
"""The thread or work item whose context this is a copy of. Never set for a task: tasks are created in
finalisers, too, and a finaliser touches no context variable."""


def begin(before: Asker | None) -> Asker:
    """Keep track from now on, this line being the first, or go on from ``before``; returns the first line."""
    global _root, _root_thread
    _root = before or Asker(MAIN, None)
    _done.clear()
    if before is None:
        _root_thread = get_ident()
        _of_context.set(_root)
        loop = _running_loop()
        task = None if loop is None else _task_of(loop)
        if task is not None:
            setattr(task, MARK, _root)
    if _root_thread == get_ident():
        _here.asker = _root
    return _root


def stop() -> None:
    """Keep track no longer."""
    global _root
    _root = None


def current() -> Asker | None:
    """Return who asks here, None if it is not known."""
    if _root is None:
        return None
    line, run = _line(), _current_run()
    if line is VISITOR:
        return None if run is None else run.asker
    if line is None or line.root is not _root:
        return None
    if line.run == (None if run is None else run.run_id):
        return line
    entered: Asker | None = None if run is None else run.asker
    return entered if entered is not None and entered.line is line else None


def who_asks() -> str | None:
    """Return the name of who asks here, None if it is not known."""
    asker = current()
    return None if asker is None else asker.path


def asked() -> dict[str, Any]:
    """Return the fields of a call that is made here: ``who``, and ``done``, who has ended since the last."""
    asker = current()
    if asker is None:
        return {}
    asker.has_asked = True
    done = _done.pop(asker.run, None)
    return {"who": asker.path} if done is None else {"who": asker.path, "done": done}


_done: dict[str | None, list[str]] = {}
"""Threads and work items that made calls and have ended, by the run of their names.

Between its last response and its end a thread may be overtaken; who waits for several sees the ends."""
MAX_DONE = 1_000


def _note_end(asker: Asker) -> None:
    done = _done.setdefault(asker.run, [])
    if len(done) < MAX_DONE:
        done.append(asker.path)


def enter_run(run_id: str) -> Asker | None:
    """Return how the line at hand is called in a run that it begins."""
    line = None if _root is None else _line()
    if line is None or line.root is not _root:
        return None
    entered = Asker(MAIN, line)
    entered.run, entered.line = run_id, line
    return entered


def _line() -> Asker | None:
    """Return the thread, task or work item at hand."""
    loop = _running_loop()
    if loop is None:
        return getattr(_here, "asker", None)
    task = _task_of(loop)
    if task is not None:
        return getattr(task, MARK, None) or getattr(_here, "creating", None)
    asker = _of_context.get()  # of a callback: whose context it is a copy of
    own_loop = None if asker is None or asker.loop is None else asker.loop()
    is_one_of_many = own_loop is not None and own_loop.is_running()  # some task of that loop has scheduled it
    return None if is_one_of_many else asker


def _running_loop() -> Any:
    events: Any = sys.modules.get("asyncio.events")
    return None if events is None else events._get_running_loop()


def _task_of(loop: Any) -> Any:
    tasks: Any = sys.modules["asyncio.tasks"]
    return tasks.current_task(loop)


def _current_run() -> Any:
    current: Any = sys.modules.get("reenact.capture.runs.current")
    return None if current is None or current.only is not None else current.current_run.get()


# What the seam calls.


def new_line(work: object) -> Asker | None:
    """Return who a thread or a work item will be that is begun here, None if it is not known."""
    parent = current()
    return None if parent is None else parent.child(label_of(work))


def new_task(loop: Any, coroutine: object) -> Asker | None:
    """Return who a task will be that is created here.

    The first one that a line creates outside of a loop is the line itself: it is about to run that loop, and
    to wait for the task.
    """
    known = _expected.pop(id(coroutine), None)
    if known is not None and known[0]() is coroutine:
        return known[1]
    parent = current()
    if parent is None:
        return None
    if _running_loop() is not None:
        return parent.child(label_of(coroutine))
    is_first = parent.loop is None
    parent.loop = (parent.line or parent).loop = ref(loop)
    return Asker(parent.path, parent, parent.begun) if is_first else parent.child(label_of(coroutine))


_expected: dict[int, tuple[Any, Asker]] = {}
"""Coroutines whose tasks will be created in any order, by id: a weak reference, and who each will be."""


def expect_tasks(coroutines: Iterable[object]) -> None:
    """Note in which order these were given, before their tasks are created in another one."""
    parent = current()
    for each in coroutines:
        if parent is not None and type(each).__name__ == "coroutine":
            key = id(each)
            gone = ref(each, lambda _, key=key: _expected.pop(key, None))  # type: ignore[misc]
            _expected[key] = gone, parent.child(label_of(each))


class Working:
    """Around the work of a thread or a work item: whose line it is."""

    __slots__ = ("_asker", "_before", "_token")

    def __init__(self, asker: Asker | None) -> None:
        self._asker = asker

    def __enter__(self) -> None:
        self._before = getattr(_here, "asker", None)
        self._token = _of_context.set(self._asker)
        _here.asker = self._asker

    def __exit__(self, *_: object) -> None:
        if self._asker is not None and self._asker.has_asked and self._asker.root is _root:
            _note_end(self._asker)
        _here.asker = self._before
        _of_context.reset(self._token)


class Creating:
    """Around the creation of a task: an eager one runs before anybody can mark it."""

    __slots__ = ("_asker", "_before")

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def __enter__(self) -> None:
        self._before = getattr(_here, "creating", None)
        _here.creating = self._asker

    def __exit__(self, *_: object) -> None:
        _here.creating = self._before


def label_of(work: Any) -> str:
    """Return the name of a function or a coroutine; of anything else, that of its type."""
    if type(work).__name__ == "partial":
        work = getattr(work, "func", work)
    name = getattr(work, "__name__", None)
    return (name if type(name) is str else type(work).__name__)[:MAX_LABEL]


def _shortened(path: str) -> str:
    from _blake2 import blake2b

    before, _, last = path.rpartition("/")
    return f"{MAIN}~{blake2b(before.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}/{last}"
