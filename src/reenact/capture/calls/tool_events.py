"""A tool call as two events: what every way of recording it writes alike.

Used by Tap, and by the functions that are found and watched.
"""

from __future__ import annotations

from typing import Any

from ... import schema
from ..recorder.jsonable import snapshot
from ..recorder.recorder import Recorder
from ..workspace import tree_now
from .error_fields import failure
from .open_calls import Calls, calls_of

SUSPENDING = frozenset(
    {
        "GraphBubbleUp",  # langgraph: interrupt()
        "CallDeferred",  # pydantic-ai
        "ApprovalRequired",
        "InterruptException",  # strands
        "UserInputRequiredException",  # agent-framework
        "MiddlewareTermination",
        "RunCancelledException",  # agno
        "HumanInputError",  # ag2
        "WaitingForEvent",  # llama-index
    }
)
"""Exceptions that pause an agent and are no failure of the tool; by name, so that nothing is imported."""


def begin_tool(
    recorder: Recorder,
    calls: Calls,
    name: str,
    args: Any,
    parent: str | None,
    tool_id: str | None,
    **more: Any,
) -> str:
    """Record that a tool is about to run; returns the id of the call. ``more`` are fields, None for none."""
    outer = calls.open_tool()
    call, opened = calls.begin(schema.TOOL_CALLED, name)
    opened.tool_id = tool_id
    fields = {"call": call, "parent": parent, "tool": name, "tool_id": tool_id, "args": args}
    more |= {"within": outer, **opened.caller}
    fields.update((key, value) for key, value in more.items() if value is not None)
    recorder.emit(schema.TOOL_CALLED, fields)
    return call


def end_tool(
    recorder: Recorder,
    name: str,
    result: Any,
    error: Any,
    call: str | None,
    *,
    result_type: str | None = None,
) -> None:
    """Record how a tool ended; without ``call`` it ends the open one of that name."""
    call, opened = calls_of(recorder).end(call, schema.TOOL_CALLED, name)
    suspended = _suspended(error)
    fields = {
        "call": call,
        "tool": name,
        "tool_id": opened.tool_id if opened is not None else None,
        "duration_ms": opened.duration_ms() if opened is not None else None,
        "error": failure(error) if suspended is None else None,
    }
    if suspended is not None:
        fields["suspended"] = suspended
    if result_type is not None:
        fields["result_type"] = result_type
    if opened is not None and opened.replayed is not None:
        fields["replayed"] = opened.replayed
    try:
        if (tree := tree_now(recorder)) is not None:
            fields["workspace"] = tree
    finally:  # a Ctrl-C while we wait is the agent's; the tool has ended all the same
        recorder.emit(schema.TOOL_RESULT, {**fields, "result": result})


def _suspended(error: Any) -> dict[str, Any] | None:
    """Return what an exception holds that only pauses the agent."""
    if not isinstance(error, BaseException):
        return None
    kinds = [kind.__name__ for kind in type(error).__mro__]
    if SUSPENDING.isdisjoint(kinds):
        return None
    kinds = kinds[: kinds.index("Exception") + 1] if "Exception" in kinds else kinds[:-2]
    return {**(failure(error) or {}), "kinds": kinds, "values": snapshot(list(error.args))}
