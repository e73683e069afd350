"""Changed traces through the library and every reading command: nothing is raised that is not documented, and
nothing takes more than two seconds of CPU or 500 MB."""

from __future__ import annotations

import os
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reenact import Debugger, Recording, read_events
from reenact.errors import ReenactError
from reenact.recording.listing import head_and_tail
from reenact.stats.many_runs import runs
from support.examples import LONG
from support.hostile import COMMANDS, command, folders, mutated, rich_run, sizes

CASES = 100_000 if LONG else 60
BATCHES = 100 if LONG else 4
DOCUMENTED = (ReenactError, OSError)
AT_ONCE = 50
"""Cases in one fork."""
OK = "ok"
MOST_CPU_S, MOST_BYTES = 2.0, 500 << 20
_FAULT = re.compile(r"a fault of its own|cannot be read \(\w*(?:Error|Exception|Iteration)\b")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("REENACT_DEBUG", "1")
    monkeypatch.chdir(tmp_path)


def peak() -> int:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class TooSlow(BaseException):
    """Nothing that reads may catch it."""


@contextmanager
def within_the_limit() -> Iterator[None]:
    """Interrupt what takes longer: a limit of CPU time, so that a busy machine is no failure."""

    def interrupt(number: int, frame: object) -> None:
        raise TooSlow(f"more than {MOST_CPU_S} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def read_with_the_library(path: Path) -> None:
    findings = []
    for event in read_events(path, on_finding=findings.append):
        assert event.summary().isprintable()
        _ = (
            event.payload,
            event.stored,
            event.content,
            event.error,
            event.args,
            event.result,
            event.event_type,
        )
        _ = event.body, event.timestamp, event.step, event.tool_name, repr(event)
    head_and_tail(str(path))
    runs(path).by("model")
    recording = Recording.load(path)
    _ = recording.status, recording.totals, recording.started, recording.ended
    debugger = Debugger(recording)
    _ = (
        debugger.turns(),
        debugger.calls(),
        debugger.lanes(),
        debugger.errors(),
        debugger.summary(),
        debugger.event_counts(),
    )
    events = debugger.all(system=True)
    for event in events[:20]:
        debugger.context_at(event)
    for event in [*events[len(events) // 2 :][:1], *events[-1:]]:  # each is a pass over the run up to it
        debugger.state_at(event)


def faults_of(path: Path, commands: list[list[str]] = COMMANDS) -> list[str]:
    """What reading a file does that is documented nowhere."""
    found = []
    before = sizes(path.parent)
    try:
        with within_the_limit():
            read_with_the_library(path)
    except DOCUMENTED as why:
        if _FAULT.search(str(why)):
            found.append("library\n" + traceback.format_exc())
    except (Exception, TooSlow):
        found.append("library\n" + traceback.format_exc())
    for words in commands:
        words = [word.format(path=path) if word == "{path}" else word for word in words]
        try:
            with within_the_limit():
                done = command(*words)
        except (Exception, TooSlow):
            found.append(f"{' '.join(words)}\n{traceback.format_exc()}")
            continue
        if _FAULT.search(done.out + done.err) or done.code not in (0, 1, 2):
            found.append(f"{' '.join(words)}\n{done.err}")
    if sizes(path.parent) != before:
        found.append("a file was changed")
    return found


def faults_of_cases(numbers: Iterable[int], sources: list[Path]) -> str:
    """What reading these changed files does that is documented nowhere, in a fork: its memory is its own."""
    at_start, written = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(written, (_first_fault(numbers, sources) or OK).encode()[:60_000])
        finally:
            os._exit(0)
    os.close(written)
    with os.fdopen(at_start, encoding="utf-8", errors="replace") as file:
        found = file.read()
    os.waitpid(pid, 0)
    return "" if found == OK else found or f"the process died in one of {numbers}"


def _first_fault(numbers: Iterable[int], sources: list[Path]) -> str | None:
    at_first = peak()
    for number in numbers:
        chance = random.Random(number)
        with tempfile.TemporaryDirectory() as folder:
            path = mutated(chance.choice(sources), Path(folder), chance)
            faults = faults_of(path, chance.sample(COMMANDS, 3))
            if peak() - at_first > MOST_BYTES:
                faults.append(f"reading took {(peak() - at_first) >> 20} MB")
            if faults:
                return f"case {number}\n{path.read_bytes()!r:.4000}\n" + "\n".join(faults)
    return None


def sources_of(folder: Path) -> list[Path]:
    """Return the traces that are changed."""
    return [*folders(), *[rich_run(folder / "rich.jsonl")] * 12]


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_a_trace_holds_reading_it_raises_nothing_undocumented(batch):
    with tempfile.TemporaryDirectory() as rich:
        sources = sources_of(Path(rich))
        numbers = range(batch, CASES, BATCHES)
        for first in range(0, len(numbers), AT_ONCE):
            faults = faults_of_cases(numbers[first : first + AT_ONCE], sources)
            assert not faults, faults


def test_a_tool_id_that_is_no_text_is_looked_up_nowhere(tmp_path):
    (tmp_path / "runs").mkdir()
    path = rich_run(tmp_path / "runs" / "t.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"tool_id": "toolu"', b'"tool_id": {"a":[]}'))
    assert not faults_of(path)
