"""Which requests are recorded, in which run, and whether they are sent."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...errors import Diverged
from ...wire.routes import HTTP, Route, host_of, may_be_model, route_of, route_of_client
from .. import guard, replay_hook
from ..recorder.recorder import Recorder
from .exchange import Exchange
from .finished_streams import record_whole_streams
from .recorded_once import is_carried, is_further_down
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
        self,
        recorder: Callable[[], Recorder],
        hosts: tuple[str, ...] = (),
        *,
        everything: bool = False,
        of_client: bool = False,
    ) -> None:
        self.recorder = recorder
        self.hosts = hosts
        """Further hosts that serve models."""
        self.everything = everything
        """True to record traffic that is not a model's, too."""
        self.of_client = of_client
        """True for a wrapped client: all of its calls are recorded, whatever their host and path."""
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
            host, method = host_of(url), method.upper()
            found = self._route(method, url, host, body)
            if found is None:
                return None
            route, content = found
            record_whole_streams()
            recorder, header_list = self.recorder(), list(headers)
            request = replay_hook.OutgoingRequest(route.sort, method, url, header_list, content, recorder)
            request.lost = lost
            live = replay_hook.live(request)
            if live is not None:
                url = url if live.url is None else live.url
                if live.body is not None:
                    body, content = live.body, as_json(live.body)
                    content = body if content is None else content
            exchange = Exchange(recorder, route.sort, route.provider, method, url)
            exchange.live, exchange.body_hash = live, hash(body)
            exchange.edited_reply, exchange.replayed = request.edited_reply, request.replayed
            try:
                exchange.leave(header_list, content, hash((url, body)))
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

    def _route(self, method: str, url: str, host: str, body: bytes | None) -> tuple[Route, Any] | None:
        """Return where a request goes, and its body, parsed if it is JSON; None if it is not recorded."""
        content = parsed(body) if self.everything or may_be_model(url, self.hosts) else None
        _count(hosts_seen, host, 0)
        route = route_of(method, url, content, self.hosts)
        if route is None:
            if not (self.everything or self.of_client) or is_carried(url):
                _count(self.unrecorded_hosts, host)
                return None
            route = route_of_client(method, url) if self.of_client else Route(HTTP, None)
        if content is None:  # whatever made it a call to record: one rule for all that is recorded
            content = parsed(body)
        return route, body if content is None else content
