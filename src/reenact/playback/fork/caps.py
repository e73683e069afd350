"""How much a run that has gone live may spend: calls of models, steps of any kind, money."""

from __future__ import annotations

import os
from decimal import Decimal
from threading import Lock

from ...errors import Halted
from ...money.ledger import Ledger
from ...money.prices import Book
from ...tracefile.inside import with_inside
from ...tracefile.recording import Recording

CALLS, USD, STEPS = 50, 1.0, 200
"""Unless the user says otherwise."""


class Caps:
    """Counts what the processes of a run do live, in files of a folder they share, and stops them."""

    def __init__(self, calls: int, usd: float, steps: int, folder: str, path: str) -> None:
        self._folder = folder
        self._path = path
        """The run's own file."""
        self._most = {"calls": calls, "steps": steps}
        self._usd = Decimal(str(usd))
        self._lock = Lock()
        self._book: Book | None = None

    def model(self) -> None:
        """Another model call is about to leave."""
        with self._lock:
            calls = self._count("calls")
            self._check("calls", calls, "--max-calls")
            spent = self.spent() if calls > 1 else Decimal(0)
            if spent >= self._usd:
                raise Halted(
                    f"${spent:.4f} are spent, and ${self._usd} allowed", hint="--max-usd allows more"
                )
        self.step()

    def step(self) -> None:
        """Another call of any kind is about to be made live."""
        with self._lock:
            self._check("steps", self._count("steps"), "--max-steps")

    def _count(self, what: str) -> int:
        """Count one more, of all processes; by the length of a file, so that none has to be waited for."""
        file = os.open(
            os.path.join(self._folder, what), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(file, b".")
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def spent(self) -> Decimal:
        """Return what the answers so far cost, as they stand in the files of the run; unknown counts as 0."""
        if self._book is None:
            self._book = Book.open()
        return Ledger(self._book).bill(with_inside(Recording.load(self._path)).calls()).usd

    def _check(self, what: str, now: int, flag: str) -> None:
        most = self._most[what]
        if now > most:
            raise Halted(f"{most} live {what} were made, and no more are allowed", hint=f"{flag} allows more")
