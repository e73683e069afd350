"""What runs in place of a tool while a run is re-enacted: it returns or raises the recorded result.

Of the same kind as the tool: a function, a coroutine, a generator. A live tool runs.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any

from .replies import responder

if TYPE_CHECKING:
    from ...capture.replay_hook import ToolCall
    from .replies import ToolReply


def standing_in(function: Callable[..., Any], call: ToolCall) -> Callable[..., Any]:
    """Return the function that replaces a tool for one call."""

    def plain(*args: Any, **kwargs: Any) -> Any:
        reply = responder().tool(call)
        if reply is not None:
            return result(reply)
        with responder().running(call):
            return function(*args, **kwargs)

    async def coroutine(*args: Any, **kwargs: Any) -> Any:
        reply = await responder().tool_async(call)
        if reply is not None:
            return await result_async(reply)
        with responder().running(call):
            return await function(*args, **kwargs)

    def generator(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        reply = responder().tool(call)
        if reply is None:
            with responder().running(call):
                return (yield from function(*args, **kwargs))
        yield from _items(reply)
        return _returned(reply)

    async def async_generator(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        reply = await responder().tool_async(call)
        if reply is None:
            with responder().running(call):
                async for item in function(*args, **kwargs):
                    yield item
            return
        for item in _items(reply):
            yield item
        _returned(reply)

    if inspect.iscoroutinefunction(function):
        return coroutine
    if inspect.isasyncgenfunction(function):
        return async_generator
    return generator if inspect.isgeneratorfunction(function) else plain


def result(reply: ToolReply) -> Any:
    """Return the recorded value, or raise the recorded exception."""
    _interrupt(reply)
    if reply.error is not None:
        raise reply.error
    return reply.value


async def result_async(reply: ToolReply) -> Any:
    """Return the recorded result; wait for ever where the agent gave up, as it will again."""
    if reply.is_cancelled:
        await asyncio.Event().wait()
    return result(reply)


def _interrupt(reply: ToolReply) -> None:
    """Interrupt LangGraph as the tool did: that suspends the graph, or returns if the graph was resumed."""
    langgraph = sys.modules.get("langgraph.types")
    for value in reply.interrupts if langgraph is not None else ():
        vars(langgraph)["interrupt"](value)


def _items(reply: ToolReply) -> list[Any]:
    _interrupt(reply)
    recorded = reply.value if type(reply.value) is dict else {}
    return list(recorded.get("yielded") or ())


def _returned(reply: ToolReply) -> Any:
    if reply.error is not None:
        raise reply.error
    return reply.value.get("returned") if type(reply.value) is dict else None
