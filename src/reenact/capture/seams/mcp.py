"""MCP client sessions: a ``tools/call`` is a tool call, whatever transport carries it.

Other requests (handshake, lists, resources) are recorded with the server's reply. The transports report which
server a session talks to; where a recording answers for it, none is started.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import blake2b
from time import perf_counter
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from ... import schema
from ...lines import dumps
from ...schema import EFFECTS
from .. import guard, replay_hook
from ..calls.open_calls import calls_of
from ..front.tap import Tap
from ..http.recorded_once import Carried, carriers, is_carried
from ..http.watch import Watch
from ..recorder.recorder import Recorder
from .mcp_server import ServerProcess
from .patching import LibraryChanged, listen, need, need_called, undo_all


class StandIn(Protocol):
    """What answers a session in place of its server."""

    def ask(self, method: str, params: Any, recorder: Any) -> None:
        """Find the reply to a request before it is sent."""

    def let_through(self, method: str, params: Any) -> None:
        """Have the next such request sent to the real server."""


# Requests of an MCP session besides tool calls: the handshake, lists, resources, prompts.
#
# Each is one event with the server's reply, so that a replay needs no server. A reply that is the same as the
# last, such as a list of tools at every turn, is recorded as ``same``.

GREETINGS = ("initialize", "server/discover")
"""Their parameters describe the client, which differs from version to version; they are not compared."""
_SHORT = 200
_MOST = 500
_last_replies: WeakKeyDictionary[Recorder, dict[tuple[str, ...], bytes]] = WeakKeyDictionary()
"""The digest of the last reply, by writer, server, method and parameters."""


class ServerRequest:
    """A request that calls no tool, of a session whose server is known."""

    def __init__(self, watch: Watch, line: Line, method: str, params: Any) -> None:
        self.line = line
        self._method = method
        self._params = params
        self._recorder = watch.recorder()
        self._began = perf_counter()

    def ask_stand_in(self) -> None:
        """Have the stand-in find the recorded reply, if there is a stand-in."""
        if self.line.stand_in is not None:
            self.line.stand_in.ask(self._method, self._params, self._recorder)

    def answered(self, result: Any) -> None:
        self._record("result", plain(result))

    def refused(self, exc: BaseException) -> None:
        error = getattr(exc, "error", None)
        if hasattr(error, "code"):  # else it is not the server's
            self._record("refused", plain(error))

    def _record(self, name: str, reply: Any) -> None:
        fields: dict[str, Any] = {"server": self.line.server, "method": self._method}
        if self._params:
            fields["params"] = self._params
        fields["duration_ms"] = round((perf_counter() - self._began) * 1000, 3)
        is_same, key, digest = self._is_same(name, reply)
        fields.update({"same": True} if is_same else {name: reply})
        if self._recorder.emit(schema.MCP_ANSWER, fields) and not is_same:
            known = _last_replies.setdefault(self._recorder, {})
            if len(known) >= _MOST:
                known.clear()
            known[key] = digest

    def _is_same(self, name: str, reply: Any) -> tuple[bool, tuple[str, ...], bytes]:
        text = dumps(reply)
        key = (self._recorder.w, self.line.server, self._method, dumps(self._params))
        digest = blake2b(f"{name} {text}".encode(), digest_size=16).digest()
        is_same = len(text) > _SHORT and _last_replies.get(self._recorder, {}).get(key) == digest
        return is_same, key, digest


async def recorded_request(
    watch: Watch, session: Any, method: str | None, params: Any, ask: Callable[[], Awaitable[Any]]
) -> Any:
    """Send a request that is not a tool call, and record the reply."""
    request = _server_request(watch, session, method, params)
    if request is None:
        return await ask()
    request.ask_stand_in()
    try:
        result = await ask()
    except Exception as exc:
        with guard.Swallowing("record the reply of an MCP server"):
            request.refused(exc)
            request.line.process.request_failed(exc, watch.recorder())
        raise
    with guard.Swallowing("record the reply of an MCP server"):
        request.answered(result)
    return result


def _server_request(watch: Watch, session: Any, method: str | None, params: Any) -> ServerRequest | None:
    with guard.Swallowing("look at a request of an MCP session"):
        line = None if watch.is_off or method is None else line_of(session)
        if line is not None and method is not None:
            return ServerRequest(watch, line, method, None if method in GREETINGS else parameters(params))
    return None


def plain(value: Any) -> Any:
    """Return a model of the library as JSON has it."""
    if hasattr(value, "model_dump"):
        value = value.model_dump(by_alias=True, mode="json", exclude_none=True)
    return value


def parameters(params: Any) -> Any:
    """Return the parameters of a request without ``_meta``."""
    found = plain(params)
    if not isinstance(found, dict):
        return found
    return {name: value for name, value in found.items() if name != "_meta"}


CALL = "tools/call"
_, READ, WRITE, _ = EFFECTS

_effects: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
"""Effects of the tools of a session, as far as its server has declared them."""


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Listen to every client session, or to the connections of a transport; returns what undoes it."""
    if not module.__name__.endswith(".session"):
        return _patch_transports(module, watch)
    owner = module.ClientSession
    try:
        need_called(owner, "send_request")
        return _patch(owner, "send_request", watch, _of_request)
    except LibraryChanged:
        need(owner, "call_tool")
        return _patch(owner, "call_tool", watch, _of_call)


def _patch(owner: Any, method: str, watch: Watch, read: Callable[..., _Request]) -> Callable[[], None]:
    async def tapped(self: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        def ask() -> Any:
            return original(self, *args, **kwargs)

        request = _Request()
        with guard.Swallowing("look at a request of an MCP session"):
            request = read(*args, **kwargs)
        call = _begin(watch, request, self)
        if call is not None:
            return await call.carry(self, request, (*args, *kwargs.values()), ask)
        request.let_through(self)
        method = request.method if request.tool is None else None
        result = await recorded_request(watch, self, method, request.params, ask)
        _remember(self, result)
        return result

    async def send_discover(self: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        """mcp 2 discovers a server by a request of its own kind."""
        return await recorded_request(
            watch, self, "server/discover", None, lambda: original(self, *args, **kwargs)
        )

    taps: dict[str, Any] = {method: tapped}
    return listen(owner, taps | ({"send_discover": send_discover} if hasattr(owner, "send_discover") else {}))


class _Request(NamedTuple):
    """What a session sends, and the tool that it calls: its name and arguments."""

    method: str | None = None
    params: Any = None
    tool: tuple[str, Any] | None = None

    def let_through(self, session: Any) -> None:
        """Send a tool call to the real server, if a recording stands in for it; it is started for it."""
        line = line_of(session) if self.method == CALL else None
        if line is not None and line.stand_in is not None:
            line.stand_in.let_through(CALL, parameters(self.params))


def _of_request(request: Any, *_: Any, **__: Any) -> _Request:
    request = getattr(request, "root", request)  # mcp 1 has every request in a wrapper
    method, params = getattr(request, "method", None), getattr(request, "params", None)
    if not isinstance(method, str):
        return _Request()
    return _Request(
        method, params, (request.params.name, request.params.arguments) if method == CALL else None
    )


def _of_call(name: str, arguments: Any = None, *_: Any, **__: Any) -> _Request:
    return _Request(tool=(name, arguments))


def _remember(session: Any, result: Any) -> None:
    """Keep the effects that a list of tools declares."""
    with guard.Swallowing("look at a list of tools"):
        for tool in getattr(result, "tools", None) or ():
            effect = _effect(getattr(tool, "annotations", None))
            if effect is not None:
                _effects.setdefault(session, {})[tool.name] = effect


def _effect(annotations: Any) -> str | None:
    """Return our word for a server's hints; None if there are none about the effect."""
    hints = [getattr(annotations, name, None) for name in ("readOnlyHint", "destructiveHint")]
    if annotations is not None and hints == [None, None]:  # mcp 2 spells them as Python does
        hints = [getattr(annotations, name, None) for name in ("read_only_hint", "destructive_hint")]
    if hints[0] is True:
        return READ
    return WRITE if any(hint is not None for hint in hints) else None


def _begin(watch: Watch, request: _Request, session: Any) -> _Call | None:
    with guard.Swallowing("look at a tool call"):
        if request.tool is None or watch.is_off:
            return None
        name, arguments = request.tool
        recorder = watch.recorder()
        calls = calls_of(recorder)
        outer = calls.open.get(calls.open_tool() or "")
        if outer is not None and outer.name == name:
            return None  # a tool of that name is being recorded already, and this is how it does its work
        return _Call(Tap(recorder), name, arguments, _effects.get(session, {}).get(name))
    return None


class _Call:
    """A tool call under way."""

    def __init__(self, tap: Tap, name: str, args: Any, effect: str | None) -> None:
        self._tap = tap
        self._name = name
        self._args = args or {}
        self._effect = effect
        self._call = tap.record_tool_call(name, args or {}, effect=effect, source="mcp")

    async def carry(
        self, session: Any, request: _Request, arguments: tuple[Any, ...], ask: Callable[[], Any]
    ) -> Any:
        """Return the server's result, or the recorded one, where a recording stands in for it; record it."""

        def ask_server() -> Any:
            request.let_through(session)
            return ask()

        adapter = replay_hook.adapter("mcp")
        try:
            if adapter is None:
                result = await ask()
            else:
                result = await adapter.call_tool(self._outgoing(), arguments, ask_server)
        except BaseException as exc:
            self._tap.record_tool_result(self._name, error=exc, call=self._call)
            with guard.Swallowing("look at the process of an MCP server"):
                line = line_of(session)
                if line is not None:
                    line.process.request_failed(exc, self._tap.recorder(), self._call)
            raise
        with guard.Swallowing("record a tool result"):
            self._ended(result)
        return result

    def _outgoing(self) -> replay_hook.ToolCall:
        recorder = self._tap.recorder()
        opened = calls_of(recorder).open.get(self._call)
        return replay_hook.ToolCall(self._name, self._args, recorder, effect=self._effect, opened=opened)

    def _ended(self, result: Any) -> None:
        """Record a result; ``isError`` makes it an error."""
        reply, error = plain(result), None
        if reply.get("isError"):
            texts = [each["text"] for each in reply.get("content", ()) if "text" in each]
            error = {"type": "tool_error", "message": "\n".join(texts), "frames": []}
        self._tap.record_tool_result(self._name, reply, error, call=self._call)


# Transports: which server a session talks to.
#
# A transport is a context manager of ``contextlib``, and its users may have imported it by name already. So
# we replace the function inside it, not the name.

_TRANSPORTS = (
    "stdio_client",
    "streamable_http_client",
    "streamablehttp_client",
    "sse_client",
    "websocket_client",
)


class Line:
    """An open connection: its server, and who answers in place of the server."""

    def __init__(self, server: str, process: ServerProcess, stand_in: StandIn | None = None) -> None:
        self.server = server
        self.process = process
        self.stand_in = stand_in


_lines: dict[int, Line] = {}
"""By the id of either stream of an open connection."""


def line_of(session: Any) -> Line | None:
    """Return the connection of a session; None if it is not known, as to a server in this process."""
    for owner in (session, getattr(session, "_dispatcher", None)):
        for value in vars(owner).values() if hasattr(owner, "__dict__") else ():
            if id(value) in _lines:
                return _lines[id(value)]
    return None


def _patch_transports(module: Any, watch: Watch) -> Callable[[], None]:
    """Hear of every connection; returns what undoes it."""
    makers = [maker for name in _TRANSPORTS if (maker := vars(module).get(name)) is not None]
    if not makers:
        raise LibraryChanged(f"{module.__name__} has no transport")
    return undo_all(*[_exchange(maker, module, watch) for maker in makers])


def _exchange(maker: Any, module: Any, watch: Watch) -> Callable[[], None]:
    behind: Any = getattr(maker, "__wrapped__", None)
    cell = next((each for each in maker.__closure__ or () if each.cell_contents is behind), None)
    if cell is None:
        raise LibraryChanged(f"{maker.__name__} is not a context manager of contextlib")

    def opened(*args: Any, **kwargs: Any) -> Any:
        line = None
        with guard.Swallowing("look at a connection to an MCP server"):
            line = None if watch.is_off else _line(module, watch, behind, args, kwargs)
        return behind(*args, **kwargs) if line is None else line

    cell.cell_contents = opened

    def undo() -> None:
        if cell.cell_contents is opened:
            cell.cell_contents = behind

    return undo


def _line(module: Any, watch: Watch, behind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the generator behind a connection; None to leave it alone."""
    server = _address(args[0] if args else kwargs.get("server", kwargs.get("url")))
    if server is None:
        return None
    transport = asynccontextmanager(behind)(*args, **kwargs)
    process = ServerProcess(server, transport)
    real = _Carrier(server, transport, process, watch)
    adapter = None if is_carried() else replay_hook.adapter("mcp")
    if adapter is None:
        return _noted(real, Line(server, process))
    carrier, stand_in = adapter.connection(module, server, real, watch.recorder())
    return _noted(carrier, Line(server, process, stand_in))


def _address(target: Any) -> str | None:
    """Return the URL or the command line of a server."""
    if isinstance(target, str):
        return target
    command = getattr(target, "command", None)
    if not isinstance(command, str):
        return None

    return shlex.join([command, *map(str, getattr(target, "args", None) or ())])


class _Carrier:
    """A transport whose HTTP is not recorded separately: the requests of the session are."""

    _is_open = False

    def __init__(self, server: str, carrier: Any, process: ServerProcess, watch: Watch) -> None:
        self._server = server
        self.carrier = carrier
        self._process = process
        self._watch = watch

    async def __aenter__(self) -> Any:
        with Carried():
            streams = await self.carrier.__aenter__()
        carriers.append(self._server)
        self._is_open = True
        return streams

    async def __aexit__(self, *raised: Any) -> Any:
        self._leave()
        has_ended = False
        with guard.Swallowing("look at the process of an MCP server"):
            has_ended = self._process.has_ended()
        try:
            with Carried():
                return await self.carrier.__aexit__(*raised)
        finally:
            if not self._watch.is_off:
                with guard.Swallowing("look at the process of an MCP server"):
                    self._process.record_end(self._watch.recorder(), by_itself=has_ended)

    def _leave(self) -> None:
        if self._is_open:
            self._is_open = False
            carriers.remove(self._server)

    __del__ = _leave
    """A connection may be let go of without being closed: that of an event loop that has ended."""


class _Known:
    """Two streams whose connection is known, for as long as whoever has opened it is there."""

    _keys: list[int] = []  # of one whose __init__ an interrupt has ended

    def __init__(self, streams: Any, line: Line) -> None:
        self._keys = [id(stream) for stream in streams[:2]] if isinstance(streams, tuple) else []
        _lines.update(dict.fromkeys(self._keys, line))

    def forget(self) -> None:
        for key in self._keys:
            _lines.pop(key, None)
        self._keys = []

    __del__ = forget


async def _noted(carrier: Any, line: Line) -> AsyncIterator[Any]:
    async with carrier as streams:
        known = _Known(streams, line)
        try:
            yield streams
        finally:
            known.forget()
