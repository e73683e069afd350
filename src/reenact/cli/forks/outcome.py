"""What became of a fork, for a person and for programs."""

from __future__ import annotations

import os
import re
from typing import Any

from ...money.ledger import Ledger
from ...money.prices import Bill
from ...playback.fork.send_request import key_variables
from ...recording.calls import MODEL
from ...recording.recording import Recording
from ...recording.runs_inside import with_inside
from ...schema import ERROR
from ...supervise.supervisor import Supervised
from ...tracefile.text import compact, count
from ...wire.routes import host_of
from ..rerun.report import Outcome
from ..view.totals import tokens

# Why a fork failed where it went live: no key, a key that is refused, nobody at the other end.

_WANTS_KEY = re.compile(r"api[ _-]?key|authenticat|credential|key inputs", re.IGNORECASE)
_REFUSED = (401, 403)


def why_failed(recording: Recording, provider: object) -> str | None:
    """Return a hint on why a run failed, None if it is not about reaching the model."""
    live = [call for call in recording.calls() if call.kind == MODEL and not _is_replayed(call)]
    ends = [call.end.whole_fields for call in live if call.end is not None]
    if any(type(end.get("status")) is int and end["status"] < 400 for end in ends):
        return None
    variables = " or ".join(key_variables(provider)) or "its key"
    if not live:
        is_set = any(os.environ.get(name) for name in key_variables(provider))
        needs = "so it needs a key" if is_set else f"and {variables} is not set"
        return f"a fork calls the model, {needs}" if _lacks_key(recording, provider) else None
    statuses = [end.get("status") for end in ends]
    host = host_of(live[-1].event.url or "") or "the provider"
    if any(status in _REFUSED for status in statuses):
        return f"{host} refuses the key: is {variables} the right one?"
    if statuses and all(status is None for status in statuses):
        return f"{host} does not answer: is it up, and reachable from here?"
    return None


def _lacks_key(recording: Recording, provider: object) -> bool:
    """True if it died for the lack of a key; before it did anything, it may have if there is none."""
    errors = _errors(recording)
    if errors or any(recording.calls()):
        return any(_WANTS_KEY.search(text) for text in errors)
    variables = key_variables(provider)
    return bool(variables) and not any(os.environ.get(name) for name in variables)


def unlike(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was told, each once: of calls side by side many end for the same reason."""
    found: list[dict[str, Any]] = []
    for each in told:
        if each not in found:
            found.append(each)
    return found


def _is_replayed(call: Any) -> bool:
    return call.end is not None and call.end.whole_fields.get("replayed") is not None


def _errors(recording: Recording) -> list[str]:
    return [str(event.error) for event in recording.events if event.kind == ERROR and event.error is not None]


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
