"""The only place where model calls are priced, so that all commands and reports agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from ..recording.calls import MODEL, Call
from ..tracefile.events.event import Event
from ..tracefile.events.event_source import MAX_LINKS, Shelf
from ..tracefile.events.rebuilt_requests import is_delta
from ..wire import reading
from ..wire.json_values import string
from .prices import LISTED, Bill, Book, Price

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
        return Book.open()  # takes a while, and a run without model calls needs none

    def request_facts(self, fields: dict[str, Any], shelf: Shelf, links: int = MAX_LINKS) -> dict[str, Any]:
        """Return what of a request decides the price of its call: its provider, address and model."""
        model = shelf.requested_model(fields, self._models, links=links)
        call, models = fields.get("call"), self._models
        if type(call) is str and (links or model is not None):
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
        return self.model(call.end.stored_fields if call.end is not None else {}, self._request(call))

    def bill(self, calls: Iterable[Call]) -> Bill:
        """Return the sum over the model calls that ended."""
        bill = self.book.bill()
        for call in calls:
            if call.kind == MODEL and call.end is not None:
                bill.add(self._price(call, call.end))
        return bill

    def _price(self, call: Call, end: Event) -> Price:
        ended, request = end.stored_fields, self._request(call)
        price = self.price(ended, request)
        is_sure = price.usd is not None and (price.source != LISTED or not self.book.has_own)
        if is_sure or call.error is not None or request is None or request["model"] is not None:
            return price
        return self.price(ended, self._request(call, is_thorough=True))

    def _request(self, call: Call, *, is_thorough: bool = False) -> dict[str, Any] | None:
        """Return the facts of a call's request; a large file is gone through only if that is needed."""
        request = call.begin
        if request is None or request is call.end:
            return None
        fields, shelf = request.stored_fields, request.stored_in
        if is_thorough:
            return self.request_facts({**fields, "body": request.stored_body}, shelf)
        is_near = not is_delta(fields) or not shelf.is_large(request.stored_at)
        return self.request_facts(fields, shelf, MAX_LINKS if is_near else 0)
