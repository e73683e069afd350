"""The only place where model calls are priced, so that all commands and reports agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..recording.calls import MODEL, Call
from ..tracefile.models import requested_model
from ..tracefile.source import Shelf
from ..wire import reading
from ..wire.json_values import string

if TYPE_CHECKING:
    from .prices import Bill, Book, Price

_MAX_MODELS = 1 << 16
"""Requests whose model is remembered; that of an older one is looked up in its file."""


class Ledger:
    """Prices the model calls of a run; knows the model of a request that keeps it from an earlier one."""

    def __init__(self, book: Book | None = None) -> None:
        self._models: dict[str, str | None] = {}
        if book is not None:
            self.book = book
        self.has_prices = False
        """True once a call had a price, so that it is worth showing which ones have none."""

    @cached_property
    def book(self) -> Book:
        from .prices import Book  # takes a while, and a run without model calls needs none

        return Book.open()

    def request_facts(self, fields: dict[str, Any], shelf: Shelf) -> dict[str, Any]:
        """Return what of a request decides the price of its call: its provider, address and model."""
        model = requested_model(fields, shelf, self._models)
        call, models = fields.get("call"), self._models
        if type(call) is str:
            models[call] = model
            while len(models) > _MAX_MODELS:
                del models[next(iter(models))]
        facts = {"provider": fields.get("provider"), "url": fields.get("url"), "model": model}
        if fields.get("model") not in (None, model):  # named twice, in different ways
            facts["body"] = {"model": fields["model"]}
        return facts

    def model(self, ended: Mapping[str, Any], request: Mapping[str, Any] | None) -> str | None:
        """Return the model that answered, else the one that was requested."""
        answered = string(ended.get("model")) or reading.model_of(ended.get("body"))
        return answered or (request["model"] if request is not None else None)

    def price(self, ended: Mapping[str, Any], request: Mapping[str, Any] | None) -> Price:
        """Return what an ended call cost, from the fields of its last line and the facts of its request."""
        price = self.book.price(ended, request)
        self.has_prices |= price.usd is not None
        return price

    def model_of(self, call: Call) -> str | None:
        """Return the model of a call, as ``model`` does."""
        return self.model(call.end._raw() if call.end is not None else {}, self._request(call))

    def bill(self, calls: Iterable[Call]) -> Bill:
        """Return the sum over the model calls that ended."""
        bill = self.book.bill()
        for call in calls:
            if call.kind == MODEL and call.end is not None:
                bill.add(self.price(call.end._raw(), self._request(call)))
            for event in (call.begin, call.end):
                if event is not None:
                    event._forget()
        return bill

    def _request(self, call: Call) -> dict[str, Any] | None:
        if call.begin is None or call.begin is call.end:
            return None
        return self.request_facts(call.begin._raw(), call.begin._shelf)
