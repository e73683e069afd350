"""Wrap a function without changing what it is: sync, async, generator and async generator alike.

Used by ``@reenact.run`` and ``@tap.tool``. The wrapped function yields, returns and raises exactly as before.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ...errors import UsageError
from .. import replay_hook
from ..calls.open_calls import calls_of
from ..recorder.jsonable import snapshot

if TYPE_CHECKING:
    from ..recorder.recorder import Recorder
    from .tap import Tap


F = TypeVar("F", bound=Callable[..., Any])

MAX_ITEMS = 1_000
"""Items of a generator that are kept as its result; all are counted."""


class Watch(Protocol):
    """What a wrapper reports: ``begin`` before the body runs, ``end`` however it ends. Neither raises."""

    def begin(self, args: dict[str, Any]) -> Any: ...

    def end(self, token: Any, result: Any, exc: BaseException | None) -> None: ...

    def body(self, function: Callable[..., Any], args: dict[str, Any]) -> Callable[..., Any]:
        """Return what does the work of one call: the function, unless a recording stands in for it."""
        return function

    def pause(self, token: Any) -> None:
        """A generator hands control back to its caller."""
        return

    def resume(self, token: Any) -> None:
        """The caller wants the next item."""
        return


def watched(function: F, watch: Watch) -> F:
    """Return the function with every call reported to ``watch``."""
    bound = argument_binder(function)
    if inspect.iscoroutinefunction(function):
        return cast(F, _coroutine(function, watch, bound))
    if inspect.isasyncgenfunction(function):
        return cast(F, _async_generator(function, watch, bound))
    if inspect.isgeneratorfunction(function):
        return cast(F, _generator(function, watch, bound))

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        arguments = bound(args, kwargs)
        token = watch.begin(arguments)
        try:
            result = watch.body(function, arguments)(*args, **kwargs)
        except BaseException as exc:
            watch.end(token, None, exc)
            raise
        watch.end(token, result, None)
        return result

    return cast(F, plain)


def _coroutine(function: Any, watch: Watch, bound: Any) -> Any:
    @functools.wraps(function)
    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        arguments = bound(args, kwargs)
        token = watch.begin(arguments)
        try:
            result = await watch.body(function, arguments)(*args, **kwargs)
        except BaseException as exc:  # cancellation too
            watch.end(token, None, exc)
            raise
        watch.end(token, result, None)
        return result

    return coroutine


def _generator(function: Any, watch: Watch, bound: Any) -> Any:
    @functools.wraps(function)
    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        arguments = bound(args, kwargs)
        token = watch.begin(arguments)
        items = Items(watch, token)
        try:
            result = yield from items.watch_generator(watch.body(function, arguments)(*args, **kwargs))
        except BaseException as exc:
            watch.end(token, items.value(), None if isinstance(exc, GeneratorExit) else exc)
            raise
        watch.end(token, items.value(result), None)
        return result

    return generator


def _async_generator(function: Any, watch: Watch, bound: Any) -> Any:
    @functools.wraps(function)
    async def generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        arguments = bound(args, kwargs)
        token = watch.begin(arguments)
        items = Items(watch, token)
        source = watch.body(function, arguments)(*args, **kwargs)
        try:
            item = await anext(source)
            while True:
                items.add(item)
                try:
                    sent = yield item
                    watch.resume(token)
                except GeneratorExit:
                    watch.resume(token)
                    await source.aclose()
                    raise
                except BaseException as exc:
                    watch.resume(token)
                    item = await source.athrow(exc)
                else:
                    item = await (anext(source) if sent is None else source.asend(sent))
        except StopAsyncIteration:
            watch.end(token, items.value(), None)
        except BaseException as exc:
            watch.end(token, items.value(), None if isinstance(exc, GeneratorExit) else exc)
            raise

    return generator


class Items:
    """What a generator yielded, copied as it went by."""

    def __init__(self, watch: Watch | None = None, token: Any = None) -> None:
        self.watch = watch
        self.token = token
        self.kept: list[Any] = []
        self.count = 0

    def add(self, item: Any) -> None:
        self.count += 1
        if len(self.kept) < MAX_ITEMS:
            self.kept.append(snapshot(item))
        if self.watch is not None:
            self.watch.pause(self.token)

    def watch_generator(self, source: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        assert self.watch is not None
        try:
            item = next(source)
            while True:
                self.add(item)
                try:
                    sent = yield item
                    self.watch.resume(self.token)
                except GeneratorExit:
                    self.watch.resume(self.token)
                    source.close()
                    raise
                except BaseException as exc:
                    self.watch.resume(self.token)
                    item = source.throw(exc)
                else:
                    item = next(source) if sent is None else source.send(sent)
        except StopIteration as stop:
            return stop.value

    def value(self, returned: Any = None) -> Any:
        fields: dict[str, Any] = {"yielded": self.kept, "count": self.count}
        if returned is not None:
            fields["returned"] = returned
        return fields


def argument_binder(
    function: Callable[..., Any],
) -> Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]:
    """Return what turns a call's arguments into ``{name: value}``, ``self`` left out; it never raises."""
    try:
        signature: inspect.Signature | None = inspect.signature(function)
    except Exception:  # annotations that name what only a type checker imports, for instance
        signature = None

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        try:
            if signature is not None:
                bound = dict(signature.bind(*args, **kwargs).arguments)
                first = next(iter(bound), None)
                if first in ("self", "cls"):
                    del bound[first]
                return bound
        except TypeError:
            pass  # a wrong call: the function itself will say so
        return {"args": list(args), **({"kwargs": kwargs} if kwargs else {})}

    return bind


def stand_in_for(
    function: Callable[..., Any],
    name: str,
    args: dict[str, Any],
    recorder_of: Callable[[], Recorder],
    effect: str | None = None,
) -> Callable[..., Any]:
    """Return what does the work of a tool in its open call: the function, or what a recording answers."""
    adapter = replay_hook.adapter("tools")
    if adapter is None:
        return function
    recorder = recorder_of()
    calls = calls_of(recorder)
    opened = calls.open.get(calls.open_tool() or "")
    call = replay_hook.ToolCall(name, args, recorder, function, effect=effect, opened=opened)
    stand_in: Callable[..., Any] = adapter.standing_in(function, call)
    return stand_in


# ``@tap.tool``: a tool that reports itself, before and after its work.


def watch_tool(tap: Tap, function: F, name: str | None, effect: str | None) -> F:
    """Return the tool with every call recorded; its kind of function stays what it was."""
    if not callable(function):
        raise UsageError(f"@tap.tool takes a function, not {type(function).__name__}")
    return watched(function, _ToolWatch(tap, name or str(getattr(function, "__name__", "tool")), effect))


class _ToolWatch(Watch):
    def __init__(self, tap: Tap, name: str, effect: str | None) -> None:
        self.tap = tap
        self.name = name
        self.effect = effect

    def begin(self, args: dict[str, Any]) -> Any:
        return self.tap.record_tool_call(self.name, args, effect=self.effect)

    def body(self, function: Callable[..., Any], args: dict[str, Any]) -> Callable[..., Any]:
        return stand_in_for(function, self.name, args, self.tap.recorder, self.effect)

    def end(self, token: Any, result: Any, exc: BaseException | None) -> None:
        self.tap.record_tool_result(self.name, result, exc, call=token)
