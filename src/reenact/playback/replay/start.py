"""Starts a replay inside the agent's processes: installs the responder and the guard.

``reenact replay`` starts the agent with a plan; the first process of the run uses the calls of the first
recorded process, all others share the rest.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ...capture import replay_hook
from ...capture.calls.error_fields import is_agents
from ...capture.runs.location import how_started
from ...errors import Diverged, Halted
from ..matching.equality_rules import KEEP_GOING, RECORD_MISSING
from .deferred import LazyResponder, claims_of
from .plan import Plan
from .report import Began, Report
from .side_effect_guard import Guard

# The traceback of a run that diverges shows only the agent's frames.
#
# The place in the agent's code matters; the frames of its SDK and of reenact would hide the report that
# follows.


def shorten() -> None:
    """Print Diverged and Halted with only the agent's part of the traceback from now on."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], exc: BaseException, tb: TracebackType | None) -> None:
        if isinstance(exc, Diverged | Halted):
            tb = agent_traceback(tb)
            exc = exc.with_traceback(tb)
        previous(kind, exc, tb)

    sys.excepthook = hook


def agent_traceback(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the agent's outermost frame to its innermost; all of it if there is none."""
    first = last = None
    each = tb
    while each is not None:
        if is_agents(each.tb_frame.f_code.co_filename):
            first, last = first or each, each
        each = each.tb_next
    if last is None:
        return tb
    last.tb_next = None
    return first


def begin_here() -> None:
    """Answer every call of this process from the recording of its plan, and block all others."""
    from ...capture.runs import location
    from ...capture.runs.location import is_begun_for_us, parent_run

    plan = Plan.here()
    location.replaying = True
    shorten()
    stem = parent_run()[2]
    report = Report(plan.report)
    guard = Guard(
        [plan.scratch, *plan.open, *([os.path.dirname(stem)] if stem else [])],
        is_relaxed=plan.relaxed,
        report=report.note,
        models=() if plan.fork else plan.models,
        servers=os.path.join(plan.scratch, "servers") if plan.fork else None,
        is_free=_may_serve(plan) if plan.fork else None,
    )
    if is_begun_for_us(f"{stem}.jsonl"):
        _answer(plan, guard, is_first=True)
    else:
        prepare_later_answers(plan, guard, is_forked=False)
    os.register_at_fork(after_in_child=lambda: prepare_later_answers(plan, guard, is_forked=True))
    report.note(Began(os.getpid()))
    if plan.guarded:
        guard.begin()


def _may_serve(plan: Plan) -> Callable[[], bool] | None:
    """Return a check whether this process, if it is an MCP server, may act: the run is live."""
    from . import live_servers

    return (
        (lambda: os.path.exists(plan.mark))
        if live_servers.is_one(os.path.join(plan.scratch, "servers"))
        else None
    )


def _answer(plan: Plan, guard: Guard, *, is_first: bool) -> None:
    from ...recording.recording import Recording
    from ...recording.runs_inside import Inner, with_inside
    from ..matching.player import Player
    from ..matching.processes import calls_of, shared_by
    from ..matching.tape import Tape
    from .responder import TapeResponder

    alone = Recording.load(plan.path, plan.run, blobs=plan.blobs)
    tape = Tape(with_inside(alone, [Inner(*each) for each in plan.inside]))
    calls = calls_of(tape, is_first=is_first, live=plan.live)
    report = Report(plan.report, process=None if is_first else _process_name())
    listeners: dict[str, Any] = {"on_divergence": report.diverged, "note": report.note}
    cut = None
    if plan.fork:
        from ..fork.live import cut_of, fork_responder

        cut = cut_of(plan, tape)
        kept = {call.number for call in cut.kept}
        calls = [call for call in calls if call.number in kept]
    shared = shared_by(tape, calls, claims_of(plan.scratch), is_first=is_first)
    if cut is not None:
        replay_hook.responder = fork_responder(plan, cut, tape, calls, guard, shared, **listeners)
        return
    if plan.mode == RECORD_MISSING:
        from .modes import RecordMissing

        player = Player(tape, calls=calls, mode=KEEP_GOING, shared=shared)
        replay_hook.responder = RecordMissing(player, mode=KEEP_GOING, live=plan.live, **listeners)
        return
    player = Player(tape, calls=calls, mode=plan.mode, shared=shared)
    replay_hook.responder = TapeResponder(player, mode=plan.mode, live=plan.live, **listeners)


def prepare_later_answers(plan: Plan, guard: Guard, *, is_forked: bool) -> None:
    """Answer a further process from its first call on; a forked one uses nothing of its parent."""
    claims_of(plan.scratch).here(is_forked=is_forked)
    replay_hook.responder = LazyResponder(lambda: _answer(plan, guard, is_first=False))


def _process_name() -> str:
    """Return the name of this process among its siblings, or its command."""
    started = how_started()
    return str(started.get("process") or " ".join(started["command"][1:]))
