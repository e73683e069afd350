"""MCP's transports: which server a session talks to. Where a recording answers for it, none is started.

A transport is a context manager of ``contextlib``, and who uses it may have its name already. So it is not
the name that is exchanged but what stands behind it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager

from .. import answering, guard
from ..http import recorded_once
from ..import_lock import import_lock
from .patching import Unlike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import Any, Protocol

    from ..http.watch import Watch

    class StandIn(Protocol):
        """What answers a session in place of its server."""

        def ask(self, method: str, params: Any, recorder: Any) -> None:
            """Find the reply to a request before it is sent."""

        def let_through(self, method: str, params: Any) -> None:
            """Have the next such request sent to the real server."""


_NAMES = (
    "stdio_client",
    "streamable_http_client",
    "streamablehttp_client",
    "sse_client",
    "websocket_client",
)


class Line:
    """A connection that is open: where it leads, and who answers in the server's place."""

    def __init__(self, server: str, stand_in: StandIn | None = None) -> None:
        self.server = server
        self.stand_in = stand_in


_lines: dict[int, Line] = {}
"""By the id of either stream of an open connection."""


def line_of(session: Any) -> Line | None:
    """Return the connection of a session; None if it is none of ours, as to a server in this process."""
    for owner in (session, getattr(session, "_dispatcher", None)):
        for value in vars(owner).values() if hasattr(owner, "__dict__") else ():
            if id(value) in _lines:
                return _lines[id(value)]
    return None


def patch(module: Any, watch: Watch) -> Callable[[], None]:
    """Hear of every connection; returns what undoes it."""
    makers = [maker for name in _NAMES if (maker := vars(module).get(name)) is not None]
    undo = [_exchange(maker, module, watch) for maker in makers]
    if not undo:
        raise Unlike(f"{module.__name__} has no transport")

    def undo_all() -> None:
        for each in undo:
            each()

    return undo_all


def _exchange(maker: Any, module: Any, watch: Watch) -> Callable[[], None]:
    behind: Any = getattr(maker, "__wrapped__", None)
    cell = next((each for each in maker.__closure__ or () if each.cell_contents is behind), None)
    if cell is None:
        raise Unlike(f"{maker.__name__} is no context manager of contextlib")

    def opened(*args: Any, **given: Any) -> Any:
        try:
            line = None if watch.is_off else _line(module, watch, behind, args, given)
        except Exception as exc:
            guard.swallow("look at a connection to an MCP server", exc)
            line = None
        return behind(*args, **given) if line is None else line

    cell.cell_contents = opened

    def undo() -> None:
        if cell.cell_contents is opened:
            cell.cell_contents = behind

    return undo


def _line(module: Any, watch: Watch, behind: Any, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
    """Return the generator behind a connection; None to leave it alone."""
    server = _told(args[0] if args else given.get("server", given.get("url")))
    if server is None:
        return None
    real = _Carrier(server, asynccontextmanager(behind)(*args, **given))
    adapter = None if recorded_once.is_carried() else answering.adapter("mcp")
    if adapter is None:
        return _noted(real, Line(server))
    carrier, stand_in = adapter.connection(module, server, real, watch.recorder())
    return _noted(carrier, Line(server, stand_in))


def _told(target: Any) -> str | None:
    """Return in one text how a server is reached."""
    if isinstance(target, str):
        return target
    command = getattr(target, "command", None)
    if not isinstance(command, str):
        return None
    with import_lock:
        import shlex

    return shlex.join([command, *map(str, getattr(target, "args", None) or ())])


class _Carrier:
    """A transport whose HTTP is not recorded apart: the requests of the session are."""

    def __init__(self, server: str, carrier: Any) -> None:
        self._server = server
        self.carrier = carrier
        self._is_open = False

    async def __aenter__(self) -> Any:
        with recorded_once.Carried():
            streams = await self.carrier.__aenter__()
        recorded_once.carriers.append(self._server)
        self._is_open = True
        return streams

    async def __aexit__(self, *raised: Any) -> Any:
        self._leave()
        with recorded_once.Carried():
            return await self.carrier.__aexit__(*raised)

    def _leave(self) -> None:
        if self._is_open:
            self._is_open = False
            recorded_once.carriers.remove(self._server)

    __del__ = _leave
    """A connection may be let go of without being closed: that of an event loop that has ended."""


class _Known:
    """Two streams whose connection is known, for as long as whoever has opened it is there."""

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
