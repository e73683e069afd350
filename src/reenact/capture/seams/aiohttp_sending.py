"""A body of aiohttp that is made while it is sent: a form, a file, a generator; told of by its writer.

The writer works in a task of its own, which inherits the context that says whose body it is.
"""

from __future__ import annotations

from .. import guard
from ..inside import AgentsOwn, current
from .methods import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..sent import Sent

_tapped: dict[type, type] = {}


def patch(module: Any) -> Callable[[], None]:
    """Have the bodies of all requests read along; returns what undoes it."""
    owner = module.ClientRequest
    return replace(owner, {"write_bytes": _reading_along(owner.write_bytes)})


def tap(session: Any) -> None:
    """Have the bodies of one session's requests read along."""
    kind = session._request_class
    if kind not in _tapped.values():
        made = _tapped.get(kind)
        if made is None:
            made = type(kind.__name__, (kind,), {"write_bytes": _reading_along(kind.write_bytes)})
            _tapped[kind] = made
        session._request_class = made


def untap(session: Any) -> None:
    """Give a session its own kind of request back."""
    for kind, made in _tapped.items():
        if vars(session).get("_request_class") is made:
            session._request_class = kind


def _reading_along(original: Any) -> Any:
    async def write_bytes(self: Any, writer: Any, *args: Any, **given: Any) -> Any:
        handed_on = current()
        exchange = handed_on.exchange if handed_on is not None and handed_on.reads_body else None
        sent = exchange.sent if exchange is not None else None
        if sent is None:
            return await original(self, writer, *args, **given)
        with AgentsOwn():
            _listen(writer, sent, self)
            done = await original(self, writer, *args, **given)
            if getattr(writer, "_eof", False):
                sent.all()
            return done

    return write_bytes


def _listen(writer: Any, sent: Sent, request: Any) -> None:
    try:
        sent.restart(request.headers.get("Content-Type"))
        before = writer._on_chunk_sent

        async def told(chunk: Any) -> None:
            sent.add(chunk)
            if before is not None:
                await before(chunk)

        writer._on_chunk_sent = told
    except Exception as exc:
        guard.swallow("read a body along", exc)
