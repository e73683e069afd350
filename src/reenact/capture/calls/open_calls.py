"""Which call an event belongs to: begin and end are joined, tools know the response that requests them.

One per recorder, used by Tap. Context variables first (they follow tasks), then the thread.
"""

from __future__ import annotations

import json
import time
from _contextvars import ContextVar
from _thread import get_ident
from itertools import count
from typing import TYPE_CHECKING, Any

from ...schema import TOOL_CALLED
from ...wire.json_values import canonical
from ...wire.neutral import ToolUse
from .. import guard
from ..recorder.jsonable import to_json
from ..recorder.recorder import Recorder
from .callers import caller_fields, caller_name, current
from .lanes import MAX_LANES, Lanes

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_OPEN = 10_000
MAX_ANSWERS = 64
_MINE = 32

_begun: ContextVar[tuple[str, ...]] = ContextVar("reenact_begun", default=())
"""The latest calls begun in this context; some may be over."""
_answered: dict[str, tuple[str, float]] = {}
"""The latest calls that were answered: in which run, and when. No context variable: an answer may come to its
end in a finaliser, or where somebody else's request begins."""


_NEVER = ("", 0.0)


class OpenUse:
    """A tool use of a response, and who has recorded a call for it."""

    __slots__ = (
        "_callers", "_free", "answer", "args", "attempts", "calls", "id", "is_open", "is_provisional",
        "name", "recorder",
    )  # fmt: skip

    def __init__(self, calls: Calls, answer: str, use: ToolUse) -> None:
        self.calls = calls
        self.answer = answer
        """The model call whose response has it."""
        self.id = use.id
        self.name = use.name
        self.args = to_json(use.args)
        self.attempts = 0
        """Recorded calls for it."""
        self._free = [True]
        self._callers: list[str | None] = []
        """Who makes the calls that are under way."""
        self.is_open = opened_uses is not None
        """True while a watched function may be called for it."""
        self.is_provisional = False
        """True if the recorded call had its name and other arguments."""
        self.recorder: Recorder | None = None
        """The run it is open in; only where functions are watched."""

    def take(self) -> bool:
        """Claim it for a call; False if another one has it, in another thread too."""
        try:
            self._free.pop()
        except IndexError as exc:
            guard.pass_on(exc)
            return False
        self.add_attempt()
        return True

    def is_tried_again(self) -> bool:
        """True if the caller at hand is none that a call under way has started: a further attempt, which does
        not wait for that one. Else it may do a part of its work."""
        who = caller_name()
        return who is not None and not any(
            each is None or f"{who}/".startswith(f"{each}/") for each in self._callers
        )

    def add_attempt(self) -> None:
        """Count a call for it."""
        self._callers.append(caller_name())
        if not self.attempts:
            self.calls.recorded_uses += 1
            if len(recorded_tools) < MAX_OPEN:
                recorded_tools.add(self.name)
        self.attempts += 1

    def release(self, who: str | None) -> None:
        """A call has ended, another attempt may follow; not for a tool that reports itself."""
        if who in self._callers:
            self._callers.remove(who)
        if not self._callers:
            self._free[:] = [True]


recorded_tools: set[str] = set()
"""Names of the tools that a call was recorded for in this process."""


class OpenUses(list[OpenUse] if TYPE_CHECKING else list):  # type: ignore[misc]
    """The tool uses that a watched function may be called for; empty where no function is watched.

    It is a constant in the code of watched functions: where that is pickled, it is empty for ever.
    """

    __hash__ = object.__hash__  # the code that it is in is a key for debuggers and picklers

    def __reduce__(self) -> Any:
        return tuple, ()


open_uses = OpenUses()
"""Of all runs in this process."""

opened_uses: Callable[[Recorder, list[OpenUse]], None] | None = None
"""Called with the tool uses of each response, where functions are watched. Never raises."""


class Invocation:
    """A tool use that a framework acts upon in this context."""

    __slots__ = ("before", "bodies", "is_over", "outer", "use")

    def __init__(self, use: OpenUse, bodies: tuple[Any, ...], before: Invocation | None) -> None:
        self.use = use
        self.bodies = bodies
        """The functions that do the work, as far as the framework knows them."""
        self.before = before
        """The one that it is inside of."""
        self.outer = use.calls.open_tool()
        """The tool call that it is inside of."""
        self.is_over = False

    def end(self) -> None:
        """The context variable stays: the end may come in a finaliser, which touches none."""
        self.is_over = True
        self.bodies = ()


_invoked: ContextVar[Invocation | None] = ContextVar("reenact_invoked", default=None)


def invoke(use: OpenUse, bodies: tuple[Any, ...]) -> Invocation:
    """Have what this context calls from now on be for a tool use, until the invocation is over."""
    before = _invoked.get()
    while before is not None and before.is_over:
        before = before.before
    found = Invocation(use, bodies, before)
    _invoked.set(found)
    if (caller := current()) is not None:
        caller.invoked = found
    return found


def invocation() -> Invocation | None:
    """Return the tool use that a framework acts upon here, unless a tool has begun since."""
    found = _invoked.get()
    if found is None and (caller := current()) is not None:  # a bare executor
        found = caller.invoked
    while found is not None and found.is_over:
        found = found.before
    if found is None or found.use not in open_uses or found.use.calls.open_tool() != found.outer:
        return None
    return found


class OpenCall:
    """A call that has begun and not ended."""

    __slots__ = ("began", "caller", "kind", "lane", "name", "provider", "replayed", "thread", "tool_id")

    def __init__(self, kind: str, name: str | None) -> None:
        self.kind = kind
        self.name = name
        self.began = time.monotonic()
        self.thread = get_ident()
        self.tool_id: str | None = None
        self.caller = caller_fields()
        """The fields that name who made it; empty if that is not known."""
        self.provider: str | None = None
        self.lane = "main"
        self.replayed: str | None = None
        """The recorded call whose result a tool returns."""

    @property
    def who(self) -> str | None:
        """The thread, task or work item that made it, None if that is not known."""
        return self.caller.get("who")

    def duration_ms(self) -> float:
        return round((time.monotonic() - self.began) * 1000, 3)


class Calls:
    """The open calls of one writer, and the tool uses of its responses."""

    def __init__(self, prefix: str, run_id: str) -> None:
        self.prefix = prefix
        """The writer's id: with a counter it makes call ids that no other process makes."""
        self.run_id = run_id
        self.numbers = count(1)  # atomic: two threads never share a number
        self.open: dict[str, OpenCall] = {}
        self.answered_in_thread: dict[int, tuple[float, str]] = {}
        self.wanted: dict[str, list[OpenUse]] = {}
        """Per answer: its tool uses."""
        self._tool_uses = self.recorded_uses = 0
        self.asking: dict[str, str] = {}
        """Per lane its latest answer, if that asks for tools."""
        self.lanes = Lanes(run_id)

    def begin(self, kind: str, name: str | None) -> tuple[str, OpenCall]:
        call = f"{self.prefix}{next(self.numbers):08x}"
        self.open[call] = opened = OpenCall(kind, name)
        if len(self.open) > MAX_OPEN:
            self.open.pop(next(iter(self.open)), None)
        kept = (self._cause(), *list(self.asking.values()))
        mine = [each for each in _begun.get() if each in self.open or each in kept]
        _begun.set((*mine[-_MINE:], call))
        return call, opened

    def end(self, call: str | None, kind: str, name: str | None) -> tuple[str | None, OpenCall | None]:
        """Close this call, or the latest open one of this kind in this task, then in this thread."""
        if call is None:
            call = self._latest(kind, name)
        return call, self.open.pop(call, None) if call is not None else None

    def _latest(self, kind: str, name: str | None) -> str | None:
        for call in reversed(_begun.get()):
            opened = self.open.get(call)
            if opened is not None and opened.kind == kind and opened.name == name:
                return call
        thread = get_ident()
        for call, opened in reversed(list(self.open.items())):
            if opened.thread == thread and opened.kind == kind and opened.name == name:
                return call
        return None

    def answered(self, call: str, opened: OpenCall | None, tool_uses: list[ToolUse], abandoned: bool) -> None:
        """Remember an answer as the cause of the tool calls that follow it where its request was made.

        One that was ``abandoned`` counts from its beginning: the collector may have closed it only now.
        """
        when = opened.began if opened is not None and abandoned else time.monotonic()
        thread = opened.thread if opened is not None else get_ident()
        _add(_answered, call, (self.run_id, when), MAX_OPEN)
        latest = max((when, call), self.answered_in_thread.get(thread, (0.0, "")))
        _add(self.answered_in_thread, thread, latest, MAX_OPEN)
        lane = opened.lane if opened is not None else "main"
        self.asking.pop(lane, None)
        if tool_uses:
            self._tool_uses += len(tool_uses)
            self.wanted[call] = [OpenUse(self, call, use) for use in tool_uses]
            self._forget_answers()
            _add(self.asking, lane, call, MAX_ANSWERS)

    def _forget_answers(self) -> None:
        """Keep the latest ones, and those with open uses: an agent in a tool may make many calls."""
        while len(self.wanted) > MAX_ANSWERS:
            known = list(self.wanted.items())
            done = next((call for call, uses in known if not any(use.is_open for use in uses)), None)
            if done is None and len(known) <= MAX_LANES:
                return
            close_uses(self.wanted.pop(done or known[0][0], None))

    def uses_counted(self) -> dict[str, int] | None:
        """Return how many tool uses there were and how many have a record; None if there were none."""
        return {"total": self._tool_uses, "recorded": self.recorded_uses} if self._tool_uses else None

    def request_leaves(self, lane: str) -> None:
        """The next request of a lane leaves: what its last response called has been called by now."""
        answer = self.asking.get(lane, "")
        if self.is_acted_upon_here(answer):
            close_uses(self.wanted.get(answer))

    def parent(self) -> str | None:
        """Return the answer that the code at hand acts upon."""
        return self._cause() or self.answered_in_thread.get(get_ident(), (0.0, None))[1]

    def _cause(self) -> str | None:
        """Return the latest answer to a call of this context."""
        latest: tuple[float, str] | None = None
        for call in _begun.get():
            run_id, when = _answered.get(call, _NEVER)
            if run_id == self.run_id and (latest is None or (when, call) > latest):
                latest = when, call
        return latest[1] if latest is not None else None

    @staticmethod
    def begun_here() -> tuple[str, ...]:
        """Return the latest calls of this context, of any run."""
        return _begun.get()

    def is_acted_upon_here(self, answer: str) -> bool:
        """True if the code at hand is inside of no tool, or this response came inside of the same one.

        What a tool calls is its own work, unless it is an agent itself and the response is its own.
        """
        tool, here = self.open_tool(), _begun.get()
        return tool is None or answer in here[here.index(tool) :]

    def open_tool(self) -> str | None:
        """Return the tool call that the code at hand runs inside of."""
        for call in reversed(_begun.get()):
            opened = self.open.get(call)
            if opened is not None and opened.kind == TOOL_CALLED:
                return call
        return None

    def claim(self, name: str, args: Any, tool_id: str | None) -> tuple[str | None, str | None]:
        """Return the answer that asks for a tool call, and the provider's id of the tool use.

        Lanes may take turns in one task: of their latest answers it is the one with a tool use of this id,
        else of this name and with equal arguments, else of this name; else the one acted upon. Unless
        given, the id is what a framework reports, else that of the first unclaimed use of this name with
        equal arguments.
        """
        if tool_id is None and (held := invocation()) is not None and held.use.calls is self:
            server = held.use.name.removesuffix(name)  # a framework may put the name of a server before it
            if server != held.use.name and not server[-1:].isalnum():
                held.use.take()
                return held.use.answer, held.use.id
        parent = self.parent()
        asking = list(self.asking.values())  # few: a copy, other threads add to it
        latest = [call for call in reversed(_begun.get()) if call in asking and call != parent]
        answers = [call for call in (parent, *latest) if call is not None and self.wanted.get(call)]
        if tool_id is not None:
            same = (use for call in answers for use in self.wanted.get(call, ()) if use.id == tool_id)
            found = next(same, None)
            if found is not None:
                found.take()
            return (parent if found is None else found.answer), tool_id
        text = to_json(args) if answers else ""
        for call in answers:
            for use in self._unclaimed(call):
                if use.name == name and (use.args == text or _equal(use.args, text)) and use.take():
                    return call, use.id
        named = (call for call in answers if any(use.name == name for use in self._unclaimed(call)))
        return next(named, parent), None

    def _unclaimed(self, answer: str) -> list[OpenUse]:
        return [use for use in self.wanted.get(answer, ()) if not use.attempts]


def close_uses(uses: list[OpenUse] | None) -> None:
    """Nothing is called for these any more."""
    for use in uses or ():
        use.is_open = False
        if use not in open_uses:  # most are taken by then, and an exception costs more than the look
            continue
        try:
            open_uses.remove(use)
        except ValueError as exc:  # another thread did
            guard.pass_on(exc)


def _add(known: dict[Any, Any], key: Any, value: Any, most: int) -> Any:
    """Add a value; returns the oldest one if there are too many."""
    known[key] = value
    if len(known) > most:
        try:
            return known.pop(next(iter(known)), None)
        except RuntimeError as exc:  # another thread added one just now, and will take one away
            guard.pass_on(exc)
    return None


def _equal(first: str, second: str) -> bool:
    """Compare two JSON texts as values: a tool's keyword order is not the model's."""
    return len(first) == len(second) and canonical(json.loads(first)) == canonical(json.loads(second))


def calls_of(recorder: Recorder) -> Calls:
    """Return the open calls of a recorder; a forked child has none."""
    if recorder.calls is None:
        with recorder.lock:
            if recorder.calls is None:
                recorder.calls = Calls(recorder.w, recorder.run_id)
    calls: Calls = recorder.calls
    return calls
