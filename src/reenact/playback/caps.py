"""How much a run that has gone live may spend: calls of models, steps of any kind, money."""

from __future__ import annotations

from decimal import Decimal
from threading import Lock
from typing import Any

from ..errors import Halted
from ..prices import Book
from ..tracefile.calls import MODEL
from ..tracefile.recording import Recording

CALLS, USD, STEPS = 50, 1.0, 200
"""Unless the user says otherwise."""


class Caps:
    """Counts what a process does live, and stops it."""

    def __init__(self, calls: int, usd: float, steps: int) -> None:
        self._most = {"calls": calls, "steps": steps}
        self._usd = Decimal(str(usd))
        self._lock = Lock()
        self._book: Book | None = None
        self.calls = 0
        self.steps = 0

    def model(self, recorder: Any) -> None:
        """Another model call is about to leave."""
        with self._lock:
            self.calls += 1
            self._check("calls", self.calls, "--max-calls")
            spent = self.spent(recorder) if self.calls > 1 else Decimal(0)
            if spent >= self._usd:
                raise Halted(
                    f"${spent:.4f} are spent, and ${self._usd} allowed", hint="--max-usd allows more"
                )
        self.step()

    def step(self) -> None:
        """Another call of any kind is about to be made live."""
        with self._lock:
            self.steps += 1
            self._check("steps", self.steps, "--max-steps")

    def spent(self, recorder: Any) -> Decimal:
        """Return what the answers so far cost, as they stand in the run's own file; unknown counts as 0."""
        if self._book is None:
            self._book = Book.open()
        book, bill = self._book, self._book.bill()
        for call in Recording.load(recorder.path, recorder.run_id).calls():
            if call.kind == MODEL and call.end is not None and call.begin is not None:
                bill.add(book.price(call.end._whole(), call.begin._whole()))
        return bill.usd

    def _check(self, what: str, now: int, flag: str) -> None:
        most = self._most[what]
        if now > most:
            raise Halted(f"{most} live {what} were made, and no more are allowed", hint=f"{flag} allows more")
