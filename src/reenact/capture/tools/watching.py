"""A function watched through its code object: each call that is for a tool use is recorded.

While a run is recorded, hooks are called in the function's own frame (``bytecode.with_hooks``). Where a
recording answers, the function first asks what stands in for it (``bytecode.with_front``).
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary, ref

from ...schema import FOUND
from .. import guard, replay_hook
from ..calls.open_calls import open_uses
from ..calls.tool_events import begin_tool, end_tool
from ..front.decorators import Items, Watch, stand_in_for, watched
from . import bytecode
from .claims import Claim, claimed

_MOST_MAKERS = 1_000

_GENERATORS = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
_STARTED_LATER = _GENERATORS | inspect.CO_COROUTINE
"""A call of these only makes an object. It may never start, so it is for no tool use before it does."""

_watched: WeakKeyDictionary[FunctionType, WatchedFunction] = WeakKeyDictionary()


def watch(function: FunctionType, tool: str, source: str = FOUND) -> str:
    """Record the calls of a function for the uses of a tool; returns why that cannot be, "" if it can.

    ``source`` is who knows that it is the tool's: found by its name, or a framework.
    """
    known = _watched.get(function)
    if known is not None and function.__code__ is known.code:
        known.sources = {tool: source} | known.sources | ({tool: source} if source == FOUND else {})
        return ""
    why = bytecode.can_change(function.__code__)
    if not why:
        _watched[function] = WatchedFunction(function, tool, source)
    return why


def unwatch_all() -> None:
    """Give every function its own code back."""
    for function, each in list(_watched.items()):
        if function.__code__ is each.code:
            function.__code__ = each.original
    _watched.clear()
    for maker, original, code in _makers:
        _make_with(maker, code, original)
    _makers.clear()


_makers: list[tuple[FunctionType, CodeType, CodeType]] = []
"""Functions that define a watched one inside of them; with its code and what they define it with now."""


def _watch_those_to_come(function: FunctionType, original: CodeType, code: CodeType) -> None:
    """Have a function that is defined inside another one be watched from its next definition on, too."""
    outer, _, inner = function.__qualname__.partition(".<locals>.")
    maker: Any = function.__globals__.get(outer)
    if inner == original.co_name and isinstance(maker, FunctionType) and len(_makers) < _MOST_MAKERS:
        if _make_with(maker, original, code):
            _makers.append((maker, original, code))


def _make_with(maker: FunctionType, before: CodeType, after: CodeType) -> bool:
    consts = tuple(after if const is before else const for const in maker.__code__.co_consts)
    is_there = any(const is before for const in maker.__code__.co_consts)
    if is_there:
        maker.__code__ = maker.__code__.replace(co_consts=consts)
    return is_there


def is_watched(function: FunctionType) -> bool:
    """True if its calls are recorded; not if its code was replaced by others since."""
    known = _watched.get(function)
    if known is None or known.code is not function.__code__:
        return False
    # In a replay it is looked for again: there may be another one by now, which must not run.
    return "<locals>" not in function.__qualname__ or replay_hook.adapter("tools") is None


class Hook:
    """A constant in the code of a function. Pickled with it, it does nothing."""

    __slots__ = ("_does",)

    def __init__(self, does: Callable[..., Any]) -> None:
        self._does = does

    def __call__(self, *args: Any) -> Any:
        return self._does(*args)

    def __reduce__(self) -> Any:
        return eval, ("lambda *_: None",)


class _Generators(dict[int, "Running"]):
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return tuple, ()


_generators = _Generators()
"""Recorded generators under way, by the id of their frame."""


class WatchedFunction:
    """One function; it lives as long as the function does, and does not hold it."""

    def __init__(self, function: FunctionType, tool: str, source: str) -> None:
        self.sources = {tool: source}
        """The tools whose function it is, and who knows that."""
        self.original: CodeType = function.__code__
        self._function = ref(function)
        self._bind = _binder(function, tool)
        self._is_generator = bool(self.original.co_flags & _GENERATORS)
        if replay_hook.adapter("tools") is None:
            self.code = bytecode.with_hooks(self.original, self._hooks())
            if source == FOUND:  # a framework names each function when it is called
                _watch_those_to_come(function, self.original, self.code)
        else:
            self.code = bytecode.with_front(self.original, Hook(self._stand_in), Hook(_run))
        function.__code__ = self.code

    def _hooks(self) -> bytecode.Hooks:
        return bytecode.Hooks(open_uses, Hook(self._begin), _ended, _raised, _generators, _item)

    def _claim(self, values: tuple[Any, ...], *, answering: bool = False) -> Claim | None:
        with guard.Swallowing("look at a tool call"):
            bound = self._bind(values)[2]
            return claimed(frozenset(self.sources), bound, self._function(), answering=answering)
        return None

    def _begin(self, *values: Any) -> Running | None:
        for use in open_uses:
            if use.name in self.sources:
                break
        else:
            return None
        claim = self._claim(values)
        if claim is None:
            return None
        with guard.Swallowing("record a tool call"):
            running = Running(claim, self.sources[claim.use.name], self._function())
            if self._is_generator:
                running.iterate(sys._getframe(2))
            return running
        claim.release()
        return None

    def _stand_in(self, *values: Any) -> Callable[[], Any] | None:
        """Return what does the work of a call for a tool use: the recording answers, or the function runs."""
        function = self._function()
        if function is None or not any(use.name in self.sources for use in open_uses):
            return None
        claim = functools.partial(self._claim, values, answering=True)
        is_later = self.original.co_flags & _STARTED_LATER
        now = None if is_later else claim()
        if now is None and not is_later:
            return None
        args, kwargs, _ = self._bind(values)
        answered = _Answered(claim if now is None else lambda: now, self.sources)
        return functools.partial(watched(self._as_it_was(function), answered), *args, **kwargs)

    def _as_it_was(self, function: FunctionType) -> FunctionType:
        copy = FunctionType(
            self.original,
            function.__globals__,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__qualname__ = function.__qualname__
        functools.update_wrapper(copy, function)
        return copy


class Running:
    """A recorded call under way: the token in its frame."""

    __slots__ = ("_claim", "_frame", "_is_over", "_item_type", "_recorder", "_returns", "call", "items")

    def __init__(self, claim: Claim, source: str, function: FunctionType | None) -> None:
        self._claim = claim
        self._returns = getattr(function, "__annotations__", {}).get("return")
        self._is_over = False
        self._frame = 0
        self._item_type: str | None = None
        self.items: Items | None = None
        use = claim.use
        assert use.recorder is not None
        self._recorder = use.recorder
        self.call = begin_tool(
            use.recorder,
            use.calls,
            use.name,
            claim.args,
            use.answer,
            use.id,
            source=source,
            matched=None if claim.is_exact else "name",
            attempt=claim.attempt,
            injected=claim.injected or None,
        )

    def iterate(self, frame: Any) -> None:
        self._frame = id(frame)
        self.items = Items()
        _generators[self._frame] = self

    def add(self, item: Any) -> None:
        """Note what a generator yields."""
        if self.items is not None:
            self.items.add(item)
            self._item_type = self._item_type or _unknown_type(item, self._returns)

    def end(self, result: Any, exc: BaseException | None) -> None:
        if self._is_over:
            return
        self._is_over = True
        _generators.pop(self._frame, None)
        kind = _unknown_type(result, self._returns)
        if self.items is not None:
            kind = f"generator of {self._item_type}" if self._item_type else kind
            result = self.items.value(result)
            exc = None if isinstance(exc, GeneratorExit) else exc
        try:
            end_tool(self._recorder, self._claim.use.name, result, exc, self.call, result_type=kind)
        finally:
            self._claim.release()


_JSON = {dict, list, str, int, float, bool, bytes, type(None)}


def _unknown_type(result: Any, annotation: Any) -> str | None:
    """Return the type of a result, if neither its JSON nor the annotation of the function says what it is."""
    kind = type(result)
    if kind in _JSON or kind.__name__.lower() in str(annotation).lower():
        return None
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _end(token: Running, result: Any) -> None:
    with guard.Swallowing("record a tool result"):
        token.end(result, None)


def _raise(token: Running, exc: BaseException) -> None:
    with guard.Swallowing("record a tool result"):
        token.end(None, exc)


def _yielded(value: Any) -> None:
    running = _generators.get(id(sys._getframe(2)))
    if running is not None:
        with guard.Swallowing("record what a tool yields"):
            running.add(value)


def _run(stand_in: Callable[[], Any]) -> Any:
    return stand_in()


_ended, _raised, _item = Hook(_end), Hook(_raise), Hook(_yielded)


class _Answered(Watch):
    """A call where a recording answers: if it is for a tool use, else the function runs."""

    def __init__(self, claim: Callable[[], Claim | None], sources: dict[str, str]) -> None:
        self._claimed = claim
        self._claim: Claim | None = None
        self._sources = sources

    def begin(self, args: dict[str, Any]) -> Running | None:
        self._claim = self._claimed()
        with guard.Swallowing("record a tool call"):
            if self._claim is not None:
                return Running(self._claim, self._sources[self._claim.use.name], None)
        return None

    def body(self, function: Callable[..., Any], args: dict[str, Any]) -> Callable[..., Any]:
        if self._claim is None:
            return function
        recorder = self._claim.use.recorder
        assert recorder is not None
        return stand_in_for(function, self._claim.use.name, self._claim.args, lambda: recorder)

    def end(self, token: Running | None, result: Any, exc: BaseException | None) -> None:
        if token is not None:
            with guard.Swallowing("record a tool result"):
                token.end(result, exc)


def _wrapped(function: FunctionType, tool: str) -> FunctionType:
    """Return the function with the tool's name that a wrapper holds, if it takes anything; else itself."""
    code = function.__code__
    if code.co_flags & inspect.CO_VARARGS and not code.co_argcount + code.co_kwonlyargcount:
        for cell in function.__closure__ or ():
            held = cell.cell_contents
            if isinstance(held, FunctionType) and held.__name__ == tool:
                return held
    return function


def _binder(
    function: FunctionType, tool: str
) -> Callable[[tuple[Any, ...]], tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]]:
    """Return what turns the values of all parameters into ``args``, ``kwargs`` and the arguments by name.

    A wrapper has the names of what it wraps, also without ``functools.wraps``.
    """
    code = function.__code__
    plain, kwonly = code.co_argcount, code.co_kwonlyargcount
    has_args, has_kwargs = code.co_flags & inspect.CO_VARARGS, code.co_flags & inspect.CO_VARKEYWORDS
    names = code.co_varnames[plain : plain + kwonly]
    first = code.co_varnames[:1]
    try:
        signature = inspect.signature(_wrapped(function, tool))
    except Exception as exc:  # annotations that name what only a type checker imports, for instance
        guard.pass_on(exc)
        signature = None

    def bind(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
        args = values[:plain]
        kwargs = dict(zip(names, values[plain : plain + kwonly], strict=True))
        if has_args:
            args += values[plain + kwonly]
        if has_kwargs:
            kwargs |= values[-1]
        return args, kwargs, _by_name(args, kwargs)

    def _by_name(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            if signature is None:
                raise TypeError
            found = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError:  # a wrapper that hands on other arguments than it takes
            found = {**{code.co_varnames[at]: value for at, value in enumerate(args[:plain])}, **kwargs}
        for parameter in signature.parameters.values() if signature is not None else ():
            if parameter.kind is parameter.VAR_KEYWORD and parameter.name in found:
                found |= found.pop(parameter.name)
        if first and first[0] in ("self", "cls"):
            found.pop(first[0], None)
        return found

    return bind
