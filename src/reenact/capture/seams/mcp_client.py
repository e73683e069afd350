"""MCP client sessions: a ``tools/call`` is a tool call, whatever transport carries it."""

from __future__ import annotations

from .. import guard
from ..tap import Tap, calls_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..exchange import Watch

CALL = "tools/call"


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client session; returns what undoes it."""
    owner = module.ClientSession
    inherited = "send_request" not in vars(owner)
    original = owner.send_request

    async def send_request(self: Any, request: Any, *args: Any, **given: Any) -> Any:
        call = _begin(watch, request)
        if call is None:
            return await original(self, request, *args, **given)
        try:
            result = await original(self, request, *args, **given)
        except BaseException as exc:
            call.failed(exc)
            raise
        call.ended(result)
        return result

    owner.send_request = send_request

    def undo() -> None:
        if inherited:
            del owner.send_request
        else:
            owner.send_request = original

    return undo


def _begin(watch: Watch, request: Any) -> _Call | None:
    try:
        request = getattr(request, "root", request)  # mcp 1 has every request in a wrapper
        if getattr(request, "method", None) != CALL:
            return None
        recorder = watch.recorder()
        name = request.params.name
        calls = calls_of(recorder)
        outer = calls.open.get(calls.open_tool() or "")
        if outer is not None and outer.name == name:
            return None  # a tool of that name is being recorded already, and this is how it does its work
        return _Call(Tap(recorder), name, request.params.arguments)
    except Exception as exc:
        guard.swallow("look at a tool call", exc)
        return None


class _Call:
    """A tool call under way."""

    def __init__(self, tap: Tap, name: str, args: Any) -> None:
        self._tap = tap
        self._name = name
        self._call = tap.record_tool_call(name, args or {})

    def failed(self, exc: BaseException) -> None:
        self._tap.record_tool_result(self._name, error=exc, call=self._call)

    def ended(self, result: Any) -> None:
        """Record a result; one that says of itself that it is an error is one."""
        try:
            plain = result.model_dump(by_alias=True, mode="json", exclude_none=True)
            error = None
            if plain.get("isError"):
                texts = [each["text"] for each in plain.get("content", ()) if "text" in each]
                error = {"type": "tool_error", "message": "\n".join(texts), "frames": []}
            self._tap.record_tool_result(self._name, plain, error, call=self._call)
        except Exception as exc:
            guard.swallow("record a tool result", exc)
