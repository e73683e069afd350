"""What a request of httpx or httpx2 says, and its answer's bytes passed on as they come.

The classes are made per module, because each insists on its own base classes.
"""

from __future__ import annotations

from .. import guard
from ..exchange import CLOSED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..exchange import Exchange
    from ..watch import Watch


def begin(watch: Watch, request: Any) -> Exchange | None:
    """Return the exchange of a request, None if it is not to be recorded."""
    try:
        try:
            body = request.content
        except Exception as exc:  # a body that is made while it is sent: a file, a generator
            guard.pass_on(exc)
            body = None
        return watch.begin(request.method, str(request.url), _items(request.headers), body)
    except Exception as exc:
        guard.swallow("look at a request", exc)
        return None


def _items(headers: Any) -> list[tuple[str, str]]:
    """Return headers as text; their own ``multi_items`` asks for the encoding with each of them."""
    encoding = headers.encoding
    return [(name.decode(encoding), value.decode(encoding)) for name, value in headers.raw]


def answered(exchange: Exchange, response: Any, tee: type) -> None:
    """Listen to what comes back."""
    try:
        whole = _content(response)
        exchange.answered(response.status_code, _items(response.headers), decoded=whole is not None)
        if whole is None:
            response.stream = tee(response.stream, exchange)
        else:
            exchange.chunk(whole)
            exchange.end()
    except Exception as exc:
        guard.swallow("listen to an answer", exc)


def _content(response: Any) -> bytes | None:
    """Return what a transport that asks no server has made of bytes: nobody will read its stream."""
    if not response.is_closed:
        return None
    try:
        return bytes(response.content)
    except Exception as exc:  # closed before it was read
        guard.pass_on(exc)
        return None


def make_tee(module: Any) -> type:
    class Tee(module.SyncByteStream):  # type: ignore[misc]
        """The answer's bytes, passed on as they come."""

        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream = stream
            self._exchange = exchange

        def __iter__(self) -> Any:
            return _Pieces(iter(self._stream), self._exchange)

        def close(self) -> None:
            try:
                self._stream.close()
            finally:
                self._exchange.end(CLOSED)

    return Tee


def make_async_tee(module: Any) -> type:
    class AsyncTee(module.AsyncByteStream):  # type: ignore[misc]
        """The answer's bytes, passed on as they come."""

        def __init__(self, stream: Any, exchange: Exchange) -> None:
            self._stream = stream
            self._exchange = exchange

        def __aiter__(self) -> Any:
            return _Pieces(self._stream.__aiter__(), self._exchange)

        async def aclose(self) -> None:
            try:
                await self._stream.aclose()
            finally:
                self._exchange.end(CLOSED)

    return AsyncTee


class _Pieces:
    """Passes each piece on at once and tells the exchange of it; for either kind of stream."""

    def __init__(self, pieces: Any, exchange: Exchange) -> None:
        self._pieces = pieces
        self._exchange = exchange

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> bytes:
        try:
            piece: bytes = next(self._pieces)
        except BaseException as exc:
            self._exchange.raised(exc)
            raise
        self._exchange.chunk(piece)
        return piece

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece: bytes = await self._pieces.__anext__()
        except BaseException as exc:
            self._exchange.raised(exc)
            raise
        self._exchange.chunk(piece)
        return piece
