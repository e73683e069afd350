"""Tokens and money up to an event, summed as far as one has been and no further."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import schema
from ..summary import Totals
from ..tracefile.recording import Recording
from .heads import base_kind, links_of
from .watches import Progress

if TYPE_CHECKING:
    from ..prices import Bill, Book

_MODEL = frozenset((schema.MODEL_REQUEST, schema.MODEL_RESPONSE, schema.LLM_CALL))


class Spent(NamedTuple):
    """What the model calls that had ended by then took."""

    totals: Totals
    """Of model calls only."""
    bill: Bill


class Spending:
    """Sums of one recording; going back begins anew."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._book: Book | None = None
        self._begin()

    def _begin(self) -> None:
        from ..prices import Bill

        self._upto = 0
        self._open: dict[str, dict[str, Any]] = {}
        self._totals, self._bill = Totals(), Bill()

    def through(self, index: int, progress: Progress) -> Spent:
        """Return the sums of all events up to one, itself included."""
        if self._upto > index + 1:
            self._begin()
        for at in range(self._upto, index + 1):
            progress(at, index)
            event = self.recording.events[at]
            kind = base_kind(event)
            if kind in _MODEL:
                self._add(kind, event._raw(), links_of(event).get("call"))
        self._upto = max(self._upto, index + 1)
        return Spent(self._totals, self._bill)

    def _add(self, kind: str, fields: dict[str, Any], call: object) -> None:
        self._totals.add(kind, fields)
        if kind == schema.MODEL_REQUEST:
            if type(call) is str:
                self._open[call] = {key: value for key, value in fields.items() if key != "body"} | {
                    "body": _model_only(fields.get("body"))
                }
            return
        if self._book is None:
            from ..prices import Book

            self._book = Book.open()
        request = self._open.pop(call, None) if type(call) is str else None
        self._bill.add(self._book.price(fields, request))


def _model_only(body: Any) -> dict[str, Any]:
    """Keep of a request what its price depends on, not the conversation."""
    if type(body) is not dict:
        return {}
    return {key: value for key, value in body.items() if key not in (*schema.LISTS, "tools", "system")}
