"""What a framework knows of a tool call and its function does not: the provider's id, and its function.

One table. A row names the method by which a framework invokes a tool, and where it has the id of the tool use
and the function that does the work. The method runs in its own frame, as watched functions do: its code calls
a hook at its beginning and its end (``bytecode.with_hooks``). The hook notes the tool use for this context
and watches the function, also one of a library; it is recorded and answered like any other one.

A framework that has changed is reported, and its tools are found by name and arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

from .. import guard
from ..calls.error_fields import is_agents, is_ours
from ..calls.open_calls import Invocation, OpenUse, invoke, open_uses
from ..import_lock import import_lock
from ..seams.patching import LibraryChanged, need, undo_all
from . import bytecode, watching
from .claims import nearest
from .finder import functions_of


class Row(NamedTuple):
    """How a framework invokes a tool. A place is a path from a parameter on: attributes, keys, closures."""

    framework: str
    methods: tuple[str, ...]
    """With their class."""
    id: str
    """The place of the provider's id."""
    bodies: tuple[tuple[str, ...], ...]
    """The places of what does the work; those of the first group that has any."""


ROWS = {
    "langchain_core.tools.base": Row(
        "langchain",
        ("BaseTool.run", "BaseTool.arun"),
        "tool_call_id",
        (("self.func", "self.coroutine"), ("self._run", "self._arun")),
    ),
    "anthropic.lib.tools._beta_runner": Row(
        "anthropic",
        ("BaseSyncToolRunner._run_tool", "BaseAsyncToolRunner._run_tool"),
        "tool_use.id",
        (("tool.func",), ("tool.call",)),
    ),
    "agents.tool": Row(
        "openai-agents",
        ("_FailureHandlingFunctionToolInvoker.__call__",),
        "ctx.tool_call_id",
        (("self._invoke_tool_impl.the_func",), ("self._invoke_tool_impl",)),
    ),
    "pydantic_ai.toolsets.function": Row(
        "pydantic-ai",
        ("FunctionToolset.call_tool",),
        "ctx.tool_call_id",
        (("tool.call_func.__self__.function",),),
    ),
    "agno.tools.function": Row(
        "agno",
        ("FunctionCall.execute", "FunctionCall.aexecute"),
        "self.call_id",
        (("self.function.entrypoint",),),
    ),
    "strands.tools.decorator": Row(
        "strands", ("DecoratedFunctionTool.stream",), "tool_use.toolUseId", (("self._tool_func",),)
    ),
    "strands.tools.tools": Row(
        "strands", ("PythonAgentTool.stream",), "tool_use.toolUseId", (("self._tool_func",),)
    ),
    "autogen_core.tools._base": Row(
        "autogen",
        ("BaseTool.run_json", "BaseStreamTool.run_json_stream"),
        "call_id",
        (("self._func",), ("self.run", "self.run_stream")),
    ),
}
"""By the module that is waited for."""

in_force: set[str] = set()
"""The frameworks that are listened to in this process."""


def patch(module: ModuleType, watch: Any) -> Callable[[], None]:
    """Listen to the tools of a framework; returns what undoes it, raises if the framework has changed."""
    row = ROWS[module.__name__]
    if is_agents(getattr(module, "__file__", None) or ""):  # a module of the user's that is called the same
        return lambda: None
    methods = [_method(module, row, name) for name in row.methods]
    undo = undo_all(*[_hooked(row, owner, function) for owner, function in methods])
    in_force.add(row.framework)

    def leave() -> None:
        in_force.discard(row.framework)
        undo()

    return leave


def _method(module: ModuleType, row: Row, name: str) -> tuple[type, FunctionType]:
    """Return a method of the table and its class; raises unless it has the parameters that the row needs."""
    kind, _, method = name.partition(".")
    need(module, kind)
    owner = getattr(module, kind)
    function = vars(owner).get(method)
    while hasattr(function, "__wrapped__"):  # another tool is around it
        function = function.__wrapped__
    if not isinstance(function, FunctionType):
        raise LibraryChanged(f"{kind} has no method {method}")
    names = function.__code__.co_varnames[: bytecode.parameter_count(function.__code__)]
    for place in (row.id, *(place for group in row.bodies for place in group)):
        if place.partition(".")[0] not in names:
            raise LibraryChanged(f"{name} takes other arguments")
    why = bytecode.can_change(function.__code__)
    if why:
        raise LibraryChanged(why)
    return owner, function


def _hooked(row: Row, owner: type, function: FunctionType) -> Callable[[], None]:
    """Have a method of a framework call us at its beginning and its end; returns what undoes it."""
    original = function.__code__
    names = original.co_varnames[: bytecode.parameter_count(original)]
    own = [each for each in vars(owner).values() if isinstance(each, FunctionType)]

    def begin(*values: Any) -> Invocation | None:
        with guard.Swallowing("look at a tool call of a framework"):
            return _invoked(row, dict(zip(names, values, strict=True)), own)
        return None

    hooks = bytecode.Hooks(open_uses, watching.Hook(begin), _over, _over, (), _over)
    function.__code__ = code = bytecode.with_hooks(original, hooks)

    def undo() -> None:
        if function.__code__ is code:
            function.__code__ = original

    return undo


def _end(invocation: Invocation, _: Any) -> None:
    invocation.end()


_over = watching.Hook(_end)


def _invoked(row: Row, values: dict[str, Any], own: list[FunctionType]) -> Invocation | None:
    use = _use_with(_at(values, row.id))
    if use is None:
        return None
    bodies = tuple(function for function in _bodies(row, values) if function not in own)
    with import_lock:  # two threads may invoke one tool
        for function in bodies:
            watching.watch(function, use.name, row.framework)
    return invoke(use, bodies)


def _use_with(id: Any) -> OpenUse | None:
    """Return the open tool use with an id; ids may be the same in two runs, then the context decides."""
    if type(id) is not str or not id:
        return None
    uses = nearest([use for use in list(open_uses) if use.id == id])
    return uses[0] if len(uses) == 1 else None


def _bodies(row: Row, values: dict[str, Any]) -> list[FunctionType]:
    """Return the functions that do the work of a tool; none of an MCP session, which records itself."""
    for group in row.bodies:
        found = [each for place in group if (each := _at(values, place)) is not None]
        if found:
            functions = [_outermost(each) for each in found]
            return [each for each in functions if each is not None and not _is_of_mcp(each)]
    return []


def _at(values: dict[str, Any], place: str) -> Any:
    """Return what is at a place, None if it is not there."""
    first, *rest = place.split(".")
    value = values[first]
    for name in rest:
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, FunctionType) and name in value.__code__.co_freevars:
            value = (value.__closure__ or ())[value.__code__.co_freevars.index(name)].cell_contents
        elif isinstance(getattr(type(value), name, None), property):
            return None  # whatever that does: it is code of the agent
        else:
            value = getattr(value, name, None)
    return value


def _outermost(value: Any) -> FunctionType | None:
    """Return the user's outermost function of a callable, else the outermost one of a library."""
    found = [each for each in _wrapped(value) if not is_ours(each.__code__.co_filename)]
    users = [each for each in found if is_agents(each.__code__.co_filename)]
    return next(iter(users or found), None)


def _wrapped(value: Any) -> Iterator[FunctionType]:
    """Yield the function that a callable leads to, and those that it wraps."""
    for _ in range(20):
        if value is None:
            return
        method = getattr(type(value), "__call__", None)  # noqa: B004
        functions = list(functions_of(value)) or list(functions_of(method))
        yield from functions
        value = getattr(functions[0] if functions else value, "__wrapped__", None)


def _is_of_mcp(function: FunctionType) -> bool:
    module = str(function.__globals__.get("__name__"))
    return "mcp" in module and not is_agents(function.__code__.co_filename)
