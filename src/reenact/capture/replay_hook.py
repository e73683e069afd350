"""Who answers the calls of this process in place of the network: nobody while it is recorded.

Where a run is re-enacted, ``playback`` puts a ``Responder`` here. This is all that capture knows of it: which
request leaves, the recorded value of a clock, and, for each library, an adapter that makes answers in the
form that the library expects.
"""

from __future__ import annotations

from ..errors import Diverged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    class Responder(Protocol):
        """Answers calls in place of the network; raises for a call that it has no answer to."""

        def live(self, request: OutgoingRequest) -> Live | None:
            """Return what leaves in place of a request that is to be sent; None if it is answered here."""

        def ambient(self, name: str, thread: str | None) -> Any:
            """Return the recorded value of a clock or of chance; None for a real one."""

        def prepare(self, library: str, module: Any, watch: Any) -> Callable[[], None] | None:
            """Have the connections of a module lead here, once its seam is installed; returns the undo."""

        def adapter(self, library: str) -> Any:
            """Return the module that answers the calls of a library: one of ``playback/serve``."""

        def unwatched(self, tools: list[str]) -> None:
            """A response calls tools whose functions are not found; raises if they must not run."""


class OutgoingRequest:
    """An HTTP request before anything was done about it."""

    sent = None
    who: str | None = None

    def __init__(
        self, sort: str, method: str, url: str, headers: Sequence[tuple[str, str]], body: Any, recorder: Any
    ) -> None:
        self.sort = sort
        self.method = method
        self.url = url
        self.headers = headers
        self.request = body
        """The body, as parsed where it is JSON; None if it is made while it is sent."""
        self.recorder = recorder
        self.edited_reply: Any = None
        """The reply it gets in place of the recorded one, of the call ``replayed``."""
        self.replayed: str | None = None
        self.lost: str | None = None
        """Why it cannot leave: its server would need to know what was never sent to it."""

    @property
    def content_type(self) -> str | None:
        return next((value for name, value in self.headers if name.lower() == "content-type"), None)


class Live:
    """A request that is sent although a recording is there: as it is, or changed."""

    __slots__ = ("body", "url")

    def __init__(self, url: str | None = None, body: bytes | None = None) -> None:
        self.url = url
        """None for its own."""
        self.body = body


class ToolCall:
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
        """What it does to the world, as far as its author has declared."""
        self.opened = opened
        """The call as it is recorded; its ``replayed`` takes the id of the call whose result it gets."""
        self.args = args
        self.recorder = recorder
        self.function = function
        """The tool itself, None if it is not a function of this process."""


FIRST_SECRET = 1_000_001
"""Number of the first placeholder of a kind where a recording answers: apart from the numbers of any
recording, whose placeholders come back with its answers."""

responder: Responder | None = None
"""Who answers all calls of this process; None unless a run is re-enacted."""


def live(request: OutgoingRequest) -> Live | None:
    """Return what leaves in place of a request that is sent although a recording is there."""
    found = None if responder is None else responder.live(request)
    if found is not None and request.lost is not None:
        raise Diverged(f"a WebSocket cannot go live here: {request.lost}")
    return found


def recorded_value(name: str, thread: str | None) -> Any:
    """Return the recorded value of a clock or of chance; None for a real one."""
    return None if responder is None else responder.ambient(name, thread)


def prepare(library: str, module: Any, watch: Any) -> Callable[[], None] | None:
    """Have the connections of a library lead to who answers; returns what undoes it, if anything was done."""
    return None if responder is None else responder.prepare(library, module, watch)


def adapter(library: str) -> Any:
    """Return what answers the calls of a library; None while they are only recorded."""
    return None if responder is None else responder.adapter(library)
