"""The processes of one execution: what each may be answered, and what none of them has asked for."""

from __future__ import annotations

from collections.abc import Container

from ...tracefile.recording import Recording
from ..replay.later import claims_of
from ..replay.servers_then import server_processes
from .claims import Claims
from .divergence import Divergence, never_made
from .frontier import Frontier
from .sharing import Origins, Shared
from .tape import RecordedCall, Tape


def calls_of(tape: Tape, *, is_first: bool, live: Container[str]) -> list[RecordedCall]:
    """Return the calls that the first process may make, or else those that all others may."""
    root = next(iter(tape.recording.writers), None)
    return [call for call in tape.calls if (call.process == root) == is_first and call.tool not in live]


def shared_by(tape: Tape, calls: list[RecordedCall], claims: Claims, *, is_first: bool) -> Shared:
    """Return what one process knows of the others."""
    root = next(iter(tape.recording.writers), None)
    return Shared(claims, calls, None if is_first else Origins(tape.recording), root)


def what_was_made(
    recording: Recording, scratch: str, live: Container[str], mode: str
) -> tuple[int, list[Divergence]]:
    """Return how many calls all processes together were given, and those that none of them has asked for."""
    claims, tape = claims_of(scratch), Tape(recording)
    absent = server_processes(recording)
    calls = [call for call in tape.calls if call.tool not in live and call.event.writer not in absent]
    frontier = Frontier(calls, mode=mode, inside=tape.inside, shared=Shared(claims, calls))
    missing = never_made(frontier, tape)
    return len(claims.calls), missing
