"""A run that is re-enacted in this very process, for a test: begun, ended, and nothing is left of it.

Everything the test does is recorded in a file of its own. The calls it makes are answered by the trace it
names, or go out and the recording takes that trace's place, as its mode says.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from .. import protocols
from ..capture import current
from ..capture.failure import failure
from ..capture.install import ALL as ALL_HTTP
from ..capture.install import MODELS
from ..capture.options import CONTENT_VARIABLE, Options
from ..capture.places import start_fields
from ..capture.recorder import Recorder
from ..capture.tap import Tap
from ..debugger.debugger import Debugger
from ..errors import Diverged, UsageError
from ..tracefile.calls import MODEL, TOOL
from ..wire.shapes import text
from . import preflight, stage
from .answering import AsFarAsItGoes, Strict, ToolsAlone
from .divergence import Divergence, never_made
from .guard import Guard
from .keeping import take_place
from .modes import KEEP_GOING, REBASE, STRICT
from .player import Player
from .tape import Tape

F = TypeVar("F", bound=Callable[..., Any])

REPLAY, RECORD_MISSING, RERECORD, LIVE = "replay", "record-missing", "rerecord", "live"
MODES = (REPLAY, RECORD_MISSING, RERECORD, LIVE)
"""All is answered or fails; what is not recorded goes out; all goes out and is recorded; all goes out."""
CONNECTIONS, ALL, NONE = "connections", "all", "none"
GUARDS = (CONNECTIONS, ALL, NONE)
"""What is refused to a test that is answered: connections to other machines; files and programs, too."""


class Reenactment:
    """One test's run: what was recorded (``recorded``), and what happens now (``run``)."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mode: str = REPLAY,
        guard: str = CONNECTIONS,
        hosts: Collection[str] = (),
        record_http: str = MODELS,
        live_tools: Collection[str] = (),
        allow_unused: bool = False,
        rebase: bool = False,
        recorded_tools: bool = False,
        name: str = "test",
        folder: str | None = None,
        advice: str | None = None,
        raised: Callable[[str], BaseException] = Diverged,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.mode = _checked("mode", mode, MODES)
        self._guards = _checked("guard", guard, GUARDS)
        self._hosts = _names("hosts", hosts)
        self._records_all = _checked("record_http", record_http, (MODELS, ALL_HTTP)) == ALL_HTTP
        self._live_tools = _names("live_tools", live_tools)
        self._allow_unused = allow_unused
        self._matching = REBASE if rebase else STRICT
        self._is_for_tools = recorded_tools and mode == LIVE
        self._name = name
        self._raised = raised
        self._advice = advice or f'replaying(…, mode="{RERECORD}")'
        if folder is None:
            folder = tempfile.mkdtemp(prefix="reenact-test-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)  # events are read until then
        self._folder = folder
        self.run_path = os.path.join(folder, "run.jsonl")
        self._recorded: Debugger | None = None
        self._run: Debugger | None = None
        self._responder: Strict | AsFarAsItGoes | ToolsAlone | None = None
        self._undo: list[Callable[[], None]] = []
        self._refused: list[dict[str, Any]] = []
        self.notes: list[tuple[str, Any]] = []
        """What else was remarkable: ``doubt``, ``stand_in``, ``unknown``, each with its words."""

    # -- what a test looks at

    @property
    def recorded(self) -> Debugger:
        """The run that the trace holds."""
        if self._recorded is None:
            self._recorded = Debugger.load(self.path)
        return self._recorded

    @property
    def run(self) -> Debugger:
        """What has happened so far; read anew as long as it grows."""
        if self._run is None:
            self._run = Debugger.load(self.run_path)
        elif self._run.recording.end is None:
            self._run.reload()
        return self._run

    @property
    def tools(self) -> list[str]:
        """The names of the tools called so far, in order."""
        return [call.tool or "" for call in self.run.calls(TOOL)]

    @property
    def final(self) -> str:
        """The text of the last answer so far, "" if there is none."""
        ends = [call.end for call in self.run.calls(MODEL) if call.end is not None]
        return text(ends[-1].body, ends[-1].provider) if ends else ""

    @property
    def divergences(self) -> list[Divergence]:
        """Where this run left its recording so far; what has not been asked for yet is not counted."""
        return list(self._responder.misses) if isinstance(self._responder, Strict) else []

    def wrap(self, function: F, name: str | None = None) -> F:
        """Return a function whose calls are recorded and answered as a tool's are."""
        return wrap(function, name)

    # -- its course

    def begin(self) -> None:
        """Have this process answered and recorded from now on; UsageError if that cannot be."""
        self._refuse_if_unfit()
        try:
            tape = self._load() if os.path.exists(self.path) or self.mode == REPLAY else None
            self._undo.append(stage.set_environment(self._folder, with_keys=self.mode == REPLAY))
            self._answer(tape)
            self._record(tape)
        except BaseException:
            self.end()
            raise

    def finish(self, exc: BaseException | None = None) -> None:
        """The test's work is done: what comes after it is no part of its run."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        current.only = None
        error = failure(exc)
        if error is not None:
            recorder.emit("error", {"where": "test", "error": error})
        recorder.close("ok" if exc is None else "error", **({} if error is None else {"error": error}))

    def end(self) -> None:
        """Put everything back as it was; twice is fine."""
        self.finish()
        while self._undo:
            self._undo.pop()()

    def keep(self) -> bool:
        """Have the trace be what was recorded now, if the mode says so; True if it is written."""
        went_live = isinstance(self._responder, AsFarAsItGoes) and self._responder.went_live
        if self.mode == RERECORD or (self.mode == RECORD_MISSING and (went_live or self._responder is None)):
            take_place(self.run_path, self.path)
            return True
        return False

    def problems(self) -> list[str]:
        """Return why this is not the recorded run again; what may follow from a miss is left out."""
        if isinstance(self._responder, Strict) and self._responder.texts:
            return list(self._responder.texts)
        refused = [
            f"refused to {each['what']} at {each['where']}" for each in self._refused if each["by"] == "agent"
        ]
        told = refused + [str(words) for name, words in self.notes if name == "unknown"]
        return told or self._unused()

    def missed(self) -> list[str]:
        """Return the problems that raised where they were met."""
        is_raised = self.divergences or self._refused or any(name == "unknown" for name, _ in self.notes)
        return self.problems() if is_raised else []

    def _unused(self) -> list[str]:
        responder = self._responder
        if (
            not isinstance(responder, Strict | AsFarAsItGoes)
            or self._allow_unused
            or (isinstance(responder, AsFarAsItGoes) and responder.went_live)
        ):
            return []
        unused = never_made(responder.player.frontier, responder.player.tape)
        if not unused:
            return []
        calls = "\n".join(f"  {each.recorded}" for each in unused)
        count = f"{len(unused)} recorded call{'s were' if len(unused) > 1 else ' was'} never made"
        return [f"missing-call: {count}:\n{calls}\n  next: {self._advice}"]

    # -- its parts

    _recorder: Recorder | None = None

    def _refuse_if_unfit(self) -> None:
        if protocols.responder is not None or current.only is not None:
            raise UsageError("a run is being re-enacted in this process already", hint="one at a time")
        if os.environ.get("REENACT_OFF") == "1":
            raise UsageError("REENACT_OFF=1: nothing is answered or recorded here", hint="unset it for tests")
        if self.mode == RECORD_MISSING and stage.in_ci():
            raise UsageError(
                f"{RECORD_MISSING} is refused where CI is set: a test must not go live there",
                hint="record on your own machine, and commit the trace",
            )
        if self.mode in (RECORD_MISSING, RERECORD) and Options().content != "full":
            raise UsageError(
                f"{CONTENT_VARIABLE}={Options().content}: a trace without content answers nothing",
                hint=f"unset {CONTENT_VARIABLE} to record for a test",
            )

    def _load(self) -> Tape:
        if not os.path.exists(self.path):
            raise UsageError(f"there is no recording {self.path}", hint=f"record it: {self._advice}")
        return Tape.load(self.path)

    def _answer(self, tape: Tape | None) -> None:
        hosts, everything = self._hosts, self._records_all and self.mode != REPLAY
        models: tuple[int, ...] = ()
        if tape is not None:
            hosts = tuple({*hosts, *preflight.model_hosts(tape.recording)})
            models = preflight.model_ports(tape.recording)
            everything = everything or preflight.recorded_http(tape.recording) == ALL_HTTP
        if tape is not None and (self._is_for_tools or self.mode in (REPLAY, RECORD_MISSING)):
            self._responder = self._made_responder(tape)
            self._undo.append(stage.answer_with(self._responder))
        self._undo.append(stage.listen(hosts, everything=everything))
        if self.mode == REPLAY and self._guards != NONE:
            guard = Guard(
                [self._folder, os.path.dirname(self._folder)],
                is_relaxed=self._guards != ALL,
                tell=self._refused.append,
                raised=self._raised,
                allowing=f'open files and programs to this test with guard="{CONNECTIONS}"',
                models=models,
            )
            guard.begin()
            self._undo.append(guard.end)

    def _made_responder(self, tape: Tape) -> Strict | AsFarAsItGoes | ToolsAlone:
        known, live = {call.tool for call in tape.calls if call.tool is not None}, set(self._live_tools)
        if preflight.ALL in live:
            live = known
        elif live - known:
            listed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"no tool {min(live - known)!r} was recorded", hint=f"recorded are: {listed}")
        calls = [call for call in tape.calls if call.tool not in live]
        note: Callable[[str, Any], None] = lambda name, words: self.notes.append((name, words))  # noqa: E731
        if self._is_for_tools:
            return ToolsAlone(Player(tape, calls=calls), live=live, note=note)
        if self.mode == RECORD_MISSING:
            player = Player(tape, calls=calls, mode=KEEP_GOING)
            return AsFarAsItGoes(player, mode=KEEP_GOING, live=live, note=note)
        player = Player(tape, calls=calls, mode=self._matching)
        return Strict(player, raised=self._raised, advice=self._advice, live=live, note=note)

    def _record(self, tape: Tape | None) -> None:
        of = tape.recording.run_id if tape is not None and self.mode == REPLAY else None
        options = Options(name=self._name, meta=None if of is None else {"replay_of": of})
        head = start_fields(self._name, options)
        self._recorder = Recorder(self.run_path, options, head=head)
        self._recorder.start()
        current.only = self._recorder


def wrap(function: F, name: str | None = None) -> F:
    """Return a function whose calls are recorded, and answered where a recording answers.

    Plain, async, generator or async generator: results, exceptions, ``None`` and repeats come as they came.
    """
    return Tap().tool(name=name)(function)


def _checked(what: str, given: str, known: Iterable[str]) -> str:
    if given not in known:
        raise UsageError(f"{what}={given!r}", hint=f"{what} is one of: {', '.join(known)}")
    return given


def _names(what: str, given: Collection[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not all(isinstance(each, str) and each for each in given):
        raise UsageError(f"{what}={given!r}", hint=f'{what} is a list of names: {what}=["…"]')
    return tuple(given)
