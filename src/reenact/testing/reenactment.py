"""Replay a run inside this process, for a test; ``end`` restores everything.

The test is recorded to a file of its own. By its mode, its calls are answered by the trace it names, or are
sent and the new recording replaces that trace.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from ..capture import replay_hook
from ..capture.calls.error_fields import failure
from ..capture.front.options import CONTENT_VARIABLE, Options
from ..capture.front.tap import Tap
from ..capture.recorder.recorder import Recorder
from ..capture.runs import current, location
from ..capture.runs.location import start_fields
from ..capture.runs.run import run
from ..capture.seams import install
from ..capture.seams.install import ALL as ALL_HTTP
from ..capture.seams.install import MODELS, TOOLS_VARIABLE
from ..debugger.debugger import Debugger
from ..errors import Diverged, UsageError
from ..playback.matching.divergence import Divergence, missing_calls
from ..playback.matching.frontier import AMBIGUOUS
from ..playback.matching.modes import KEEP_GOING, REBASE, RECORD_MISSING, STRICT
from ..playback.matching.player import Player
from ..playback.matching.tape import Tape
from ..playback.replay import preflight
from ..playback.replay.report import Note, Refused, Unknown, WentLive
from ..playback.replay.responder import RecordMissing, Strict, ToolsOnly
from ..playback.replay.side_effect_guard import Guard
from ..recording.calls import TOOL
from ..recording.recording import final_text
from .children import Children, Undo, set_environment
from .traces import is_there, load, replace_trace

# Check the options of a test before it begins.


def checked(option: str, value: str, known: Iterable[str]) -> str:
    """Return an option's value; UsageError if it is not a known one."""
    if value not in known:
        raise UsageError(f"{option}={value!r}", hint=f"{option} is one of: {', '.join(known)}")
    return value


def names(option: str, value: Collection[str]) -> tuple[str, ...]:
    """Return an option's list of names; UsageError for anything else."""
    if isinstance(value, str) or not all(isinstance(each, str) and each for each in value):
        raise UsageError(f"{option}={value!r}", hint=f'{option} is a list of names: {option}=["…"]')
    return tuple(value)


# Changes to this process during a replay; each returns a function that undoes it.

FOLDER_VARIABLE = "REENACT_DIR"


def dummy_keys() -> dict[str, str]:
    """Return dummy keys for SDKs that find none; no provider sees them."""
    return {name: "none" for name in preflight.KEYS if not os.environ.get(name)}


def answer_with(responder: replay_hook.Responder) -> Undo:
    """Answer all calls of this process with a responder."""
    replay_hook.responder, location.replaying = responder, True

    def undo() -> None:
        replay_hook.responder, location.replaying = None, False

    return undo


def listen(hosts: Iterable[str], *, everything: bool) -> Undo:
    """Replace the installed seams by ones of this test.

    Call it after ``answer_with``: seams look for a responder when they are installed.
    """
    before = install.swap(install.Seams(tuple(hosts), everything, is_supervised=True))

    def undo() -> None:
        install.swap(before)

    return undo


def in_ci() -> bool:
    """True if the environment variable CI is set."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")


# Summaries that a test asserts on.


def unused(player: Player, advice: str) -> list[str]:
    """Return the report of missing recorded calls, empty if there are none."""
    found = missing_calls(player.frontier, player.tape)
    if not found:
        return []
    calls = "\n".join(f"  {each.recorded}" for each in found)
    count = f"{len(found)} recorded call{'s were' if len(found) > 1 else ' was'} never made"
    return [f"missing-call: {count}:\n{calls}\n  next: {advice}"]


class Recorded:
    """The result of a ``recorded()`` block: its file, and the run as a Debugger."""

    def __init__(self, path: str | None = None) -> None:
        if path is None:
            folder = tempfile.mkdtemp(prefix="reenact-test-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)  # events are read until then
        self.path = path or os.path.join(folder, "run.jsonl")
        self._debugger: Debugger | None = None

    @property
    def debugger(self) -> Debugger:
        """The run as recorded so far; reloaded while it grows."""
        if self._debugger is None:
            self._debugger = Debugger.load(self.path)
        elif self._debugger.recording.end is None:
            self._debugger.reload()
        return self._debugger


@contextmanager
def recorded(
    name: str = "test", *, path: str | os.PathLike[str] | None = None, **options: Any
) -> Iterator[Recorded]:
    """Record the block as one run, in a temporary file unless ``path`` names one."""
    found = Recorded(None if path is None else os.fspath(path))
    with run(name, path=found.path, **options):
        yield found


F = TypeVar("F", bound=Callable[..., Any])

REPLAY, RERECORD, LIVE = "replay", "rerecord", "live"
MODES = (REPLAY, RECORD_MISSING, RERECORD, LIVE)
"""Answer all calls or fail; send calls that are not recorded; send and record all; send all."""
CONNECTIONS, EVERYTHING, NONE = "connections", "all", "none"
GUARDS = (CONNECTIONS, EVERYTHING, NONE)
"""What a replayed test may not do: connect to other machines; also change files and start programs."""


class Reenactment:
    """One test's run: the recording (``recorded``) and the new run (``run``)."""

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
        line: Callable[[list[str]], str] | None = None,
        raised: Callable[[str], BaseException] = Diverged,
    ) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self.mode = checked("mode", mode, MODES)
        self._guards = checked("guard", guard, GUARDS)
        self._hosts = names("hosts", hosts)
        self._records_all = checked("record_http", record_http, (MODELS, ALL_HTTP)) == ALL_HTTP
        self._live_tools = names("live_tools", live_tools)
        self._allow_unused = allow_unused
        self._matching = REBASE if rebase else STRICT
        self._is_for_tools = recorded_tools and mode == LIVE
        self._name = name
        self._raised = raised
        self._advice = advice or f'replaying(…, mode="{RERECORD}")'
        self._line = line or (lambda names: f"replaying({os.fspath(path)!r}, live_tools={names!r})")
        """Returns the line of the test's source that lets tools run."""
        self._new = Recorded(None if folder is None else os.path.join(folder, "run.jsonl"))
        self.run_path = self._new.path
        self._folder = os.path.dirname(self.run_path)
        self._responder: Strict | RecordMissing | ToolsOnly | None = None
        self._undo: list[Callable[[], None]] = []
        self._children = Children(self._folder)
        self._missed_elsewhere: list[str] = []  # in processes of the test, or by a responder that goes live
        self._refused: list[Refused] = []
        self._notes: list[Note] = []

    # -- for the test

    @cached_property
    def recorded(self) -> Debugger:
        """The recorded run."""
        return Debugger.load(self.path)

    @property
    def run(self) -> Debugger:
        """The new run so far; reloaded while it grows."""
        return self._new.debugger

    @property
    def tools(self) -> list[str]:
        """The names of the tools called so far, in order."""
        return [call.tool or "" for call in self.run.calls(TOOL)]

    @property
    def final(self) -> str:
        """The text of the last answer so far, "" if there is none."""
        return final_text(self.run.recording)

    @property
    def divergences(self) -> list[Divergence]:
        """The divergences so far, without missing calls."""
        return list(self._responder.misses) if isinstance(self._responder, Strict) else []

    @property
    def notes(self) -> list[tuple[str, Any]]:
        """Other notes: kind (``doubt``, ``stand_in``, ``unknown``) and details of each note."""
        return [(note.kind, note.plain()) for note in self._notes]

    def wrap(self, function: F, name: str | None = None) -> F:
        """Return a function that is recorded and answered like a tool."""
        return wrap(function, name)

    # -- its life

    def begin(self) -> None:
        """Answer and record this process from now on; UsageError if that is impossible."""
        self._refuse_if_unfit()
        try:
            tape = load(self.path, self._advice) if self.mode == REPLAY or is_there(self.path) else None
            variables = {FOLDER_VARIABLE: self._folder, **(dummy_keys() if self.mode == REPLAY else {})}
            if tape is not None and self._is_answered(tape):
                variables[TOOLS_VARIABLE] = preflight.named_functions(tape.recording)
            self._undo.append(set_environment(variables))
            self._answer(tape)
            self._record(tape)
            if self.mode != LIVE:
                self._adopt(tape)
        except BaseException:
            self.end()
            raise

    def finish(self, exc: BaseException | None = None) -> None:
        """End the recording: what follows is not part of the test's run."""
        recorder, self._recorder = self._recorder, None
        if recorder is None:
            return
        current.only = None
        error = failure(exc)
        if error is not None:
            recorder.emit("error", {"where": "test", "error": error})
        recorder.close("ok" if exc is None else "error", **({} if error is None else {"error": error}))
        diverged, refused, notes = self._children.reported()
        self._missed_elsewhere += [note.divergence.text() for note in diverged]
        self._refused += refused
        self._notes += notes

    def end(self) -> None:
        """Restore the process; calling it twice is fine."""
        self.finish()
        while self._undo:
            self._undo.pop()()

    def keep(self) -> bool:
        """Replace the trace by the new recording if the mode says so; return whether it did."""
        is_new = self.mode == RECORD_MISSING and (self._went_live() or self._responder is None)
        if self.mode == RERECORD or is_new:
            replace_trace(self.run_path, self.path)
        return self.mode == RERECORD or is_new

    def problems(self) -> list[str]:
        """Return how this run differs from the recorded one, without consequences of a miss."""
        texts = self._responder.texts if isinstance(self._responder, Strict) else []
        if texts or self._missed_elsewhere:
            return [*texts, *self._missed_elsewhere]
        problems = [f"refused to {each.what} at {each.where}" for each in self._refused if each.by == "agent"]
        problems += [
            f"{each.why}\n  next: {self._advice}" for each in self._notes if isinstance(each, Unknown)
        ]
        return problems or self._unused()

    def missed(self) -> list[str]:
        """Return the problems that already raised an exception."""
        is_unknown = any(isinstance(each, Unknown) for each in self._notes)
        is_raised = self.divergences or self._missed_elsewhere or self._refused or is_unknown
        return self.problems() if is_raised else []

    def _unused(self) -> list[str]:
        responder = self._responder
        if not isinstance(responder, Strict | RecordMissing) or self._allow_unused or self._went_live():
            return []
        return unused(responder.player, self._advice)

    def _went_live(self) -> bool:
        return any(isinstance(each, WentLive) for each in self._notes)

    # -- its parts

    _recorder: Recorder | None = None
    _watched: tuple[tuple[str, ...], bool] = ((), False)
    """The hosts of models, and whether all other hosts are recorded too."""

    def _refuse_if_unfit(self) -> None:
        if replay_hook.responder is not None or current.only is not None:
            raise UsageError("a replay is already running in this process", hint="run one at a time")
        if os.environ.get("REENACT_OFF") == "1":
            raise UsageError("REENACT_OFF=1: nothing is answered or recorded here", hint="unset it for tests")
        if self.mode == RECORD_MISSING and in_ci():
            raise UsageError(
                f"{RECORD_MISSING} is refused where CI is set: a test must not go live there",
                hint="record on your own machine, and commit the trace",
            )
        if self.mode in (RECORD_MISSING, RERECORD) and Options().content != "full":
            raise UsageError(
                f"{CONTENT_VARIABLE}={Options().content}: a trace without content answers nothing",
                hint=f"unset {CONTENT_VARIABLE} to record for a test",
            )

    def _is_answered(self, tape: Tape | None) -> bool:
        return tape is not None and (self._is_for_tools or self.mode in (REPLAY, RECORD_MISSING))

    def _answer(self, tape: Tape | None) -> None:
        hosts, everything = self._hosts, self._records_all and self.mode != REPLAY
        models: tuple[int, ...] = ()
        if tape is not None:
            hosts = tuple({*hosts, *preflight.model_hosts(tape.recording)})
            models = preflight.model_ports(tape.recording)
            everything = everything or preflight.recorded_http(tape.recording) == ALL_HTTP
        if tape is not None and self._is_answered(tape):
            self._responder = self._new_responder(tape)
            self._undo.append(answer_with(self._responder))
        self._undo.append(listen(hosts, everything=everything))
        self._watched = hosts, everything
        if self.mode == REPLAY and self._guards != NONE:
            guard = Guard(
                self._children.open_to_test,
                is_relaxed=self._guards != EVERYTHING,
                report=self._refused.append,
                raised=self._raised,
                allowing=f'open files and programs to this test with guard="{CONNECTIONS}"',
                models=models,
                pythons_must_join=True,
            )
            guard.begin()
            self._undo.append(guard.end)

    def _new_responder(self, tape: Tape) -> Strict | RecordMissing | ToolsOnly:
        allowed = preflight.live_tools(tape.recording, self._live_tools)
        need = preflight.need_of_tools(preflight.unanswered_calls(tape.recording), allowed)
        if need is not None:
            line = self._line(sorted({*allowed, *need.tools}))
            raise UsageError(need.why, hint=f"let them run: {line}; {need.hint}")
        spans = preflight.tools_calling_models(tape)
        live = self._live_tools = (*allowed, *(name for name in spans if name not in allowed))
        calls = [call for call in tape.calls if call.tool not in live]
        shared = None if self._is_for_tools else self._children.shared(tape, calls)
        note = self._notes.append
        if self._is_for_tools:
            return ToolsOnly(Player(tape, calls=calls), live=live, note=note)
        if self.mode == RECORD_MISSING:
            player = Player(tape, calls=calls, mode=KEEP_GOING, shared=shared)
            return RecordMissing(player, live=live, note=note, on_divergence=self._guessed)
        player = Player(tape, calls=calls, mode=self._matching, shared=shared)
        return Strict(player, raised=self._raised, advice=self._advice, live=live, note=note)

    def _guessed(self, divergence: Divergence) -> None:
        if divergence.code == AMBIGUOUS:  # any other call goes live
            self._missed_elsewhere.append(divergence.text())

    def _record(self, tape: Tape | None) -> None:
        of = tape.recording.run_id if tape is not None and self.mode == REPLAY else None
        options = Options(name=self._name, meta=None if of is None else {"replay_of": of})
        head = start_fields(self._name, options)
        self._recorder = Recorder(self.run_path, options, head=head)
        self._recorder.start()
        current.only = self._recorder

    def _adopt(self, tape: Tape | None) -> None:
        """Let processes that the test starts join its run."""
        plan = None
        if tape is not None and self.mode != RERECORD:
            plan = self._children.plan(
                tape,
                mode=RECORD_MISSING if self.mode == RECORD_MISSING else self._matching,
                live=self._live_tools,
                relaxed=self._guards != EVERYTHING,
                guarded=self.mode == REPLAY and self._guards != NONE,
            )
        assert self._recorder is not None
        hosts, everything = self._watched
        self._undo.append(self._children.begin(self._recorder, plan, hosts, everything=everything))


def wrap(function: F, name: str | None = None) -> F:
    """Return a function that is recorded like a tool, and answered in a replay.

    Plain, async, generator or async generator: results, exceptions, ``None`` and repeats are as recorded.
    """
    return Tap().tool(name=name)(function)


@contextmanager
def replaying(path: str | os.PathLike[str], *, mode: str = REPLAY, **options: Any) -> Iterator[Reenactment]:
    """Answer the calls of the block from a recording; AssertionError if recorded calls are missing.

    A call that is not recorded raises ``Diverged``, and AssertionError in the end if the code caught that.
    ``mode`` and options are those of the pytest plugin: ``guard``, ``hosts``, ``live_tools``,
    ``allow_unused``.
    """
    found = Reenactment(path, mode=mode, **options)
    found.begin()
    try:
        try:
            yield found
        except BaseException as exc:
            found.finish(exc)
            if isinstance(exc, Diverged | KeyboardInterrupt | SystemExit) or not found.missed():
                raise
            raise AssertionError("\n\n".join(found.missed())) from exc
        found.finish()
        problems = found.problems()
    finally:
        found.end()
    if problems:
        raise AssertionError("\n\n".join(problems))
    found.keep()
