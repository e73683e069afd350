"""What tools may do after the cut: pure and reading ones run, others are asked about, or not run at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from decimal import Decimal
from threading import Lock
from typing import TYPE_CHECKING

from ...errors import Halted
from ...money.ledger import Ledger
from ...money.prices import Book
from ...recording.recording import Recording
from ...recording.runs_inside import with_inside
from ...wire.routes import HTTP, host_of
from ..matching.frontier import is_same_request
from ..matching.request import TOOL, Request
from ..matching.tape import RecordedCall, Tape
from .world import HARMLESS, IRREVERSIBLE, effect_of

if TYPE_CHECKING:
    from ...capture.replay_hook import OutgoingRequest, ToolCall
    from ..replay.guard import Guard


ASK, RECORDED = "ask", "recorded"
ALL = "all"
_LONGEST = 300
_SAFE = ("GET", "HEAD", "OPTIONS")
"""Methods of HTTP that change nothing."""

Question = Callable[[str], str | None]
"""Asks the user; None if nobody is there."""


class Acting:
    """Decides for each tool that is called after the cut."""

    def __init__(
        self,
        tape: Tape,
        cut: RecordedCall,
        *,
        policy: str,
        allowed: Container[str],
        effects: dict[str, str],
        guard: Guard | None = None,
        question: Question | None = None,
    ) -> None:
        urls = (call.request.url or "" for call in tape.calls if call.kind == HTTP)
        self._hosts = {host_of(url) for url in urls}
        self._recorded = [call for call in tape.calls if call.kind == TOOL and call.begin >= cut.begin]
        self._policy = policy
        self._allowed = allowed
        self._effects = effects
        self._question = question or ask_on_terminal
        self._lock = Lock()
        self._always: set[str] = set()
        self.guard = guard

    def decide(self, asked: ToolCall, request: Request) -> RecordedCall | None:
        """Return the recorded call whose result a tool gets, None if it is to run; Halted if it must not."""
        with self._lock:
            if asked.name in self._allowed or ALL in self._allowed:
                return None
            if self._policy == RECORDED:
                return self._equal(asked, request)
            effect = self.effect(asked)
            if effect in HARMLESS or asked.name in self._always:
                return None
            if effect == IRREVERSIBLE:
                raise _refusal(asked, "it cannot be undone")
            self._ask(asked, effect)
            return None

    def effect(self, asked: ToolCall) -> str | None:
        """Return what a tool does to the world: by the user's settings, else as its author told."""
        return effect_of(asked.name, asked.effect, self._effects)

    def reach(self, leaving: OutgoingRequest) -> None:
        """Let a request get where it goes; Halted for one that asks no model, if it may change something.

        What a tool asks while it runs is the tool's, and that was decided on.
        """
        if self.guard is None:
            return
        host = host_of(leaving.url)
        if leaving.sort != HTTP:  # also while a tool runs: it may be over before this one has got through
            self.guard.hosts.add(host)
        if self.guard.is_open:
            return
        if leaving.lost is not None:
            raise Halted(
                f"a WebSocket cannot go live here: {leaving.lost}",
                hint="cut at the first request of its connection, or have the agent use HTTP instead",
            )
        if leaving.sort != HTTP:
            return
        if ALL in self._allowed or (leaving.method in _SAFE and host in self._hosts):
            self.guard.hosts.add(host)
        else:
            raise Halted(
                f"refusing to send {leaving.method} to {host}: its effect is not declared",
                hint="put it into a tool: @tap.tool(effect=…) and --live-tools; or --live-tools all",
            )

    def connect(self, server: str) -> bool:
        """Let an MCP server be reached, for what it is asked besides tools; False if nothing real may be."""
        if self._policy == RECORDED:
            return False
        self.open_to(server)
        return True

    def open_to(self, url: str) -> None:
        """Let connections be made to where a URL leads."""
        if self.guard is not None and (host := host_of(url)):
            self.guard.hosts.add(host)

    @contextmanager
    def running(self, asked: ToolCall) -> Iterator[None]:
        """Let a tool that runs do what the guard refuses others."""
        if self.guard is None:
            yield
            return
        self.guard.open(1)
        try:
            yield
        finally:
            self.guard.open(-1)

    def _equal(self, asked: ToolCall, request: Request) -> RecordedCall:
        for call in self._recorded:
            if is_same_request(call, request):
                self._recorded.remove(call)
                return call
        raise Halted(
            f"tool {asked.name} was not called like this then, and --tools recorded lets none run",
            hint=f"leave --tools recorded out, and allow it with --live-tools {asked.name}",
        )

    def _ask(self, asked: ToolCall, effect: str | None) -> None:
        what = "its effect is not declared" if effect is None else f"its effect is {effect}"
        said = self._question(f"reenact: run tool {asked.name}({_shown(asked.args)})? {what}. [y/N/a] ")
        if said is None:
            raise _refusal(asked, f"{what} and there is no terminal to ask on")
        answer = said.strip().lower()[:1]
        if answer == "a":
            self._always.add(asked.name)
        elif answer != "y":
            raise Halted(f"tool {asked.name} was not allowed to run")


def _refusal(asked: ToolCall, why: str) -> Halted:
    return Halted(
        f"refusing to run tool {asked.name!r}: {why}",
        hint=f"--live-tools {asked.name} allows it, --tools recorded returns recorded results only,"
        ' @tap.tool(effect="read") declares that it changes nothing',
    )


def _shown(args: object) -> str:
    if isinstance(args, dict):
        text = ", ".join(f"{name}={value!r}" for name, value in args.items())
    else:
        text = repr(args)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def ask_on_terminal(text: str) -> str | None:
    """Ask the user at the terminal that this process has, whatever its streams are; None without one."""
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


# How much a run that has gone live may spend: calls of models, steps of any kind, money.

CALLS, USD, STEPS = 50, 1.0, 200
"""Unless the user says otherwise."""


class Caps:
    """Counts what the processes of a run do live, in files of a folder they share, and stops them."""

    def __init__(self, calls: int, usd: float, steps: int, folder: str, path: str) -> None:
        self._folder = folder
        self._path = path
        """The run's own file."""
        self._most = {"calls": calls, "steps": steps}
        self._usd = Decimal(str(usd))
        self._lock = Lock()
        self._book: Book | None = None

    def model(self) -> None:
        """Another model call is about to leave."""
        with self._lock:
            calls = self._count("calls")
            self._check("calls", calls, "--max-calls")
            spent = self.spent() if calls > 1 else Decimal(0)
            if spent >= self._usd:
                raise Halted(
                    f"${spent:.4f} are spent, and ${self._usd} allowed", hint="--max-usd allows more"
                )
        self.step()

    def step(self) -> None:
        """Another call of any kind is about to be made live."""
        with self._lock:
            self._check("steps", self._count("steps"), "--max-steps")

    def _count(self, what: str) -> int:
        """Count one more, of all processes; by the length of a file, so that none has to be waited for."""
        file = os.open(
            os.path.join(self._folder, what), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            os.write(file, b".")
            return os.fstat(file).st_size
        finally:
            os.close(file)

    def spent(self) -> Decimal:
        """Return what the answers so far cost, as they stand in the files of the run; unknown counts as 0."""
        if self._book is None:
            self._book = Book.open()
        return Ledger(self._book).bill(with_inside(Recording.load(self._path)).calls()).usd

    def _check(self, what: str, now: int, flag: str) -> None:
        most = self._most[what]
        if now > most:
            raise Halted(f"{most} live {what} were made, and no more are allowed", hint=f"{flag} allows more")
