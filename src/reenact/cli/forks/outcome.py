"""What became of a fork, for a person and for programs."""

from __future__ import annotations

import os
from typing import Any

from ...capture.supervise import Supervised
from ...money.ledger import Ledger
from ...money.prices import Bill
from ...tracefile.calls import MODEL
from ...tracefile.inside import with_inside
from ...tracefile.recording import Recording
from ..replayed import Outcome
from ..text import compact, count
from ..turns.facts import tokens
from .failing import unlike, why_failed

_ALLOWING = (
    "what changes something goes into a tool: @tap.tool(effect=…), which --live-tools NAME allows to run"
)


class Spent:
    """What the live calls of a run took."""

    def __init__(self, recording: Recording) -> None:
        live = [
            call
            for call in recording.calls()
            if call.kind == MODEL
            and call.begin is not None
            and (call.end is None or call.end.replayed is None)
        ]
        self.calls = len(live)
        totals = tokens(live)
        self.tokens_in, self.tokens_out = totals.tokens_in, totals.tokens_out
        self.bill: Bill = Ledger().bill(live)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        tokens = {"in": self.tokens_in, "out": self.tokens_out}
        return {"calls": self.calls, "tokens": tokens, "cost": self.bill.as_dict()}

    def text(self) -> str:
        """Return it in a few words."""
        tokens = f"{compact(self.tokens_in + self.tokens_out)} tokens"
        return f"{count(self.calls, 'live call')}, {tokens}, cost {self.bill.text()}"


class ForkOutcome:
    """The report of a fork, from the lines its processes wrote and from its own file."""

    def __init__(
        self, outcome: Outcome, agent: Supervised, told: dict[str, Any], provider: str | None
    ) -> None:
        self._outcome = outcome
        self._agent = agent
        self._told = told
        self.is_passed = bool(outcome.all("passed"))
        self.halted: list[dict[str, Any]] = unlike(outcome.all("halted"))
        self.spent: Spent | None = None
        self.hint: str | None = None
        if os.path.exists(agent.path):
            recording = with_inside(Recording.load(agent.path, agent.run_id))
            self.spent = Spent(recording)
            is_told = self.halted or outcome.all("diverged")
            self.hint = why_failed(recording, provider) if agent.exit and not is_told else None

    @property
    def is_stopped(self) -> bool:
        """True if it was kept from something, whatever the agent made of that."""
        return bool(self.halted) or self._outcome.is_refused

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        agent = self._agent
        return {
            **self._outcome.as_dict(),
            "run": agent.run_id,
            "path": agent.path,
            "fork": self._told,
            "passed": self.is_passed,
            "halted": self.halted,
            "hint": self.hint,
            "notes": self._outcome.all("edit"),
            "live": self.spent.as_dict() if self.spent is not None else None,
            "status": agent.status,
            "exit": agent.exit,
        }

    def lines(self) -> list[str]:
        """Return it for a person, the verdict last."""
        lines = self._outcome.details()
        lines += [f"reenact: {note}" for note in dict.fromkeys(self._outcome.all("edit"))]
        for each in self.halted:
            lines.append(f"reenact: stopped: {each['why']}")
            lines += [f"hint: {each['hint']}"] if each.get("hint") else []
        if self._outcome.is_refused and not self.halted:
            lines.append(f"hint: {_ALLOWING}")
        lines += [f"hint: {self.hint}"] if self.hint else []
        return [*lines, f"reenact: {self._verdict()}"]

    def _verdict(self) -> str:
        given = count(self._outcome.answered, "call")
        if not self.is_passed:
            return f"the call at the cut was never made; {given} answered, nothing live"
        spent = f", {self.spent.text()}" if self.spent is not None else ""
        path = os.path.relpath(self._agent.path)
        status = "stopped" if self.is_stopped else self._agent.status
        return f"{path}  {status}, {given} answered{spent}, world: {self._told['world']}"
