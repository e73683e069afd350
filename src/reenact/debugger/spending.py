"""Tokens and money of the model calls up to an event, summed as far as one has been and no further."""

from __future__ import annotations

from .. import schema
from ..money.prices import Book
from ..recording.recording import Recording
from ..stats.rows import RunStats
from ..stats.sums import Gatherer
from ..tracefile.line_heads import base_kind
from .breakpoints import Progress

_MODEL = frozenset((schema.MODEL_REQUEST, schema.MODEL_RESPONSE, schema.LLM_CALL))


class Spending:
    """Sums of one recording; going back begins anew."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._book = Book.open()
        self._begin()

    def _begin(self) -> None:
        self._upto = 0
        self._sums = Gatherer(self.recording.path, self.recording.run_id, self._book)

    def through(self, index: int, progress: Progress) -> RunStats:
        """Return the figures of the model calls in all events up to one, itself included."""
        if self._upto > index + 1:
            self._begin()
        for at in range(self._upto, index + 1):
            progress(at, index)
            event = self.recording.events[at]
            if base_kind(event) in _MODEL:
                self._sums.take(event)
        self._upto = max(self._upto, index + 1)
        return self._sums.row
