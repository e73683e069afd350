"""``@tap.tool``: a tool that reports itself, before and after its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from .. import protocols
from ..errors import UsageError
from .decorate import Watch, watched
from .import_lock import import_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    from .tap import Tap

F = TypeVar("F", bound="Callable[..., Any]")


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
        responder = protocols.responder
        if responder is None:
            return function
        with import_lock:
            from .standin_tool import standing_in
            from .tap import calls_of

        recorder = self.tap._recorder()
        calls = calls_of(recorder)
        opened = calls.open.get(calls.open_tool() or "")
        asked = protocols.AskedTool(self.name, args, recorder, function, effect=self.effect, opened=opened)
        return standing_in(function, asked, responder)

    def end(self, token: Any, result: Any, exc: BaseException | None) -> None:
        self.tap.record_tool_result(self.name, result, exc, call=token)
