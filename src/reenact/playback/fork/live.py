"""The recording up to the cut, and what is live after it: models are called, tools act as they are allowed.

Who answers the calls of a fork. A request is looked at before it is recorded, because what is recorded is
what leaves: changed, if the fork changes it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from ...capture.replay_hook import Live
from ...capture.runs.location import parent_run
from ...errors import Diverged, Halted
from ...wire.routes import MODEL
from ..edits.edits import CutRequest, Edits, needs_signature
from ..matching.divergence import ADD_KEEP_GOING
from ..matching.frontier import CHANGED, Miss, Served, alike, same_site
from ..matching.player import Player
from ..matching.request import TOOL, Request
from ..matching.rules import REBASE
from ..matching.tape import RecordedCall, Tape
from ..replay import report
from ..replay.responder import TapeResponder, asked_by, mark, reply_of
from ..replay.tools import asked_of
from ..serve.replies import Reply, ToolReply
from .cut import ANSWERED, AROUND, AT_CUT, Cut
from .policy import CALLS, STEPS, USD, Acting, Caps

if TYPE_CHECKING:
    from ...capture.replay_hook import OutgoingRequest, ToolCall
    from ..matching.divergence import Divergence
    from ..matching.player import Player
    from ..matching.tape import RecordedCall
    from ..replay.guard import Guard
    from ..replay.plan import Plan
    from ..serve.replies import HttpCall, ServerReply, ServerRequest
    from .policy import Acting


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """How a run goes on after the cut; plain data, for the agent's processes (``Plan.fork``)."""

    call: str
    """The id of the call at the cut."""
    is_whole: bool = False
    """The cut is where the run begins, and nothing beside it is answered."""
    edits: dict[str, Any] = field(default_factory=dict)
    tools: str = "ask"
    """``ask``: by what each does to the world; ``recorded``: only what is recorded."""
    allowed: tuple[str, ...] = ()
    """Tools that may run whatever they do, or ``all``."""
    effects: dict[str, str] = field(default_factory=dict)
    """What tools do to the world, by the user's settings."""
    max_calls: int = CALLS
    max_usd: float = USD
    max_steps: int = STEPS
    tree: str | None = None
    """The state of the workspace at the cut."""


class ForkResponder(TapeResponder):
    """Answers up to the cut. ``opened`` is called when it is passed, ``acting`` decides on tools after it."""

    def __init__(
        self,
        player: Player,
        cut: Cut,
        edits: Edits,
        caps: Caps,
        acting: Acting,
        opened: Callable[[], None],
        **given: Any,
    ) -> None:
        super().__init__(player, **given)
        self._cut = cut
        self._edits = edits
        self._caps = caps
        self._acting = acting
        self._opened = opened
        self._lock = RLock()
        self._promised: Counter[str] = Counter()
        """How often requests were told to be answered, by their L1: what they asked for is nobody else's."""
        is_needed = bool(edits.sets) if cut.call.kind == TOOL else cut.is_whole and cut.call.kind == MODEL
        self._at_cut = CutRequest.at(cut.call, player.tape) if is_needed else None
        """Of a model call as the agent makes it now: the recorded one is redacted."""

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Return what leaves for a request at the cut or beyond it, None for one that is answered."""
        request = self._translated(asked_by(leaving))
        with self._lock:
            place = self._place_of(request)
            if place == ANSWERED:
                return None
            if place == AT_CUT:
                self._at_cut = CutRequest(leaving.request, leaving.url)
                self._pass()
                if self._edits.replaces_answer:
                    leaving.edited_reply, leaving.replayed = self._edited_answer(request), self._cut.call.id
                    return None
            return self._leaves(leaving)

    def reply(self, exchange: HttpCall) -> Reply:
        """Return what a call gets that does not leave."""
        return super().reply(exchange) if exchange.edited_reply is None else exchange.edited_reply

    async def reply_async(self, exchange: HttpCall) -> Reply:
        """Return the same, when this task may have it."""
        return await super().reply_async(exchange) if exchange.edited_reply is None else exchange.edited_reply

    def tool(self, asked: ToolCall) -> ToolReply | None:
        """Return what a tool gave, or is made to give; None if it is to run."""
        place, reply = self._tool_at(asked)
        return super().tool(asked) if place == ANSWERED else reply

    async def tool_async(self, asked: ToolCall) -> ToolReply | None:
        """Return the same, when this task may have it."""
        place, reply = self._tool_at(asked)
        return await super().tool_async(asked) if place == ANSWERED else reply

    def ambient(self, name: str, thread: str | None) -> Any:
        """Return what clock and chance gave before the cut, None for what they give now."""
        return None if self._cut.is_whole or self._cut.is_passed else super().ambient(name, thread)

    def running(self, asked: ToolCall) -> AbstractContextManager[None]:
        """Return what is to be held while a tool runs: it may do what the guard refuses others."""
        return self._acting.running(asked)

    def opens(self, url: str) -> bool:
        """Return whether a socket that is opened now leads to the real server: the run is live."""
        is_live = self._cut.is_whole or self._cut.is_passed
        if is_live:
            self._acting.open_to(url)
        return is_live

    def has_server(self, server: str, recorder: Any) -> bool:
        """Return whether it is recorded what an MCP server said; after the cut the real one is asked."""
        return not self._asks_servers(server) and super().has_server(server, recorder)

    def server_reply(self, asked: ServerRequest) -> ServerReply | None:
        """Return what an MCP server said to a request before the cut."""
        return None if self._asks_servers(asked.server) else super().server_reply(asked)

    def _asks_servers(self, server: str) -> bool:
        return (self._cut.is_whole or self._cut.is_passed) and self._acting.connect(server)

    def _place_of(self, request: Request) -> str:
        """Return where a request stands; one that is to be answered is as good as answered."""
        key = request.fingerprint.l1
        place = self._cut.place_of(request, self.player.frontier, self._promised[key])
        if place == ANSWERED:
            self._promised[key] += 1
        return place

    def _pass(self) -> None:
        """The cut is reached; what should have come before it must have come."""
        left_out = self._never_asked(self._cut.left_out(self.player.frontier))
        if left_out and self._mode == "strict":
            names = ", ".join(call.label() for call in left_out[:3])
            self._stop(Diverged(f"the call at the cut is made, but not what came before it: {names}"))
        self._cut.passes(self._at_cut if self._cut.call.kind == MODEL else None)
        self._note(report.Passed(self._cut.call.id))
        try:
            self._opened()
        except Halted as exc:  # the workspace is not what it was
            self._stop(exc)

    def _never_asked(self, calls: list[RecordedCall]) -> list[RecordedCall]:
        """Leave out those that are being made by others: told to be answered, and not answered yet."""
        being_made = self._promised.copy()
        for found in self.player.frontier.log:
            if isinstance(found, Served):
                being_made[found.call.fingerprint.l1] -= 1
        left = []
        for call in calls:
            being_made[call.fingerprint.l1] -= 1
            if being_made[call.fingerprint.l1] < 0:
                left.append(call)
        return left

    def _leaves(self, leaving: OutgoingRequest) -> Live:
        self.player.release.note_request()
        try:
            self._acting.reach(leaving)
            if leaving.sort == MODEL:
                self._caps.model()
            else:
                self._caps.step()
            self._note(report.Live(leaving.url, leaving.sort))
            return self._changed(leaving)
        except (Halted, Diverged) as exc:
            self._stop(exc)
        except Exception as exc:
            self._stop(Diverged(f"the request cannot be changed as asked: {type(exc).__name__}: {exc}"))
        raise AssertionError("not reached")

    def _changed(self, leaving: OutgoingRequest) -> Live:
        if leaving.sort != MODEL or not self._edits.changes_requests:
            return Live()
        self._at_cut = self._at_cut or self._cut.request()
        if self._at_cut is None:
            return Live()
        made = self._edits.request(leaving.request, leaving.url, self._at_cut)
        for note in made.notes:
            self._note(report.Edited(note))
        is_same = made.body == leaving.request and made.url == leaving.url
        if is_same:
            return Live()
        if needs_signature(leaving.headers):
            raise Halted("this request is signed, so it cannot be changed", hint="change the agent's code")
        body = json.dumps(made.body, ensure_ascii=False, separators=(",", ":")).encode()
        return Live(None if made.url == leaving.url else made.url, body)

    def _edited_answer(self, request: Request) -> Reply:
        """Return the answer that the user gave in the place of the one at the cut."""
        call = self._cut.call
        provider = call.event.provider if type(call.event.provider) is str else None
        return reply_of(self._edits.answer(call.answer, provider, request.url or "", call.is_stream))

    def _tool_at(self, asked: ToolCall) -> tuple[str, ToolReply | None]:
        """Return where a tool's call stands, and its reply if it is not the recording that gives it."""
        request: Request = self._translated(asked_of(asked))
        with self._lock:
            place = ANSWERED if asked.name in self._live else self._place_of(request)
            if place in (ANSWERED, AROUND):
                return place, None
            if place == AT_CUT:
                self._pass()
                if self._edits.replaces_tool_result:
                    mark(asked, self._cut.call.id)
                    answer = self._edits.tool_answer(self._cut.call.answer)
                    return place, self._result(asked, self._cut.call.id, answer)
        self.player.release.note_request()
        try:
            self._caps.step()
            recorded = self._acting.decide(asked, request)
        except (Halted, Diverged) as exc:
            self._stop(exc)
        return place, None if recorded is None else self._given(recorded, asked)

    def _given(self, call: RecordedCall, asked: ToolCall) -> ToolReply:
        self.given += 1
        mark(asked, call.id)
        return self._result(asked, call.id, call.answer)

    def _explained(self, found: Miss) -> Divergence:
        """Return the report of a miss; before the cut it may be the call at the cut, changed."""
        call, request = self._cut.call, found.request
        if self._cut.is_passed or call.kind != request.kind or not same_site(call, request):
            return self._elsewhere(found)
        likeness = alike(call.request, request)[0]
        if found.nearest is not None and found.likeness >= likeness:
            return self._elsewhere(found)
        told = super()._explained(found._replace(code=CHANGED, nearest=call, likeness=likeness))
        return replace(told, next=("add --rebase   # go live at this call all the same",))

    def _elsewhere(self, found: Miss) -> Divergence:
        """Return the report of a miss away from the cut, with the flags that ``reenact fork`` has."""
        found_here = super()._explained(found)
        return replace(found_here, next=tuple(each for each in found_here.next if each != ADD_KEEP_GOING))

    def _stop(self, exc: BaseException) -> None:
        """Tell why the fork ends, and end it."""
        self._note(report.Halted(str(exc), getattr(exc, "hint", None)))
        raise exc


# Puts together who answers the calls of a fork, from its plan.


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
