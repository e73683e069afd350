"""A body of httpx that is made while it is sent: read along, piece by piece, as the transport asks for it.

In the request's place only while the transport has it, so that a redirect or a retry finds the agent's own.
"""

from __future__ import annotations

from .. import guard
from ..inside import AgentsOwn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..sent import Sent

_classes: dict[tuple[str, bool, bool], type] = {}


def listen(module: Any, request: Any, sent: Sent | None) -> Any:
    """Have a request's body read along; returns what ``let_go`` takes."""
    try:
        stream = request.stream
        kinds = [isinstance(stream, kind) for kind in (module.SyncByteStream, module.AsyncByteStream)]
        if sent is None or not any(kinds):
            return None
        made = _classes.get((module.__name__, *kinds)) or _make(module, *kinds)
        request.stream = made(stream, sent)
        return stream
    except Exception as exc:
        guard.swallow("read a body along", exc)
        return None


def let_go(request: Any, stream: Any) -> None:
    """Give a request its own body back, unless somebody else has put another there."""
    if stream is not None and isinstance(request.stream, _Along):
        request.stream = stream


def _make(module: Any, sync: bool, asynchronous: bool) -> type:
    bases: list[type] = [_Along]
    if sync:
        bases += [_SyncAlong, module.SyncByteStream]
    if asynchronous:
        bases += [_AsyncAlong, module.AsyncByteStream]
    made = type("Along", tuple(bases), {})
    _classes[module.__name__, sync, asynchronous] = made
    return made


class _Along:
    def __init__(self, stream: Any, sent: Sent) -> None:
        self._reenact_stream = stream
        self._reenact_sent = sent

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_reenact_stream"), name)


class _SyncAlong:
    _reenact_stream: Any
    _reenact_sent: Sent

    def __iter__(self) -> Any:
        return _Pieces(iter(self._reenact_stream), self._reenact_sent)

    def close(self) -> None:
        self._reenact_stream.close()


class _AsyncAlong:
    _reenact_stream: Any
    _reenact_sent: Sent

    def __aiter__(self) -> Any:
        return _Pieces(self._reenact_stream.__aiter__(), self._reenact_sent)

    async def aclose(self) -> None:
        await self._reenact_stream.aclose()


class _Pieces:
    def __init__(self, pieces: Any, sent: Sent) -> None:
        self._pieces = pieces
        self._sent = sent
        sent.restart()

    def __iter__(self) -> _Pieces:
        return self

    def __next__(self) -> bytes:
        try:
            with AgentsOwn():
                piece: bytes = next(self._pieces)
        except StopIteration:
            self._sent.all()
            raise
        self._sent.add(piece)
        return piece

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        try:
            with AgentsOwn():
                piece: bytes = await self._pieces.__anext__()
        except StopAsyncIteration:
            self._sent.all()
            raise
        self._sent.add(piece)
        return piece
