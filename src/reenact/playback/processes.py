"""The processes of one execution: what each may be answered, and what none of them has asked for."""

from __future__ import annotations

import os
from collections.abc import Callable, Container
from threading import Lock
from typing import Any

from .. import protocols
from ..tracefile.recording import Recording
from .claims import Claims
from .divergence import Divergence, never_made
from .frontier import Frontier
from .sharing import Origins, Shared
from .tape import RecordedCall, Tape


def claims_path(scratch: str) -> str:
    return os.path.join(scratch, "claims")


def claims_of(scratch: str) -> Claims:
    """Return the file in which the processes of an execution tell each other what they do."""
    return Claims(claims_path(scratch))


def calls_of(tape: Tape, *, is_first: bool, live: Container[str]) -> list[RecordedCall]:
    """Return the calls that the first process may make, or else those that all others may."""
    root = next(iter(tape.recording.writers), None)
    return [call for call in tape.calls if (call.writer == root) == is_first and call.tool not in live]


def shared_by(tape: Tape, calls: list[RecordedCall], claims: Claims, *, is_first: bool) -> Shared:
    """Return what one process knows of the others."""
    root = next(iter(tape.recording.writers), None)
    return Shared(claims, calls, None if is_first else Origins(tape.recording), root)


class Later:
    """Answers in the place of a responder that is made when needed: many processes ask nothing."""

    def __init__(self, make: Callable[[], None]) -> None:
        self._make = make
        """Puts the real one in its place."""
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if protocols.responder is self:
                self._make()
        return getattr(protocols.responder, name)


def what_was_made(recording: Recording, scratch: str, live: Container[str]) -> tuple[int, list[Divergence]]:
    """Return how many calls all processes together were given, and those that none of them has asked for."""
    claims, tape = claims_of(scratch), Tape(recording)
    calls = [call for call in tape.calls if call.tool not in live]
    frontier = Frontier(calls, inside=tape.inside, shared=Shared(claims, calls))
    missing = never_made(frontier, tape)
    return len(claims.calls), missing
