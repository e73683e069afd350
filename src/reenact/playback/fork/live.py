"""The responder of a fork: recorded answers up to the cut, live models and allowed tools after it.

A request is edited before it is recorded, so the trace shows what is really sent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any

from ...capture.replay_hook import Live
from ...capture.runs.location import parent_run
from ...capture.workspace import restore
from ...errors import Diverged, Halted
from ...wire.routes import MODEL
from ..edits.cut_request import CutRequest
from ..edits.edits import Edits, needs_signature
from ..matching.divergence import ADD_KEEP_GOING
from ..matching.frontier import CHANGED, Miss, Served, alike, same_site
from ..matching.modes import REBASE
from ..matching.player import Player
from ..matching.request import TOOL, Request
from ..matching.tape import RecordedCall, Tape
from ..replay import report
from ..replay.responder import TapeResponder, http_request, mark, reply_of
from ..replay.tool_results import tool_request
from ..serve.replies import Reply, ToolReply
from .cut import ANSWERED, AROUND, AT_CUT, Cut
from .tool_policy import Caps, ToolPolicy

if TYPE_CHECKING:
    from ...capture.replay_hook import OutgoingRequest, ToolCall
    from ..matching.divergence import Divergence
    from ..replay.side_effect_guard import Guard
    from ..replay.start import Fork, Plan
    from ..serve.replies import HttpCall, ServerReply, ServerRequest


class ForkResponder(TapeResponder):
    """Answers up to the cut. ``opened`` is called at the cut, ``acting`` decides on tools after it."""

    def __init__(
        self,
        player: Player,
        cut: Cut,
        edits: Edits,
        caps: Caps,
        acting: ToolPolicy,
        opened: Callable[[], None],
        **options: Any,
    ) -> None:
        super().__init__(player, **options)
        self._cut = cut
        self._edits = edits
        self._caps = caps
        self._acting = acting
        self._opened = opened
        self._lock = RLock()
        self._promised: Counter[str] = Counter()
        """How many requests the recording will answer, by their L1: their calls are reserved."""
        is_needed = bool(edits.sets) if cut.call.kind == TOOL else cut.is_whole and cut.call.kind == MODEL
        self._at_cut = CutRequest.at(cut.call, player.tape) if is_needed else None
        """A model's request as the agent sends it now: the recorded one is redacted."""

    def live(self, leaving: OutgoingRequest) -> Live | None:
        """Return how a request at the cut or after it is sent, None if the recording answers it."""
        request = self._translated(http_request(leaving))
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
        """Return the reply for a call that is not sent."""
        return super().reply(exchange) if exchange.edited_reply is None else exchange.edited_reply

    async def reply_async(self, exchange: HttpCall) -> Reply:
        """Return the same; await until it is due."""
        return await super().reply_async(exchange) if exchange.edited_reply is None else exchange.edited_reply

    def tool(self, tool_call: ToolCall) -> ToolReply | None:
        """Return a tool's recorded or replaced result; None if it runs."""
        place, reply = self._tool_at(tool_call)
        return super().tool(tool_call) if place == ANSWERED else reply

    async def tool_async(self, tool_call: ToolCall) -> ToolReply | None:
        """Return the same; await until it is due."""
        place, reply = self._tool_at(tool_call)
        return await super().tool_async(tool_call) if place == ANSWERED else reply

    def ambient(self, name: str, thread: str | None) -> Any:
        """Return the recorded time or random value before the cut, None after it."""
        return None if self._cut.is_whole or self._cut.is_passed else super().ambient(name, thread)

    def running(self, tool_call: ToolCall) -> AbstractContextManager[None]:
        """Return a context for a tool that runs: inside, the guard lets it act."""
        return self._acting.running(tool_call)

    def opens(self, url: str) -> bool:
        """Return whether a new socket connects to the real server: it does in a live run."""
        is_live = self._cut.is_whole or self._cut.is_passed
        if is_live:
            self._acting.open_to(url)
        return is_live

    def has_server(self, server: str, recorder: Any) -> bool:
        """Return whether an MCP server's replies are recorded; after the cut the real server replies."""
        return not self._uses_real_server(server) and super().has_server(server, recorder)

    def server_reply(self, tool_call: ServerRequest) -> ServerReply | None:
        """Return the recorded reply of an MCP server before the cut."""
        return None if self._uses_real_server(tool_call.server) else super().server_reply(tool_call)

    def _uses_real_server(self, server: str) -> bool:
        return (self._cut.is_whole or self._cut.is_passed) and self._acting.connect(server)

    def _place_of(self, request: Request) -> str:
        """Return the place of a request; reserve its recorded call if it is answered."""
        key = request.fingerprint.l1
        place = self._cut.place_of(request, self.player.frontier, self._promised[key])
        if place == ANSWERED:
            self._promised[key] += 1
        return place

    def _pass(self) -> None:
        """Pass the cut; stop if calls that should have come before it are missing."""
        left_out = self._without_pending(self._cut.left_out(self.player.frontier))
        if left_out and self._mode == "strict":
            names = ", ".join(call.label() for call in left_out[:3])
            self._stop(Diverged(f"the run reached the cut, but these calls before it are missing: {names}"))
        self._cut.mark_passed(self._at_cut if self._cut.call.kind == MODEL else None)
        self._note(report.Passed(self._cut.call.id))
        try:
            self._opened()
        except Halted as exc:  # the workspace could not be restored
            self._stop(exc)

    def _without_pending(self, calls: list[RecordedCall]) -> list[RecordedCall]:
        """Return the calls without those that have been requested but not answered yet."""
        pending = self._promised.copy()
        for found in self.player.frontier.log:
            if isinstance(found, Served):
                pending[found.call.fingerprint.l1] -= 1
        left = []
        for call in calls:
            pending[call.fingerprint.l1] -= 1
            if pending[call.fingerprint.l1] < 0:
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
            self._stop(Diverged(f"the request cannot be edited: {type(exc).__name__}: {exc}"))
        raise AssertionError("not reached")

    def _changed(self, leaving: OutgoingRequest) -> Live:
        if leaving.sort != MODEL or not self._edits.changes_requests:
            return Live()
        self._at_cut = self._at_cut or self._cut.request()
        if self._at_cut is None:
            return Live()
        edited = self._edits.request(leaving.request, leaving.url, self._at_cut)
        for note in edited.notes:
            self._note(report.Edited(note))
        is_same = edited.body == leaving.request and edited.url == leaving.url
        if is_same:
            return Live()
        if needs_signature(leaving.headers):
            raise Halted("this request is signed, so it cannot be changed", hint="change the agent's code")
        body = json.dumps(edited.body, ensure_ascii=False, separators=(",", ":")).encode()
        return Live(None if edited.url == leaving.url else edited.url, body)

    def _edited_answer(self, request: Request) -> Reply:
        """Return the user's answer for the call at the cut."""
        call = self._cut.call
        return reply_of(self._edits.answer(call.answer, call.provider, request.url or "", call.is_stream))

    def _tool_at(self, tool_call: ToolCall) -> tuple[str, ToolReply | None]:
        """Return the place of a tool call, and its reply unless the recording answers it."""
        request: Request = self._translated(tool_request(tool_call))
        with self._lock:
            place = ANSWERED if tool_call.name in self._live else self._place_of(request)
            if place in (ANSWERED, AROUND):
                return place, None
            if place == AT_CUT:
                self._pass()
                if self._edits.replaces_tool_result:
                    mark(tool_call, self._cut.call.id)
                    answer = self._edits.tool_answer(self._cut.call.answer)
                    return place, self._result(tool_call, self._cut.call.id, answer)
        self.player.release.note_request()
        try:
            self._caps.step()
            recorded = self._acting.decide(tool_call, request)
        except (Halted, Diverged) as exc:
            self._stop(exc)
        return place, None if recorded is None else self._recorded_result(recorded, tool_call)

    def _recorded_result(self, call: RecordedCall, tool_call: ToolCall) -> ToolReply:
        self.answered += 1
        mark(tool_call, call.id)
        return self._result(tool_call, call.id, call.answer)

    def _explained(self, found: Miss) -> Divergence:
        """Return the report of a miss; before the cut it may be a changed request at the cut."""
        call, request = self._cut.call, found.request
        if self._cut.is_passed or call.kind != request.kind or not same_site(call, request):
            return self._elsewhere(found)
        likeness = alike(call.request, request)[0]
        if found.nearest is not None and found.likeness >= likeness:
            return self._elsewhere(found)
        divergence = super()._explained(found._replace(code=CHANGED, nearest=call, likeness=likeness))
        return replace(divergence, next=("add --rebase   # go live at this call anyway",))

    def _elsewhere(self, found: Miss) -> Divergence:
        """Return the report of a miss away from the cut, with flags of ``reenact fork`` only."""
        divergence = super()._explained(found)
        return replace(divergence, next=tuple(each for each in divergence.next if each != ADD_KEEP_GOING))

    def _stop(self, exc: BaseException) -> None:
        """Report why the fork ends, and end it."""
        self._note(report.Halted(str(exc), getattr(exc, "hint", None)))
        raise exc


def cut_of(plan: Plan, fork: Fork, tape: Tape) -> Cut:
    """Return the cut of a fork."""
    call = tape.call(fork.call)
    if call is None:
        raise Diverged(f"call {fork.call}, the cut of this fork, is not in the recording")
    return Cut(tape, call, plan.mark, is_rebased=plan.mode == REBASE, is_whole=fork.is_whole)


def fork_responder(
    plan: Plan, fork: Fork, cut: Cut, player: Player, guard: Guard, **options: Any
) -> ForkResponder:
    """Return the responder for one process of a fork."""

    def opened() -> None:
        if fork.tree is not None:
            restore(fork.tree)

    policy = ToolPolicy(
        player.tape, cut.call, policy=fork.tools, allowed=fork.allowed, effects=fork.effects, guard=guard,
        note=options["note"],
    )  # fmt: skip
    caps = Caps(fork.max_calls, fork.max_usd, fork.max_steps, plan.scratch, parent_run()[2] + ".jsonl")
    return ForkResponder(player, cut, Edits.from_json(fork.edits), caps, policy, opened, **options)
