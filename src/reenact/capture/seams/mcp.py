"""MCP client sessions: a ``tools/call`` is a tool call, whatever transport carries it."""

from __future__ import annotations

from time import perf_counter
from weakref import WeakKeyDictionary

from ... import schema
from ...schema import EFFECTS
from .. import answering, guard
from ..front.tap import Tap, calls_of
from ..import_lock import import_lock
from .mcp_transports import line_of
from .patching import Unlike, need, need_asked, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from ..http.watch import Watch
    from ..recorder.recorder import Recorder
    from .mcp_transports import Line


# What an MCP session asks besides tools: the handshake, lists, resources, prompts.
#
# Each is one event with what the server said, so that a replay needs no server. One that says the same
# again,
# as a list of tools that is asked for at every turn, says so in a few words.

GREETINGS = ("initialize", "server/discover")
"""What they say of the client differs from version to version, and makes no difference."""
_SHORT = 200
_MOST = 500
_said: WeakKeyDictionary[Recorder, dict[tuple[str, ...], bytes]] = WeakKeyDictionary()
"""The digest of what was last said, by writer, server, method and parameters."""


class Question:
    """A request that calls no tool, of a session whose server is known."""

    def __init__(self, watch: Watch, line: Line, method: str, params: Any) -> None:
        self._line = line
        self._method = method
        self._params = params
        self._recorder = watch.recorder()
        self._began = perf_counter()

    def instead(self) -> None:
        """Have the stand-in say what was said then, or ask the real server."""
        if self._line.stand_in is not None:
            self._line.stand_in.ask(self._method, self._params, self._recorder)

    def answered(self, result: Any) -> None:
        self._tell("result", plain(result))

    def refused(self, exc: BaseException) -> None:
        error = getattr(exc, "error", None)
        if hasattr(error, "code"):  # else it is not the server who said it
            self._tell("refused", plain(error))

    def _tell(self, name: str, said: Any) -> None:
        fields: dict[str, Any] = {"server": self._line.server, "method": self._method}
        if self._params:
            fields["params"] = self._params
        fields["duration_ms"] = round((perf_counter() - self._began) * 1000, 3)
        is_same, key, digest = self._is_same(name, said)
        fields.update({"same": True} if is_same else {name: said})
        if self._recorder.emit(schema.MCP_ANSWER, fields) and not is_same:
            known = _said.setdefault(self._recorder, {})
            if len(known) >= _MOST:
                known.clear()
            known[key] = digest

    def _is_same(self, name: str, said: Any) -> tuple[bool, tuple[str, ...], bytes]:
        with import_lock:
            from hashlib import blake2b

            from ...lines import dumps

        text = dumps(said)
        key = (self._recorder.w, self._line.server, self._method, dumps(self._params))
        digest = blake2b(f"{name} {text}".encode(), digest_size=16).digest()
        is_same = len(text) > _SHORT and _said.get(self._recorder, {}).get(key) == digest
        return is_same, key, digest


async def asked(
    watch: Watch, session: Any, method: str | None, params: Any, ask: Callable[[], Awaitable[Any]]
) -> Any:
    """Ask something that is no tool call, and record what is said."""
    question = _question(watch, session, method, params)
    if question is None:
        return await ask()
    question.instead()
    try:
        result = await ask()
    except Exception as exc:
        _carefully(question.refused, exc)
        raise
    _carefully(question.answered, result)
    return result


def _question(watch: Watch, session: Any, method: str | None, params: Any) -> Question | None:
    try:
        line = None if watch.is_off or method is None else line_of(session)
        if line is None or method is None:
            return None
        return Question(watch, line, method, None if method in GREETINGS else parameters(params))
    except Exception as exc:
        guard.swallow("look at a request of an MCP session", exc)
        return None


def _carefully(tell: Callable[[Any], None], said: Any) -> None:
    try:
        tell(said)
    except Exception as exc:
        guard.swallow("record what an MCP server said", exc)


def let_through(session: Any, method: str, params: Any) -> None:
    """Have a tool called of the real server, which is started for it."""
    line = line_of(session)
    if line is not None and line.stand_in is not None:
        line.stand_in.let_through(method, parameters(params))


def plain(value: Any) -> Any:
    """Return a model of the library as JSON has it."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return value


def parameters(params: Any) -> Any:
    """Return what a request asks, without what is about the request itself."""
    told = plain(params)
    return (
        {name: value for name, value in told.items() if name != "_meta"} if isinstance(told, dict) else told
    )


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
            result = await asked(watch, self, *_other(args, given), ask)
            _remember(self, result)
            return result
        try:
            result = await call.carry(self, args, given, ask)
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

        return await asked(watch, self, "server/discover", None, ask)

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
    if getattr(request, "method", None) == CALL:
        let_through(session, CALL, getattr(request, "params", None))


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

    async def carry(
        self, session: Any, args: tuple[Any, ...], given: dict[str, Any], ask: Callable[[], Any]
    ) -> Any:
        """Return the server's result; or the recorded one, where a recording stands in for it."""
        adapter = answering.adapter("mcp")
        if adapter is None:
            return await ask()
        recorder = self._tap._recorder()
        opened = calls_of(recorder).open.get(self._call)
        call = answering.ToolCall(self._name, self._args, recorder, effect=self._effect, opened=opened)

        def ask_server() -> Any:
            _let_through(session, args, given)
            return ask()

        return await adapter.call_tool(call, (*args, *given.values()), ask_server)

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
