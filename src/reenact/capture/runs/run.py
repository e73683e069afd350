"""Runs: ``with reenact.run(...)``, ``@reenact.run``, and the articles' ``RunContext.start()``.

A process may have thousands at once; a context variable says which one the code at hand belongs to.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from _contextvars import copy_context
from _thread import RLock, _count
from collections.abc import Callable, Mapping
from contextvars import Token
from types import TracebackType
from typing import Any, TypeVar, overload

from ...errors import UsageError
from ...lines import new_id
from .. import guard
from ..calls import callers
from ..calls.error_fields import failure
from ..front.decorators import Watch, watched
from ..front.options import Options, check_path
from ..recorder.recorder import Recorder, begin_run
from . import crashes, location
from .allowed_programs import allow, entry_key
from .current import current_run, making
from .entry_point import entry_of
from .location import (
    RUN_VARIABLE,
    absolute,
    announcement,
    current_folder,
    elsewhere,
    git_commit,
    shown,
    start_fields,
)

F = TypeVar("F", bound=Callable[..., Any])


BENEATH = "__reenact_run__"
"""What ``@reenact.run`` decorates, on the decorated function: a replay calls it as a part of its own run."""


class RunContext:
    """One run: its id, and its recorder once something is recorded."""

    def __init__(self, name: str | None = None, run_id: str | None = None, **options: Any) -> None:
        for what, text in (("name", name), ("id", run_id)):
            if text is not None and not isinstance(text, str):
                raise UsageError(
                    f"a run's {what} is text, not {type(text).__name__}",
                    hint='for example run("trip-planner")',
                )
        self.run_id = run_id or new_id(16)
        self.name = name
        path = options.pop("path", None)
        self._path = absolute(check_path(path)) if path is not None else None
        head = {key: options.pop(key, None) for key in ("input", "entry", "entry_from", "fork", "parent_run")}
        self._head = {key: value for key, value in head.items() if value is not None}
        self._options = Options(**options)
        self._recorder: Recorder | None = None
        self.caller = callers.enter_run()
        """The thread, task or work item that begins the run, as a caller inside of it."""
        parent = current_run.get()
        if parent is not None and parent.id_for_inner_runs() is not None:
            self._head.setdefault("parent_run", parent.id_for_inner_runs())

    @classmethod
    def start(cls, name: str | None = None, **options: Any) -> RunContext:
        """Make a new run the context's own, ending the one that ``start()`` began before it.

        Nothing is written until something is recorded without a path.
        """
        previous = current_run.get()
        if previous is not None and previous._started is not None:
            try:
                current_run.reset(previous._started)
            except (ValueError, RuntimeError):
                pass  # started in another context, by a task that started ours: it continues
            else:
                previous.close("unclosed")
        run = cls(name, **options)
        run._started = current_run.set(run)
        return run

    _started: Token[RunContext | None] | None = None

    def recorder(self) -> Recorder:
        """Return the run's recorder; its file exists from then on."""
        if self._recorder is None:
            with making():
                if self._recorder is None:
                    self._recorder = self._new_recorder()
        return self._recorder

    def _new_recorder(self) -> Recorder:
        head = {**self._head, **_where_from()}
        if "entry" in head:
            head["cwd"] = current_folder()
        return begin_run(self._path, self._options, name=self.name, run_id=self.run_id, **head)

    def id_for_inner_runs(self) -> str | None:
        """Return the run that one begun inside of this has as its parent."""
        return self.run_id

    def adopt(self, path: str, options: Options) -> Recorder:
        """Return a recorder for a front end that writes this run to a path of its own choice."""
        path = elsewhere(path, self.run_id)
        with making():
            if self._recorder is None:
                head = start_fields(self.name, options, **self._head)
                self._recorder = Recorder(path, options, run_id=self.run_id, head=head)
            elif self._recorder.path != path:
                return Recorder(path, options, run_id=self.run_id, parent_w=self._recorder.w)
            return self._recorder

    def cite(self, claim: str, source: Any = None, **details: Any) -> None:
        """Record that a claim of the last answer has a source; see ``Tap.cite``. Never raises."""
        try:
            from ..calls.citation_events import write_citation

            write_citation(self.recorder(), claim, source, **details)
        except Exception as exc:
            guard.swallow("record a citation", exc)

    @property
    def path(self) -> str | None:
        """The trace file, None as long as nothing is recorded."""
        return self._recorder.path if self._recorder is not None else None

    def close(self, status: str = "ok", **end: Any) -> None:
        """End the run."""
        if self._recorder is not None:
            self._recorder.close(status, **end)

    def env(self, env: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return an environment whose processes join this run: ``subprocess.run(..., env=run.env())``."""
        self.recorder().start()
        environment = dict(os.environ if env is None else env)
        ours = self.variables()
        if environment.get("TRACEPARENT"):
            ours.pop("TRACEPARENT", None)
        return {**environment, **ours}

    def variables(self) -> dict[str, str]:
        """Return the environment variables by which a child process finds this run."""
        recorder = self.recorder()
        variables = {RUN_VARIABLE: announcement(self.run_id, recorder.w, recorder.run_stem)}
        if len(self.run_id) == 32 and all(digit in "0123456789abcdef" for digit in self.run_id):
            variables["TRACEPARENT"] = f"00-{self.run_id}-{recorder.w}{recorder.w}-01"
        return variables

    def __repr__(self) -> str:
        return f"<RunContext {self.run_id}{' ' + self.name if self.name else ''}>"


def _where_from() -> dict[str, Any]:
    """What it takes to run the same code again."""
    return {"python": sys.version.split(" ", 1)[0], "git": git_commit()}


class _Run:
    """What ``run(...)`` returns: a context manager, also asynchronous, and a decorator."""

    def __init__(self, name: str | None, options: dict[str, Any]) -> None:
        self.name = name
        self.options = options
        RunContext(name, **dict(options))  # a wrong argument is reported here, not when the agent runs
        self._entered: list[tuple[RunContext, Token[RunContext | None]]] = []

    def __enter__(self) -> RunContext:
        context = RunContext(self.name, **dict(self.options))
        self._entered.append((context, current_run.set(context)))
        try:
            context.recorder().start()
            crashes.install()
            _announce(context)
        except Exception as exc:
            guard.swallow("begin a run", exc)
        return context

    def leave(self) -> tuple[RunContext, Token[RunContext | None]]:
        """Give the context back to whoever had it, without ending the run."""
        mine = self._mine()
        try:
            current_run.reset(mine[1])
        except (ValueError, RuntimeError):
            pass  # left in another context than it was entered in, or left already
        return mine

    def _mine(self) -> tuple[RunContext, Token[RunContext | None]]:
        """Return what this task entered: one ``run(...)`` may be entered by several at once."""
        here = current_run.get()
        for each in tuple(self._entered):
            if each[0] is here:
                return each
        return self._entered[-1]

    def re_enter(self) -> None:
        context, _ = self._entered[-1]
        self._entered[-1] = (context, current_run.set(context))

    def __exit__(self, kind: object, exc: BaseException | None, tb: TracebackType | None) -> None:
        try:
            mine = self.leave()
            self._entered.remove(mine)  # in one step: other threads enter and leave this very object
            try:
                _withdraw(mine[0])
            finally:
                end(mine[0], exc)
        except Exception as own:
            guard.swallow("end a run", own)

    async def __aenter__(self) -> RunContext:
        return self.__enter__()

    async def __aexit__(self, kind: object, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.__exit__(kind, exc, tb)

    def __call__(self, function: F) -> F:
        return run_decorator(function, self.name, self.options)


def run_decorator(function: F, name: str | None, options: dict[str, Any]) -> F:
    """Make every call of the function a run of its own."""
    decorated = watched(function, _RunWatch(function, name, options))
    setattr(decorated, BENEATH, function)
    return decorated


class _RunWatch(Watch):
    def __init__(self, function: Callable[..., Any], name: str | None, options: dict[str, Any]) -> None:
        self.name = name or getattr(function, "__name__", "run")
        self.where = entry_of(function)
        self.options = options
        self.is_marked = False
        """True once the function may be replayed without a question: its user has run it."""

    def begin(self, args: dict[str, Any]) -> Any:
        options = {**self.options, **self.where}
        if options.get("input") is None:
            options["input"] = args
        entered = _Run(self.name, options)
        entered.__enter__()
        if not self.is_marked and not location.replaying:
            self.is_marked = True
            allow(entry_key(self.where["entry"], self.where.get("entry_from")))
        return entered

    def end(self, token: Any, result: Any, exc: BaseException | None) -> None:
        token.__exit__(None, exc, None)

    def pause(self, token: Any) -> None:
        token.leave()

    def resume(self, token: Any) -> None:
        token.re_enter()


def end(context: RunContext, exc: BaseException | None) -> None:
    """End a run the way its block was left."""
    if exc is None:
        context.close("ok")
        return
    if isinstance(exc, SystemExit):
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        context.close("error" if code else "ok", exit=code)
        return
    error = failure(exc)
    cancelled = not isinstance(exc, Exception)
    context.recorder().emit("error", {"where": "run", "error": error})
    crashes.seen(exc)
    context.close("cancelled" if cancelled else "error", error=error)


@overload
def run(name: F) -> F: ...
@overload
def run(
    name: str | None = None,
    *,
    input: Any = None,
    metadata: dict[str, Any] | None = None,
    path: Any = None,
    **options: Any,
) -> _Run: ...


def run(
    name: Any = None, *, input: Any = None, metadata: Any = None, path: Any = None, **options: Any
) -> Any:
    """Record what happens inside as one run.

    ``with run("trip", input=..., metadata={"environment": "prod"}) as r:``, ``async with``, or ``@run``.
    """
    if metadata is not None:
        options["meta"] = metadata
    arguments = {**options, "input": input, "path": path}
    if callable(name):
        return _Run(None, arguments)(name)
    return _Run(name, arguments)


def carry(function: F) -> F:
    """Return the function bound to the run of this moment, for threads and executors that lose it."""
    if inspect.iscoroutinefunction(function):
        return _carry_coroutine(function)
    context = copy_context()

    def carried(*args: Any, **kwargs: Any) -> Any:
        # A copy each time: one context cannot be entered by two threads at once.
        return context.copy().run(function, *args, **kwargs)

    return functools.wraps(function)(carried)  # type: ignore[return-value]


def _carry_coroutine(function: F) -> F:
    """A coroutine runs in the context of its task; only the run can be carried there."""
    run = current_run.get()

    @functools.wraps(function)
    async def carried(*args: Any, **kwargs: Any) -> Any:
        token = current_run.set(run)
        try:
            return await function(*args, **kwargs)
        finally:
            current_run.reset(token)

    return carried  # type: ignore[return-value]


# Child processes find the run they belong to in the environment. That is the whole process's, so it names a
# run only while exactly one is open.

MAX_RUNS = 64
"""A process that begins more is a server: setting a variable costs memory that C never gives back.
Its children join by ``env=run.env()``."""

_count_of_runs = 0
_announced: list[RunContext] = []
_environment_locks: dict[int, RLock] = {}


def _announce(context: RunContext) -> None:
    """Tell child processes which run they belong to, as long as there is only one it can be."""
    global _count_of_runs
    _count_of_runs += 1
    if _count_of_runs <= MAX_RUNS:
        _announced.append(context)
        _set_environment()


def _withdraw(context: RunContext) -> None:
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
