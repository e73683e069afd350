"""Which requests are recorded, in which run, and whether they are sent."""

from __future__ import annotations

from _contextvars import ContextVar
from collections.abc import Callable, Iterable

from ...errors import Diverged
from ...wire.routes import HTTP, Route, host_of, may_be_model, route_of
from .. import guard, replay_hook
from ..recorder.recorder import Recorder
from .exchange import Exchange, record_whole_streams
from .request_body import parsed
from .response_body import as_json

Headers = Iterable[tuple[str, str]]

hosts_seen: dict[str, int] = {}
"""Every host that a seam of this process saw, with the number of recorded calls: the proof of coverage."""


def _count(hosts: dict[str, int], host: str, calls: int = 1) -> None:
    if host in hosts or len(hosts) < 1_000:
        hosts[host] = hosts.get(host, 0) + calls


class Watch:
    """Who records what a seam sees: a tap, or whatever run the calling code is in."""

    def __init__(
        self, recorder: Callable[[], Recorder], hosts: tuple[str, ...] = (), *, everything: bool = False
    ) -> None:
        self.recorder = recorder
        self.hosts = hosts
        """Further hosts that serve models."""
        self.everything = everything
        """True to record traffic that is not a model's, too."""
        self.unrecorded_hosts: dict[str, int] = {}
        """Calls that were not recorded, by host."""
        self.is_off = False
        """True once nothing is recorded any more; seams that could not be removed pass everything on."""

    def begin(
        self, method: str, url: str, headers: Headers, body: bytes | None, *, lost: str | None = None
    ) -> Exchange | None:
        """Record a request that is about to be sent; None if it is not to be recorded.

        ``lost`` is the reason it cannot be sent where a recording has answered those before it. Never raises,
        except for what ends a run that is re-enacted.
        """
        if self.is_off or is_further_down(method, body):
            return None
        try:
            url = url.partition("#")[0]  # never sent
            host = host_of(url)
            parsed_body = parsed(body) if self.everything or may_be_model(url, self.hosts) else None
            _count(hosts_seen, host, 0)
            route = route_of(method.upper(), url, parsed_body, self.hosts)
            if route is None:
                if not self.everything or is_carried(url):
                    _count(self.unrecorded_hosts, host)
                    return None
                route = Route(HTTP, None)
            record_whole_streams()
            recorder, header_list = self.recorder(), list(headers)
            request = replay_hook.OutgoingRequest(
                route.sort,
                method.upper(),
                url,
                header_list,
                body if parsed_body is None else parsed_body,
                recorder,
            )
            request.lost = lost
            live = replay_hook.live(request)
            if live is not None:
                url = url if live.url is None else live.url
                body, parsed_body = (
                    (body, parsed_body) if live.body is None else (live.body, as_json(live.body))
                )
            exchange = Exchange(recorder, route.sort, route.provider, method.upper(), url)
            exchange.live, exchange.body_hash = live, hash(body)
            exchange.edited_reply, exchange.replayed = request.edited_reply, request.replayed
            try:
                exchange.leave(header_list, body if parsed_body is None else parsed_body, hash((url, body)))
            except BaseException:  # an interrupt, too
                exchange.forget()  # no answer to a request that is not there
                raise
            _count(hosts_seen, host)
            return exchange
        except Exception as exc:
            if replay_hook.responder is not None:  # not recorded and not answered, it would just be sent
                raise Diverged(f"a request cannot be answered: {guard.explain(exc)}") from exc
            guard.swallow("record a request", exc)
            return None


# One call, one record: a request that a seam has handed on is not recorded again by the libraries below it.
#
# It is recognised by its method and its body. Another request made meanwhile is another call: by a signal
# handler, by a gateway that runs in this process, by a task that was started inside.

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
