"""Starts a replay inside the agent's processes: installs the responder and the guard.

``reenact replay`` starts the agent with a plan; the first process of the run uses the calls of the first
recorded process, all others share the rest.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from threading import Lock
from types import TracebackType
from typing import Any

from ...capture import replay_hook
from ...capture.calls.error_fields import is_agents
from ...capture.runs import location
from ...capture.runs.location import how_started, is_begun_for_us, parent_run
from ...errors import Diverged, Halted
from ..matching.modes import KEEP_GOING, RECORD_MISSING, STRICT
from ..matching.processes import Claims
from ..serve import adapter, prepare
from .report import Began, Report
from .side_effect_guard import Guard, Listening, is_live_server

# The plan of a replay, passed to the agent's processes as JSON in an environment variable.

VARIABLE = "REENACT_REPLAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """How a run continues after the cut; plain data for the agent's processes."""

    call: str
    """The id of the call at the cut."""
    is_whole: bool = False
    """The cut is at the beginning of the run: nothing is answered."""
    edits: dict[str, Any] = field(default_factory=dict)
    tools: str = "ask"
    """``ask``: decide by each tool's effect; ``recorded``: recorded results only."""
    allowed: tuple[str, ...] = ()
    """Tools that may run whatever their effect, or ``all``."""
    effects: dict[str, str] = field(default_factory=dict)
    """The effects of tools from the user's settings."""
    max_calls: int
    max_usd: float
    max_steps: int
    tree: str | None = None
    """The state of the workspace at the cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A recording, and how to replay it."""

    path: str
    """The trace file."""
    run: str
    report: str
    """The file that the agent's processes write their report to (``Report``)."""
    scratch: str
    """The folder that the agent may write to."""
    mode: str = STRICT
    live: tuple[str, ...] = ()
    """Tools that run instead of being answered."""
    relaxed: bool = False
    """True if the agent may change files and start programs."""
    guarded: bool = True
    """False if it may also open connections."""
    open: tuple[str, ...] = ()
    """Further folders that the agent may write to."""
    models: tuple[int, ...] = ()
    """Ports of this machine at which the recorded model listened (``Guard``)."""
    others: Listening | None = None
    """Servers of this machine that must not be reached."""
    blobs: str | None = None
    """A further folder with blobs."""
    inside: tuple[tuple[str, str], ...] = ()
    """Files and ids of the runs inside it."""
    code_folder: str | None = None
    """The user's folder that a recorded function is imported from."""
    fork: Fork | None = None

    @property
    def mark(self) -> str:
        """The file that exists once a fork has passed its cut."""
        return os.path.join(self.scratch, "passed")

    @property
    def servers(self) -> str | None:
        """The file that lists the MCP servers that a fork starts."""
        return os.path.join(self.scratch, "servers") if self.fork else None

    def text(self) -> str:
        """Return it as the variable's value."""
        return json.dumps(asdict(self))

    @classmethod
    def here(cls) -> Plan:
        """Return the plan of this process."""
        fields = json.loads(os.environ[VARIABLE])
        fork = fields["fork"] and Fork(**fields["fork"])
        others = fields["others"] and Listening(**fields["others"])
        return cls(**{**fields, "live": tuple(fields["live"]), "fork": fork, "others": others})


class LazyResponder:
    """Stands for a responder that is created at the first call: many processes of a replay never make one."""

    def __init__(self, make: Callable[[], None]) -> None:
        self._make = make
        """Installs the real responder."""
        self._lock = Lock()

    def adapter(self, library: str) -> Any:
        """Return the module that builds responses for a library; needs no responder."""
        return adapter(library)

    def prepare(self, library: str, module: Any, watch: Any) -> Callable[[], None] | None:
        """Connect a module to the recording; return a function that undoes it."""
        return prepare(library, module, watch)

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if replay_hook.responder is self:
                self._make()
        return getattr(replay_hook.responder, name)


def begin_here() -> None:
    """Answer every call of this process from the recording of its plan, and block all others."""
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
        others=plan.others,
        servers=plan.servers,
        is_free=(lambda: os.path.exists(plan.mark)) if is_live_server(plan.servers) else None,
    )
    if is_begun_for_us(f"{stem}.jsonl"):
        _answer(plan, guard, is_first=True)
    else:
        prepare_later_answers(plan, guard, is_forked=False)
    os.register_at_fork(after_in_child=lambda: prepare_later_answers(plan, guard, is_forked=True))
    report.note(Began(os.getpid()))
    if plan.guarded:
        guard.begin()


def _answer(plan: Plan, guard: Guard, *, is_first: bool) -> None:
    from ...recording.recording import Recording
    from ...recording.runs_inside import Inner, with_inside
    from ..matching.player import Player
    from ..matching.processes import calls_of, shared_by
    from ..matching.tape import Tape
    from .responder import RecordMissing, TapeResponder

    alone = Recording.load(plan.path, plan.run, blobs=plan.blobs)
    tape = Tape(with_inside(alone, [Inner(*each) for each in plan.inside]))
    calls = calls_of(tape, is_first=is_first, live=plan.live)
    cut = None
    if plan.fork is not None:
        from ..fork.live import cut_of, fork_responder

        cut = cut_of(plan, plan.fork, tape)
        kept = {call.number for call in cut.kept}
        calls = [call for call in calls if call.number in kept]
    shared = shared_by(tape, calls, Claims(plan.scratch), is_first=is_first)
    mode = KEEP_GOING if plan.mode == RECORD_MISSING else plan.mode
    player = Player(tape, calls=calls, mode=mode, shared=shared)
    report = Report(plan.report, process=None if is_first else _process_name())
    options: dict[str, Any] = {
        "live": plan.live, "on_divergence": report.diverged, "note": report.note,
    }  # fmt: skip
    if plan.fork is not None and cut is not None:
        replay_hook.responder = fork_responder(plan, plan.fork, cut, player, guard, **options)
    else:
        kind = RecordMissing if plan.mode == RECORD_MISSING else TapeResponder
        replay_hook.responder = kind(player, **options)


def prepare_later_answers(plan: Plan, guard: Guard, *, is_forked: bool) -> None:
    """Answer a further process from its first call on; a forked one uses nothing of its parent."""
    Claims(plan.scratch).here(is_forked=is_forked)
    replay_hook.responder = LazyResponder(lambda: _answer(plan, guard, is_first=False))


def _process_name() -> str:
    """Return the name of this process among its siblings, or its command."""
    started = how_started()
    return str(started.get("process") or " ".join(started["command"][1:]))


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
