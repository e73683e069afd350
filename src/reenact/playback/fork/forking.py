"""Puts together who answers the calls of a fork, from its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...capture.places import parent_run
from ...errors import Diverged
from ..edits.edits import Edits
from ..matching.modes import REBASE
from ..matching.player import Player
from ..matching.tape import RecordedCall, Tape
from .acting import Acting
from .caps import Caps
from .cut import Cut
from .going_live import Fork, ForkResponder

if TYPE_CHECKING:
    from ..replay.guard import Guard
    from ..replay.plan import Plan


def cut_of(plan: Plan, tape: Tape) -> Cut:
    """Return where a plan's run goes live."""
    fork = Fork(**plan.fork)
    call = tape.call(fork.call)
    if call is None:
        raise Diverged(f"call {fork.call}, at which the run was to go live, is not in the recording")
    return Cut(
        tape,
        call,
        plan.mark,
        is_rebased=plan.mode == REBASE,
        is_whole=fork.is_whole,
    )


def fork_responder(
    plan: Plan, cut: Cut, tape: Tape, calls: list[RecordedCall], guard: Guard, shared: Any, **given: Any
) -> ForkResponder:
    """Return who answers one process of a fork; ``calls`` are those that the recording may answer it."""
    fork = Fork(**plan.fork)

    def opened() -> None:
        if fork.tree is not None:
            from ...capture.workspace import restore

            restore(fork.tree)

    acting = Acting(
        tape, cut.call, policy=fork.tools, allowed=fork.allowed, effects=fork.effects, guard=guard
    )
    return ForkResponder(
        Player(tape, calls=calls, mode=plan.mode, shared=shared),
        cut,
        Edits.from_json(fork.edits),
        Caps(fork.max_calls, fork.max_usd, fork.max_steps, plan.scratch, parent_run()[2] + ".jsonl"),
        acting,
        opened,
        mode=plan.mode,
        live=plan.live,
        **given,
    )
