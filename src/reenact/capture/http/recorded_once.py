"""One call, one record: a request that a seam has handed on is not recorded again by the libraries below it.

It is recognised by its method and its body. Another request made meanwhile is another call: by a signal
handler, by a gateway that runs in this process, by a task that was started inside.
"""

from __future__ import annotations

from _contextvars import ContextVar

from .exchange import Exchange

_latest: ContextVar[HandedOn | None] = ContextVar("reenact_handed_on", default=None)
_carried: ContextVar[bool] = ContextVar("reenact_carried", default=False)


carriers: list[str] = []
"""URLs of transports whose traffic is recorded by what it carries, not as HTTP."""


class Carried:
    """Around what such a transport does by itself, and the tasks that it starts there."""

    def __enter__(self) -> None:
        self._token = _carried.set(True)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not GeneratorExit:  # else in a finaliser, where no context variable may be touched
            _carried.reset(self._token)


def is_carried(url: str = "") -> bool:
    """True if a request only carries what is recorded elsewhere."""
    return _carried.get() or url in carriers


class HandedOn:
    """Around the library's part of a call; an exception that leaves it ends the exchange.

    What was set is not taken back: that may be in a finaliser, where no context variable may be touched.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange: Exchange | None = exchange
        """None once the library has returned."""
        self.reads_body = False
        """True if this seam records the request body."""
        self._calls_agent = False
        self._outer = current()

    def __enter__(self) -> HandedOn:
        _latest.set(self)
        return self

    def __exit__(self, kind: object, exc: BaseException | None, traceback: object) -> None:
        exchange, self.exchange = self.exchange, None
        if exc is not None and exchange is not None:
            exchange.raised(exc)


class AgentsOwn:
    """Around code of the agent that a library calls to make a body: its requests are calls of their own."""

    def __init__(self) -> None:
        self._within = current()

    def __enter__(self) -> None:
        if self._within is not None:
            self._within._calls_agent = True

    def __exit__(self, *_: object) -> None:
        if self._within is not None:
            self._within._calls_agent = False


def current() -> HandedOn | None:
    """Return the innermost call that a library is working on here."""
    found = _latest.get()
    while found is not None and found.exchange is None:
        found = found._outer
    return None if found is None or found._calls_agent else found


def is_further_down(method: str, body: bytes | None) -> bool:
    """True if this is the request that was handed on; a body made while it is sent counts as the same."""
    found = current()
    if found is None or found.exchange is None or found.exchange.method != method.upper():
        return False
    return body is None or found.exchange.sent is not None or found.exchange.body_hash == hash(body)
