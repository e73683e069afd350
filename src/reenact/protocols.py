"""What one room asks of another that it must not import: the answers of a recording, for the seams."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    class Asked(Protocol):
        """A call as a seam has it before it leaves; ``Exchange`` of capture is one."""

        sort: str
        method: str
        url: str
        request: Any
        """The body, as parsed where it is JSON."""
        content_type: str | None
        sent: Any
        recorder: Any
        given: Reply | None

    class Responder(Protocol):
        """Answers calls in the place of the network; raises for one that it has no answer to."""

        def live(self, leaving: Leaving) -> Live | None:
            """Return what leaves in place of a request that is to be sent; None if it gets a ``reply``."""

        def reply(self, exchange: Asked) -> Reply: ...
        async def reply_async(self, exchange: Asked) -> Reply: ...
        def tool(self, asked: AskedTool) -> ToolReply | None: ...
        async def tool_async(self, asked: AskedTool) -> ToolReply | None: ...
        def ambient(self, name: str, thread: str | None) -> Any:
            """Return the recorded value of a clock or of chance; None for a real one."""

        def running(self, asked: AskedTool) -> AbstractContextManager[None]:
            """Return what is held while a tool that is not answered runs."""

        def opens(self, url: str) -> bool:
            """True if a socket that is opened now leads to the real server."""

        def unasked(self, url: str, recorder: Any) -> list[Unasked]:
            """Return what the server says of itself over the next socket that is opened there."""

        def has_server(self, server: str, recorder: Any) -> bool:
            """True if an MCP server need not be there, since it is known what it said."""

        def of_server(self, asked: AskedServer) -> ServerReply | None:
            """Return what an MCP server said to a request; None if the real one is to be asked."""


class Leaving:
    """An HTTP request before anything was done about it; ``Asked`` in shape."""

    sent = None

    def __init__(
        self, sort: str, method: str, url: str, headers: Sequence[tuple[str, str]], body: Any, recorder: Any
    ) -> None:
        self.sort = sort
        self.method = method
        self.url = url
        self.headers = headers
        self.request = body
        """None if it is made while it is sent."""
        self.content_type = next((value for name, value in headers if name.lower() == "content-type"), None)
        self.recorder = recorder
        self.given: Reply | None = None
        """What it gets in the place of the recorded answer, of the call ``replayed``."""
        self.replayed: str | None = None
        self.lost: str | None = None
        """Why it cannot leave, if it is to: what its server would have to know was never said to it."""


class Live:
    """A request that is sent although a recording is there: as it is, or changed."""

    __slots__ = ("body", "url")

    def __init__(self, url: str | None = None, body: bytes | None = None) -> None:
        self.url = url
        """None for its own."""
        self.body = body


class AskedTool:
    """A tool's call before its body runs."""

    __slots__ = ("args", "effect", "function", "name", "opened", "recorder")

    def __init__(
        self,
        name: str,
        args: Any,
        recorder: Any,
        function: Any = None,
        *,
        effect: str | None = None,
        opened: Any = None,
    ) -> None:
        self.name = name
        self.effect = effect
        """What it does to the world, as far as its author has told."""
        self.opened = opened
        """The call as it is recorded; ``replayed`` of it takes the id of the call whose result it gets."""
        self.args = args
        self.recorder = recorder
        self.function = function
        """The tool itself, None if it is not a function of this process."""


class ToolReply:
    """What a tool gave: a value, what it raised, or nothing any more, since the agent gave it up.

    In the place of the reply itself None stands for a tool that is to run.
    """

    __slots__ = ("error", "is_given_up", "value")

    def __init__(
        self, value: Any = None, error: BaseException | None = None, is_given_up: bool = False
    ) -> None:
        self.value = value
        """Of a generator ``{"yielded", "count", "returned"}``, as it is recorded."""
        self.error = error
        self.is_given_up = is_given_up


class Unasked:
    """A message that came over a socket with no request open: after how many requests and other messages."""

    __slots__ = ("asked", "body", "sent")

    def __init__(self, asked: int, sent: int, body: Any) -> None:
        self.asked = asked
        self.sent = sent
        self.body = body


class AskedServer:
    """A request of an MCP session that calls no tool: a handshake, a list, a resource."""

    __slots__ = ("method", "params", "recorder", "server")

    def __init__(self, server: str, method: str, params: Any, recorder: Any) -> None:
        self.server = server
        """How it is reached: its command, or its URL."""
        self.method = method
        self.params = params
        self.recorder = recorder


class ServerReply:
    """What an MCP server said: a result, or an error of JSON-RPC."""

    __slots__ = ("error", "result")

    def __init__(self, result: Any = None, error: dict[str, Any] | None = None) -> None:
        self.result = result
        self.error = error


COMPLETE, BREAKS, STAYS_OPEN, RAISES, ENDS = "complete", "breaks", "stays-open", "raises", "ends"
"""After its pieces an answer is over; or its connection breaks; or nothing more comes, because it was the
agent that went no further; or there is no answer at all but an exception of the HTTP library; or the
recording ends there, and with it the run."""


class Reply:
    """What a seam gives back instead of what a server would."""

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


FIRST_SECRET = 1_000_001
"""Of a kind, where a recording answers: apart from the numbers of any recording, whose placeholders come back
with its answers."""

responder: Responder | None = None
"""Who answers all calls of this process; None but where a run is re-enacted."""
