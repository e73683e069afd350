"""MCP client sessions: a ``tools/call`` is a tool call, whatever transport carries it."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from ... import protocols
from ...schema import EFFECTS
from .. import guard
from ..import_lock import import_lock
from ..tap import Tap, calls_of
from . import mcp_session
from .methods import replace
from .selftest import Unlike, need, need_asked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..watch import Watch

CALL = "tools/call"
_, READ, WRITE, _ = EFFECTS

_effects: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""What the tools of a session do to the world, as far as its server has told."""


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client session; returns what undoes it."""
    owner = module.ClientSession
    try:
        need_asked(owner, "send_request")
        return _patch(owner, "send_request", watch, _of_request)
    except Unlike:
        need(owner, "call_tool")
        return _patch(owner, "call_tool", watch, _of_call)


def _patch(owner: Any, method: str, watch: Watch, tool_of: Callable[..., Any]) -> Callable[[], None]:
    original = getattr(owner, method)

    async def tapped(self: Any, *args: Any, **given: Any) -> Any:
        def ask() -> Any:
            return original(self, *args, **given)

        call = _begin(watch, tool_of, self, args, given)
        if call is None:
            _let_through(self, args, given)
            result = await mcp_session.asked(watch, self, *_other(args, given), ask)
            _remember(self, result)
            return result
        try:
            result = await call.instead(args, given)
            if result is None:
                result = await call.really(self, args, given, ask)
        except BaseException as exc:
            call.failed(exc)
            raise
        call.ended(result)
        return result

    methods = {method: tapped}
    if hasattr(owner, "send_discover"):
        methods["send_discover"] = _discovering(owner.send_discover, watch)
    return replace(owner, methods)


def _discovering(original: Any, watch: Watch) -> Any:
    """mcp 2 asks a server what it is by a request of its own kind."""

    async def send_discover(self: Any, *args: Any, **given: Any) -> Any:
        def ask() -> Any:
            return original(self, *args, **given)

        return await mcp_session.asked(watch, self, "server/discover", None, ask)

    return send_discover


def _of_request(request: Any, *_: Any, **__: Any) -> tuple[str, Any] | None:
    """Return name and arguments of the tool a request is for, None for any other request."""
    request = getattr(request, "root", request)  # mcp 1 has every request in a wrapper
    if getattr(request, "method", None) != CALL:
        return None
    return request.params.name, request.params.arguments


def _of_call(name: str, arguments: Any = None, *_: Any, **__: Any) -> tuple[str, Any]:
    return name, arguments


def _other(args: tuple[Any, ...], given: dict[str, Any]) -> tuple[str | None, Any]:
    """Return method and parameters of a request that is for no tool; no method if it is for one."""
    request = _request(args, given)
    method = getattr(request, "method", None)
    is_other = isinstance(method, str) and method != CALL
    return (method, getattr(request, "params", None)) if is_other else (None, None)


def _let_through(session: Any, args: tuple[Any, ...], given: dict[str, Any]) -> None:
    """Have the real server called for a tool, if a recording stands in its place."""
    request = _request(args, given)
    if protocols.responder is not None and getattr(request, "method", None) == CALL:
        mcp_session.let_through(session, CALL, getattr(request, "params", None))


def _request(args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    request = args[0] if args else given.get("request")
    return getattr(request, "root", request)


def _remember(session: Any, result: Any) -> None:
    """Keep what a list of tools says of their effects."""
    try:
        for tool in getattr(result, "tools", None) or ():
            effect = _effect(getattr(tool, "annotations", None))
            if effect is not None:
                _effects.setdefault(session, {})[tool.name] = effect
    except Exception as exc:
        guard.swallow("look at a list of tools", exc)


def _effect(annotations: Any) -> str | None:
    """Return our word for a server's hints; None where they say nothing of what a tool does."""
    hints = [getattr(annotations, name, None) for name in ("readOnlyHint", "destructiveHint")]
    if annotations is not None and hints == [None, None]:  # mcp 2 spells them as Python does
        hints = [getattr(annotations, name, None) for name in ("read_only_hint", "destructive_hint")]
    if hints[0] is True:
        return READ
    return WRITE if any(hint is not None for hint in hints) else None


def _begin(watch: Watch, tool_of: Callable[..., Any], session: Any, args: Any, given: Any) -> _Call | None:
    try:
        tool = tool_of(*args, **given)
        if tool is None or watch.is_off:
            return None
        name, arguments = tool
        recorder = watch.recorder()
        calls = calls_of(recorder)
        outer = calls.open.get(calls.open_tool() or "")
        if outer is not None and outer.name == name:
            return None  # a tool of that name is being recorded already, and this is how it does its work
        return _Call(Tap(recorder), name, arguments, _effects.get(session, {}).get(name))
    except Exception as exc:
        guard.swallow("look at a tool call", exc)
        return None


class _Call:
    """A tool call under way."""

    def __init__(self, tap: Tap, name: str, args: Any, effect: str | None) -> None:
        self._tap = tap
        self._name = name
        self._args = args or {}
        self._effect = effect
        self._call = tap.record_tool_call(name, args or {}, effect=effect)

    async def instead(self, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Return what a recording has in the place of the server's result, None if the server is asked."""
        if protocols.responder is None:
            return None
        with import_lock:
            from ..standin_tool import given_async

        reply = await protocols.responder.tool_async(self._asked())
        if reply is None:
            return None
        kinds = [each for each in (*args, *given.values()) if isinstance(each, type)]
        kind: Any = next((each for each in kinds if hasattr(each, "model_validate")), None)
        if kind is None:
            with import_lock:
                from importlib import import_module

            kind = import_module("mcp.types").CallToolResult
        return kind.model_validate(await given_async(reply))

    async def really(
        self, session: Any, args: tuple[Any, ...], given: dict[str, Any], ask: Callable[[], Any]
    ) -> Any:
        """Return what the server gives, which may do what a re-enacted agent may not."""
        if protocols.responder is None:
            return await ask()
        _let_through(session, args, given)
        with protocols.responder.running(self._asked()):
            return await ask()

    def _asked(self) -> protocols.AskedTool:
        recorder = self._tap._recorder()
        opened = calls_of(recorder).open.get(self._call)
        return protocols.AskedTool(self._name, self._args, recorder, effect=self._effect, opened=opened)

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
