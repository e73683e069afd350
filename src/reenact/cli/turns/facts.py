"""Numbers of turns and of the whole run: tokens, money, and where the time went."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...summary import Totals
from ...tracefile import dialects
from ...tracefile.calls import MODEL, Call, Turn
from ...tracefile.event import Event
from ...wire import reading
from ...wire.json_values import string
from ..eventline import kept_model

if TYPE_CHECKING:
    from ...money.prices import Bill, Book, Price


class Ledger:
    """Prices model calls; knows the model of a request that kept it from an earlier one."""

    def __init__(self) -> None:
        self._models: dict[str, str] = {}
        self.has_prices = False
        """True once a call had a price, so that it is worth telling which ones have none."""

    @cached_property
    def book(self) -> Book:
        from ...money.prices import Book  # takes a while, and a run without model calls needs none

        return Book.open()

    def model(self, call: Call) -> str | None:
        """Return the model that answered, else the one that was asked."""
        end = call.end._raw() if call.end is not None else {}
        told = string(end.get("model")) or reading.model_of(end.get("body"))
        return told or (self.asked(call.begin) if call.begin is not None else None)

    def asked(self, request: Event) -> str | None:
        """Return the model a request asks for."""
        fields = request._raw()
        model = string(fields.get("model")) or reading.model_of(fields.get("body"), string(fields.get("url")))
        base = string(fields.get("base"))
        if model is None and base is not None:
            model = self._models.get(base) or kept_model(request, fields)
        call = string(fields.get("call"))
        if model is not None and call is not None:
            self._models[call] = model
        return model

    def price(self, call: Call) -> Price | None:
        """Return what a call cost; None while it is open."""
        if call.end is None:
            return None
        request: dict[str, Any] | None = None
        if call.begin is not None and call.begin is not call.end:
            fields = call.begin._raw()
            request = {key: fields.get(key) for key in ("url", "provider", "body")}
            request["model"] = self.model(call)
        return self.book.price(call.end._raw(), request)

    def bill(self, calls: Iterable[Call]) -> Bill:
        """Return the sum over model calls."""
        bill = self.book.bill()
        for call in calls:
            if call.kind == MODEL and (price := self.price(call)) is not None:
                bill.add(price)
                self.has_prices |= price.usd is not None
            for event in (call.begin, call.end):
                if event is not None:
                    event._forget()
        return bill


def tokens(calls: Iterable[Call]) -> Totals:
    """Return the tokens of the model calls that ended."""
    totals = Totals()
    for call in calls:
        if call.end is not None:
            totals.add(dialects.event_type(call.end.kind), call.end._raw())
    return totals


def spent_ms(turn: Turn) -> float | None:
    """Return how long the model took, all attempts together."""
    known = [call.duration_ms for call in turn.attempts if call.duration_ms is not None]
    return sum(known) if known else None


Interval = tuple[float, float]


def interval(call: Call) -> Interval | None:
    """Return when a call began and ended; None if that is not known."""
    end = call.end.timestamp if call.end is not None else None
    if end is not None and call.duration_ms is not None:
        begin: float | None = end - call.duration_ms / 1000
    else:
        begin = call.event.timestamp
    if begin is None or end is None or not 0 <= end - begin < 1e9:
        return None
    return begin, end


def time_spent(calls: Iterable[Call], started: float | None, ended: float | None) -> dict[str, float] | None:
    """Return the seconds with a model call under way, with a tool, and with neither.

    Calls that run at the same time are counted once; so the parts are parts of the clock's time.
    """
    if started is None or ended is None or not 0 <= ended - started < 1e9:
        return None
    sorts: dict[bool, list[Interval]] = {True: [], False: []}
    for call in calls:
        when = interval(call) if call.end is not None else _until_the_end(call, ended)
        if when is not None:
            sorts[call.kind == MODEL].append(when)
    model, busy = _covered(sorts[True]), _covered(sorts[True] + sorts[False])
    total = max(ended - started, busy)
    return {"model": model, "tools": _covered(sorts[False]), "elsewhere": total - busy}


def _until_the_end(call: Call, ended: float) -> Interval | None:
    """Return the time of a recorded call that the run died inside of."""
    begin = None if call.derived else call.event.timestamp
    return None if begin is None or begin > ended else (begin, ended)


def _covered(intervals: list[Interval]) -> float:
    covered, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        if end > until:
            covered += end - max(begin, until)
            until = end
    return covered
