"""A recording in place of an MCP server: a connection without a server, until the real one is needed.

The reply to a request is looked up before the session sends it. A request for the real server starts it,
repeats the set-up of the session, and connects it through.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

from ...capture.replay_hook import ToolCall
from ...lines import dumps
from .replies import ServerReply, ServerRequest, responder
from .tools import result_async

_SETTING_UP = ("initialize", "logging/setLevel", "resources/subscribe", "notifications/initialized")
"""Messages that a server needs before it can join in the middle of a session."""
_NOT_RECORDED, _GONE = -32601, -32000
"""Codes of JSON-RPC for a missing method, and of MCP for a lost connection."""


def connection(module: Any, server: str, real: Any, recorder: Any) -> tuple[Any, StandIn | None]:
    """Return what carries a session, and who answers it: none where its server is not recorded."""
    if not responder().has_server(server, recorder):
        return real.carrier, None
    has_id = hasattr(module, "GetSessionIdCallback")  # mcp 1 returns one stream more
    stand_in = StandIn(server, real)
    return stand_in.connection(has_id=has_id), stand_in


async def call_tool(call: ToolCall, arguments: tuple[Any, ...], ask_server: Callable[[], Any]) -> Any:
    """Return the recorded result of a tool, as the kind that the arguments name; or the real server's."""
    reply = await responder().tool_async(call)
    if reply is None:
        with responder().running(call):
            return await ask_server()
    kinds = [each for each in arguments if isinstance(each, type)]
    kind: Any = next((each for each in kinds if hasattr(each, "model_validate")), None)
    if kind is None:
        kind = import_module("mcp.types").CallToolResult
    return kind.model_validate(await result_async(reply))


class StandIn:
    """Answers one session; ``real`` is the transport to its server, which is opened when it must be."""

    def __init__(self, server: str, real: Any) -> None:
        self._server = server
        self._real = real
        self._replies: dict[str, list[ServerReply | None]] = {}
        self._setup: list[Any] = []
        """Messages that are sent to the real server first."""
        self._to_server: Any = None
        self._to_agent: Any = None
        self._greeted: dict[Any, Any] = {}
        """Events of set-up requests that we repeat, by their ids."""
        self._pending: dict[Any, Any] = {}
        """Requests that the real server has not answered yet."""
        self._fault = ""
        """Why the real server cannot be reached."""

    def ask(self, method: str, params: Any, recorder: Any) -> None:
        """Find the reply to a request before it is sent."""
        self.expect(
            method, params, responder().server_reply(ServerRequest(self._server, method, params, recorder))
        )

    def let_through(self, method: str, params: Any) -> None:
        """Have the next such request sent to the real server."""
        self.expect(method, params, None)

    def expect(self, method: str, params: Any, reply: ServerReply | None) -> None:
        """Set the reply to a request before it is sent; None if the real server is to answer."""
        self._replies.setdefault(_key(method, params), []).append(reply)

    @asynccontextmanager
    async def connection(self, *, has_id: bool) -> AsyncIterator[Any]:
        """Give a session its two streams."""
        import anyio

        streams: Any = anyio.create_memory_object_stream
        self._to_agent, read = streams(math.inf)
        write, from_agent = streams(math.inf)
        with self._to_agent, read, write, from_agent:
            async with anyio.create_task_group() as group:
                group.start_soon(self._serve, from_agent, group)
                try:
                    yield (read, write, lambda: None) if has_id else (read, write)
                finally:
                    group.cancel_scope.cancel()

    async def _serve(self, from_agent: Any, group: Any) -> None:
        async for wrapped in from_agent:
            message = _bare(wrapped)
            method = getattr(message, "method", None)
            if self._to_server is not None:
                self._reply_to(message)
                await self._ask(wrapped)
                continue
            if method in _SETTING_UP:
                self._setup.append(wrapped)
            if getattr(message, "id", None) is None or method is None:
                continue  # a notification, or the response to a request of the server
            is_expected, reply = self._reply_to(message)
            if not is_expected or reply is not None:
                await self._to_agent.send(_answer(wrapped, message.id, reply))
                continue
            if method in _SETTING_UP:
                self._setup.remove(wrapped)
            if not self._fault:
                await group.start(self._go_live)
            await self._ask(wrapped)

    async def _ask(self, wrapped: Any) -> None:
        """Send a message to the real server; if it is gone, answer with its fault."""
        number = getattr(_bare(wrapped), "id", None)
        if number is not None and hasattr(_bare(wrapped), "method"):
            self._pending[number] = wrapped
        try:
            if not self._fault:
                await self._to_server.send(wrapped)
        except Exception as exc:
            self._fault = self._fault or _why(exc)
        if self._fault:
            await self._report_fault()

    def _reply_to(self, message: Any) -> tuple[bool, ServerReply | None]:
        found = self._replies.get(_key(getattr(message, "method", ""), getattr(message, "params", None)))
        return (True, found.pop(0)) if found else (False, None)

    async def _go_live(self, *, task_status: Any) -> None:
        """Open the real connection and pass its messages on, for as long as this one is open."""
        import anyio

        try:
            async with self._real as streams, anyio.create_task_group() as group:
                group.start_soon(self._pass_on, streams[0])
                await self._greet(streams[1])
                if not self._fault:
                    self._to_server = streams[1]
                    task_status.started()
                    await anyio.sleep_forever()
                group.cancel_scope.cancel()
        except Exception as exc:
            self._fault = self._fault or _why(exc)
        if self._to_server is None:
            task_status.started()
        await self._report_fault()

    async def _greet(self, write: Any) -> None:
        """Repeat the set-up of the session to the real server, and wait for its replies."""
        import anyio

        for wrapped in self._setup:
            number = getattr(_bare(wrapped), "id", None)
            if number is not None:
                self._greeted[number] = anyio.Event()
            await write.send(wrapped)
            if number is not None:
                await self._greeted[number].wait()

    async def _pass_on(self, read: Any) -> None:
        async for wrapped in read:
            message = None if isinstance(wrapped, Exception) else _bare(wrapped)
            greeted = self._greeted.pop(getattr(message, "id", None), None)
            if greeted is None:
                if not hasattr(message, "method"):
                    self._pending.pop(getattr(message, "id", None), None)
                await self._to_agent.send(wrapped)
                continue
            self._fault = str(getattr(getattr(message, "error", None), "message", ""))
            greeted.set()
        self._fault = self._fault or "it has gone away"
        await self._report_fault()
        for greeted in self._greeted.values():
            greeted.set()

    async def _report_fault(self) -> None:
        text = f"the MCP server {self._server} is needed from here on, and is not there: {self._fault}"
        reply = ServerReply(error={"code": _GONE, "message": text})
        while self._pending:
            number, wrapped = self._pending.popitem()
            await self._to_agent.send(_answer(wrapped, number, reply))


def _why(exc: BaseException) -> str:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return f"{type(exc).__name__}: {exc}".removesuffix(": ")


def _bare(wrapped: Any) -> Any:
    """Return a message without the wrappers that versions of the library have around it."""
    message = getattr(wrapped, "message", wrapped)
    return getattr(message, "root", message)


def _key(method: str, params: Any) -> str:
    """Return the key of a request: its method and its parameters without ``_meta``."""
    request_params = {name: value for name, value in params.items() if name != "_meta"} if params else None
    return f"{method} {dumps(request_params) if request_params and method != 'initialize' else ''}"


def _answer(wrapped: Any, number: Any, reply: ServerReply | None) -> Any:
    """Return a reply in the same wrappers as the request."""
    types = import_module("mcp.types")
    message_json: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
    if reply is None:
        message_json["error"] = {"code": _NOT_RECORDED, "message": "not recorded"}
    elif reply.error is not None:
        message_json["error"] = reply.error
    else:
        message_json["result"] = reply.result or {}
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    message = (
        types.JSONRPCMessage.model_validate(message_json)
        if adapter is None
        else adapter.validate_python(message_json)
    )
    return type(wrapped)(message) if hasattr(wrapped, "message") else message
