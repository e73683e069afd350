"""Recorded tool results as values and exceptions for the agent.

Nothing is imported or evaluated because a recording names it: an exception's class is looked up among the
loaded ones. A value recorded only in part becomes a ``StandIn``.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, ModuleType
from typing import Any

from ...capture.replay_hook import ToolCall
from ...tracefile.events.event import ErrorText
from ...tracefile.events.stored_values import restore
from ...wire.json_values import mapping, string
from ..matching.recorded_answers import CANCELLED, EXCEPTION, REBUILT, SUSPENDED, Answer
from ..matching.request import Request
from ..serve.replies import ToolReply
from .typed_values import as_annotated, hints_of, with_stand_ins, yielded

_LONGEST = 80


def tool_request(tool_call: ToolCall) -> Request:
    """Return the request of a tool call, redacted like the recording."""
    args = tool_call.recorder.texts.clean("args", tool_call.args, "full")
    opened = tool_call.opened
    who, tool_id = (None, None) if opened is None else (opened.who, opened.tool_id)
    return Request.tool(tool_call.name, restore(args, lambda reference: None), who, tool_id)


def reply_of_tool(
    answer: Answer, function: Callable[..., Any] | None, before: Sequence[Answer] = ()
) -> tuple[ToolReply, tuple[str, ...]]:
    """Return a recorded result as a reply, and the reasons why it is not exact.

    ``before`` are the answers of earlier calls for the same tool use, which suspended the agent.
    """
    reply, why = _reply(answer, function)
    own = [answer] if answer.outcome == SUSPENDED else []
    reply.interrupts = [value for each in (*before, *own) for value in _interrupts(each)]
    return reply, why


def _reply(answer: Answer, function: Callable[..., Any] | None) -> tuple[ToolReply, tuple[str, ...]]:
    why = _reasons(answer)
    if answer.outcome == SUSPENDED:
        return ToolReply(error=_suspension(answer.body, function)), why
    if answer.outcome == CANCELLED:
        return ToolReply(is_cancelled=True, error=exception_of(answer.error, function)), why
    is_raised = answer.outcome == EXCEPTION or (answer.error is not None and _is_of_generator(answer.body))
    error = exception_of(answer.error, function) if is_raised else None
    value = with_stand_ins(answer.body) if answer.lossy else answer.body
    rebuild = REBUILT.get(answer.type or "")
    if rebuild is not None and type(value) is list:
        value = _rebuilt(value, rebuild)
    elif function is not None:
        value, unfit = _as_returned(value, function)
        if unfit is not None and not is_raised:
            why = (*why, f"the recorded value does not fit {_shown(unfit)}, the function's return annotation")
    return ToolReply(value, error), why


def _rebuilt(value: list[Any], rebuild: Callable[[list[Any]], Any]) -> Any:
    try:
        return rebuild(value)
    except TypeError:  # an item that was a tuple in a set
        return value


def _interrupts(answer: Answer) -> list[Any]:
    """Return what a tool gave to LangGraph's ``interrupt``: the exception holds a list of interrupts."""
    suspended = mapping(answer.body)
    if "GraphInterrupt" not in _texts(suspended.get("kinds")):
        return []
    values = suspended.get("values")
    first = values[0] if type(values) is list and values else []
    return [mapping(each).get("value") for each in first] if type(first) is list else []


def _suspension(suspended: Any, function: Callable[..., Any] | None) -> BaseException:
    """Return an exception that suspends the agent as the recorded one did."""
    fields = mapping(suspended)
    values = fields.get("values")
    for name in _texts(fields.get("kinds"))[:1]:
        kind = _class_named(name, function)
        try:
            if kind is not None:
                return kind(*values) if type(values) is list else kind()
        except Exception:  # it takes other arguments than it keeps
            break
    return exception_of(ErrorText(str(fields.get("message") or ""), string(fields.get("type"))), function)


def _texts(value: Any) -> list[str]:
    return [each for each in value if type(each) is str] if type(value) is list else []


def _as_returned(value: Any, function: Callable[..., Any]) -> tuple[Any, Any]:
    """Return a result converted to the tool's return annotation, and the annotation if it does not fit.

    Without an annotation that fits, the result stays plain JSON.
    """
    hint = hints_of(function).get("return", Any)
    is_generator = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if not is_generator or not _is_of_generator(value) or type(value["yielded"]) is not list:
        converted, fits = as_annotated(value, hint)
        if type(converted) is list and len(converted) == 2 and _is_content_and_artifact(sys._getframe()):
            converted = tuple(converted)
        return converted, None if fits else hint
    item, returned = yielded(hint)
    items = [as_annotated(each, item) for each in value["yielded"]]
    result, is_fit = as_annotated(value.get("returned"), returned)
    unfit = item if not all(fits for _, fits in items) else None if is_fit else returned
    return {**value, "yielded": [each for each, _ in items], "returned": result}, unfit


def _is_content_and_artifact(frame: FrameType | None) -> bool:
    """True if the caller is a LangChain tool that takes a pair of its function: it accepts a tuple only."""
    while frame is not None:
        tool = frame.f_locals.get("self")
        if str(frame.f_globals.get("__name__")).startswith("langchain_core.tools."):
            return getattr(tool, "response_format", None) == "content_and_artifact"
        frame = frame.f_back
    return False


def _shown(hint: Any) -> str:
    name = hint.__name__ if isinstance(hint, type) else str(hint)
    return name if len(name) <= _LONGEST else name[:_LONGEST] + "…"


def _is_of_generator(body: Any) -> bool:
    return type(body) is dict and "yielded" in body and "count" in body


def _reasons(answer: Answer) -> tuple[str, ...]:
    """Return the reasons why a result is incomplete; of a generator only some items are recorded."""
    body = answer.body
    if _is_of_generator(body) and type(body["count"]) is int and body["count"] > len(body["yielded"]):
        return (*answer.lossy, "cut")
    return answer.lossy


def exception_of(error: ErrorText | None, function: Callable[..., Any] | None) -> BaseException:
    """Return an exception of the recorded type and text."""
    name = (error.type if error is not None else None) or "Exception"
    message = str(error or "")
    kind = _class_named(name, function)
    if kind is None:
        return _unknown(name, message)
    for text in _spellings(message):
        exc = _built(kind, text)
        if exc is not None and _text_of(exc) == message:
            return exc
    alike = type(kind.__name__, (kind,), {"__str__": lambda self: message, "__module__": kind.__module__})
    return _bare(alike, message) or _unknown(name, message)


def _unknown(name: str, message: str) -> Exception:
    """Return a stand-in for an exception with a class that is not loaded or cannot be created."""
    exc: Exception = type(name, (Exception,), {})(message)
    return exc


def _spellings(message: str) -> Iterator[Any]:
    yield message
    try:
        yield ast.literal_eval(message)  # a KeyError shows the repr of its key; only literals are read
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return


def _built(kind: type[BaseException], text: Any) -> BaseException | None:
    try:
        return kind(text)
    except Exception:  # it needs other arguments
        return _bare(kind, text)


def _bare(kind: type[BaseException], text: Any) -> BaseException | None:
    try:
        exc = kind.__new__(kind, text)
        exc.args = (text,)
        return exc
    except Exception:
        return None


def _text_of(exc: BaseException) -> str | None:
    try:
        return str(exc)
    except Exception:
        return None


def _class_named(name: str, function: Callable[..., Any] | None) -> type[BaseException] | None:
    """Return the class of a name: from the tool's module, from Python, or the only loaded one."""
    known: dict[str, Any] = getattr(function, "__globals__", {})
    modules = [value for value in known.values() if isinstance(value, ModuleType)]
    near = [known.get(name), *[vars(module).get(name) for module in modules], getattr(builtins, name, None)]
    for found in near:
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
    loaded = {each for each in _loaded(BaseException, set()) if each.__name__ == name}
    return loaded.pop() if len(loaded) == 1 else None


def _loaded(kind: type[BaseException], seen: set[type[BaseException]]) -> set[type[BaseException]]:
    for each in type.__subclasses__(kind):
        if each not in seen:
            seen.add(each)
            _loaded(each, seen)
    return seen
