"""Limits of a live run: which tools may run after the cut, and how much it may spend.

Tools that are pure or only read run; others need the user's permission, or they do not run.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from contextlib import contextmanager
from decimal import Decimal
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...errors import Halted
from ...money.ledger import Ledger
from ...money.prices import Bill, Book
from ...recording.calls import MODEL, Call, tokens_of
from ...recording.recording import Recording
from ...recording.runs_inside import with_inside
from ...tracefile.events.text import compact, count
from ...wire.routes import HTTP, OTHER, host_of
from ..effects import HARMLESS, IRREVERSIBLE, effect_in_settings, effect_of
from ..matching.frontier import is_same_request
from ..matching.request import TOOL, Request
from ..matching.tape import RecordedCall, Tape
from ..refusal import ALL
from ..replay import report

if TYPE_CHECKING:
    from ...capture.replay_hook import OutgoingRequest, ToolCall
    from ..replay.side_effect_guard import Guard


ASK, RECORDED = "ask", "recorded"
_LONGEST = 300
_SAFE = ("GET", "HEAD", "OPTIONS")
"""HTTP methods that change nothing."""


class ToolPolicy:
    """Decides whether a tool may run after the cut."""

    def __init__(
        self,
        tape: Tape,
        cut: RecordedCall,
        *,
        policy: str,
        allowed: Container[str],
        effects: dict[str, str],
        guard: Guard | None = None,
        note: report.Listener | None = None,
    ) -> None:
        urls = (call.request.url or "" for call in tape.calls if call.kind == HTTP)
        self._hosts = {host_of(url) for url in urls}
        self._recorded = [call for call in tape.calls if call.kind == TOOL and call.begin >= cut.begin]
        self._policy = policy
        self._allowed = allowed
        self._effects = effects
        self._lock = Lock()
        self._always: set[str] = set()
        self._reported: set[str] = set()
        self._note = note or (lambda note: None)
        self.guard = guard

    def decide(self, tool_call: ToolCall, request: Request) -> RecordedCall | None:
        """Return the recorded call that answers a tool, None if the tool may run; raise Halted if not."""
        with self._lock:
            if tool_call.name in self._allowed or ALL in self._allowed:
                return None
            if self._policy == RECORDED:
                return self._equal(tool_call, request)
            effect = self.effect(tool_call)
            if effect in HARMLESS or tool_call.name in self._always:
                self._report_settings(tool_call.name, effect)
                return None
            if effect == IRREVERSIBLE:
                raise _refusal(tool_call, "it cannot be undone")
            self._ask(tool_call, effect)
            return None

    def effect(self, tool_call: ToolCall) -> str | None:
        """Return a tool's effect: from the user's settings, else as declared by its author."""
        return effect_of(tool_call.name, tool_call.effect, self._effects)

    def _report_settings(self, name: str, effect: str | None) -> None:
        """Report, once for each tool, that the user's settings decided."""
        if effect_in_settings(name, self._effects) == effect and name not in self._reported:
            self._reported.add(name)
            self._note(report.Decided(by_settings(name, effect, "ran")))

    def reach(self, leaving: OutgoingRequest) -> None:
        """Let a request be sent; raise Halted for one to anything but a model, if it may change something.

        Requests of a running tool are allowed: the tool was.
        """
        if self.guard is None:
            return
        host = host_of(leaving.url)
        is_model = leaving.sort not in (HTTP, OTHER)
        if is_model:  # also while a tool runs: it may end before this request has connected
            self.guard.hosts.add(host)
        if self.guard.is_open:
            return
        if leaving.lost is not None:
            raise Halted(
                f"a WebSocket cannot go live here: {leaving.lost}",
                hint="cut at the first request of its connection, or have the agent use HTTP instead",
            )
        if is_model:
            return
        if ALL in self._allowed or (leaving.method in _SAFE and host in self._hosts):
            self.guard.hosts.add(host)
        else:
            raise Halted(
                f"refusing to send {leaving.method} to {host}: its effect is not declared",
                hint="put it into a tool: @tap.tool(effect=…) and --live-tools; or --live-tools all",
            )

    def connect(self, server: str) -> bool:
        """Allow connections to an MCP server, for requests other than tools; False if none may be live."""
        if self._policy == RECORDED:
            return False
        self.open_to(server)
        return True

    def open_to(self, url: str) -> None:
        """Allow connections to the host of a URL."""
        if self.guard is not None and (host := host_of(url)):
            self.guard.hosts.add(host)

    @contextmanager
    def running(self, tool_call: ToolCall) -> Iterator[None]:
        """Let a running tool do what the guard blocks otherwise."""
        if self.guard is None:
            yield
            return
        self.guard.open(1)
        try:
            yield
        finally:
            self.guard.open(-1)

    def _equal(self, tool_call: ToolCall, request: Request) -> RecordedCall:
        for call in self._recorded:
            if is_same_request(call, request):
                self._recorded.remove(call)
                return call
        raise Halted(
            f"tool {tool_call.name} has no such recorded call, and --tools recorded runs no tool",
            hint=f"remove --tools recorded, and allow it with --live-tools {tool_call.name}",
        )

    def _ask(self, tool_call: ToolCall, effect: str | None) -> None:
        reason = "its effect is not declared" if effect is None else f"its effect is {effect}"
        reply = ask_on_terminal(
            f"reenact: run tool {tool_call.name}({_shown(tool_call.args)})? {reason}. [y/N/a] "
        )
        if reply is None:
            raise _refusal(tool_call, f"{reason} and there is no terminal to ask on")
        answer = reply.strip().lower()[:1]
        if answer == "a":
            self._always.add(tool_call.name)
        elif answer != "y":
            raise Halted(f"tool {tool_call.name} was not allowed to run")


def by_settings(name: str, effect: str | None, what: str) -> str:
    """Return that a tool runs because the user's settings declare what it does."""
    return f"tool {name} {what} after the cut: your settings declare it {effect}"


def _refusal(tool_call: ToolCall, why: str) -> Halted:
    return Halted(
        f"refusing to run tool {tool_call.name!r}: {why}",
        hint=f"--live-tools {tool_call.name} allows it, --tools recorded returns recorded results only,"
        ' @tap.tool(effect="read") or [tools] in reenact.toml declares that it changes nothing',
    )


def _shown(args: object) -> str:
    if isinstance(args, dict):
        text = ", ".join(f"{name}={value!r}" for name, value in args.items())
    else:
        text = repr(args)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def ask_on_terminal(text: str) -> str | None:
    """Ask the user at the terminal of this process, even if its streams are redirected; None without one."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        shown = "".join(char if char.isprintable() else "?" for char in text)
        os.write(terminal, shown.encode("utf-8", "replace"))
        return os.read(terminal, 1000).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(terminal)


# How much a live run may spend: model calls, steps of any kind, money.

CALLS, USD, STEPS = 50, 1.0, 200
"""The defaults."""


class Caps:
    """Counts the live calls of all processes of a run, in files of a shared folder, and stops them."""

    def __init__(self, calls: int, usd: float, steps: int, folder: str, path: str) -> None:
        self._folder = folder
        self._path = path
        """The run's own file."""
        self._most = {"calls": calls, "steps": steps}
        self._usd = Decimal(str(usd))
        self._lock = Lock()
        self._book: Book | None = None

    def model(self) -> None:
        """Count a model call before it is sent; raise Halted above a limit."""
        with self._lock:
            calls = self._count("calls")
            self._check("calls", calls, "--max-calls")
            spent = self.spent() if calls > 1 else Decimal(0)
            if spent >= self._usd:
                raise Halted(f"the run has spent ${spent:.4f} of ${self._usd}", hint="--max-usd allows more")
        self.step()

    def step(self) -> None:
        """Count a live call of any kind; raise Halted above the limit."""
        with self._lock:
            self._check("steps", self._count("steps"), "--max-steps")

    def _count(self, unit: str) -> int:
        """Count one more for all processes; the length of a file is the count, so no lock is needed."""
        return report.append(os.path.join(self._folder, unit), b".")

    def spent(self) -> Decimal:
        """Return the cost of the live answers so far; an unknown price counts as 0."""
        if self._book is None:
            self._book = Book.open()
        return Spent(with_inside(Recording.load(self._path)), self._book).usd

    def _check(self, unit: str, now: int, flag: str) -> None:
        most = self._most[unit]
        if now > most:
            raise Halted(f"the limit of {most} live {unit} is reached", hint=f"{flag} allows more")


class Spent:
    """What the live calls of a run used."""

    def __init__(self, recording: Recording, book: Book | None = None) -> None:
        live = [call for call in live_calls(recording) if call.begin is not None]
        self.calls = len(live)
        totals = tokens_of(live)
        self.tokens_in, self.tokens_out = totals.tokens_in, totals.tokens_out
        self.bill: Bill = Ledger(book).bill(live)

    @property
    def usd(self) -> Decimal:
        """What the calls of known price cost."""
        return self.bill.usd

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        tokens = {"in": self.tokens_in, "out": self.tokens_out}
        return {"calls": self.calls, "tokens": tokens, "cost": self.bill.as_dict()}

    def text(self) -> str:
        """Return it in a few words."""
        tokens = f"{compact(self.tokens_in + self.tokens_out)} tokens"
        return f"{count(self.calls, 'live call')}, {tokens}, cost {self.bill.text()}"


def live_calls(recording: Recording) -> list[Call]:
    """Return the model calls of a fork that no recording answered."""
    models = (call for call in recording.calls() if call.kind == MODEL)
    return [call for call in models if call.end is None or call.end.stored_fields.get("replayed") is None]
