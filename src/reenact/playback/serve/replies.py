"""Recorded replies before they take the form of a library, and the responder that finds them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, cast

from ...capture import replay_hook
from ...capture.replay_hook import ToolCall


class HttpCall(Protocol):
    """An HTTP call that wants a reply; ``Exchange`` of capture is one."""

    sort: str
    method: str
    url: str
    request: Any
    """The body, as parsed where it is JSON."""
    sent: Any
    recorder: Any
    edited_reply: Any

    @property
    def content_type(self) -> str | None:
        """The type of its body."""

    @property
    def who(self) -> str | None:
        """The thread, task or work item that makes the call."""


class Responder(Protocol):
    """Answers calls from a recording; raises for a call that it has no answer to."""

    def reply(self, call: HttpCall) -> Reply: ...
    async def reply_async(self, call: HttpCall) -> Reply: ...
    def tool(self, call: ToolCall) -> ToolReply | None: ...
    async def tool_async(self, call: ToolCall) -> ToolReply | None: ...
    def running(self, call: ToolCall) -> AbstractContextManager[None]:
        """Return what is held while a tool that is not answered runs."""

    def opens(self, url: str) -> bool:
        """True if a socket that is opened now leads to the real server."""

    def unprompted(self, url: str, recorder: Any) -> list[Unprompted]:
        """Return the messages that the server sends without a request over the next socket to a URL."""

    def has_server(self, server: str, recorder: Any) -> bool:
        """True if an MCP server need not be there, since its answers are recorded."""

    def server_reply(self, request: ServerRequest) -> ServerReply | None:
        """Return the reply of an MCP server to a request; None if the real one is to answer."""


def responder() -> Responder:
    """Return who answers in this process."""
    assert replay_hook.responder is not None
    return cast(Responder, replay_hook.responder)


COMPLETE, BREAKS, STAYS_OPEN, RAISES, ENDS = "complete", "breaks", "stays-open", "raises", "ends"
"""What follows the pieces of a reply: it is complete; or its connection breaks; or nothing more arrives,
because the agent stopped reading; or there is no response at all but an exception of the HTTP library; or
the recording ends there, and with it the run."""


class Reply:
    """An HTTP response before it takes the form of a library."""

    __slots__ = ("error", "headers", "pieces", "status", "then")

    def __init__(
        self,
        status: int = 200,
        headers: Sequence[tuple[str, str]] = (),
        pieces: Sequence[tuple[bytes, float]] = (),
        then: str = COMPLETE,
        error: Any = None,
    ) -> None:
        self.status = status
        self.headers = headers
        self.pieces = pieces
        """Bytes, and the seconds to wait before them."""
        self.then = then
        self.error = error
        """The recorded error, where it raises or breaks: a text with its ``type``."""


class ToolReply:
    """The recorded result of a tool: a value, an exception, or nothing any more, since the agent gave up.

    In place of a ``ToolReply`` None stands for a tool that is to run.
    """

    __slots__ = ("error", "interrupts", "is_cancelled", "value")

    def __init__(
        self, value: Any = None, error: BaseException | None = None, is_cancelled: bool = False
    ) -> None:
        self.value = value
        """Of a generator ``{"yielded", "count", "returned"}``, as it is recorded."""
        self.error = error
        self.is_cancelled = is_cancelled
        self.interrupts: Sequence[Any] = ()
        """What LangGraph was interrupted with before that; the last one may suspend the agent again."""


class Unprompted:
    """A message that came over a socket with no request open: after how many requests and other messages."""

    __slots__ = ("body", "requests", "sent")

    def __init__(self, requests: int, sent: int, body: Any) -> None:
        self.requests = requests
        self.sent = sent
        self.body = body


class ServerRequest:
    """A request of an MCP session that calls no tool: a handshake, a list, a resource."""

    __slots__ = ("method", "params", "recorder", "server")

    def __init__(self, server: str, method: str, params: Any, recorder: Any) -> None:
        self.server = server
        """How it is reached: its command, or its URL."""
        self.method = method
        self.params = params
        self.recorder = recorder


class ServerReply:
    """The reply of an MCP server: a result, or an error of JSON-RPC."""

    __slots__ = ("error", "result")

    def __init__(self, result: Any = None, error: dict[str, Any] | None = None) -> None:
        self.result = result
        self.error = error
