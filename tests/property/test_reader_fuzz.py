"""Changed traces through the library and every reading command: nothing is raised that is not documented."""

from __future__ import annotations

import random
import re
import tempfile
import traceback
from pathlib import Path

import pytest

from reenact import Debugger, Recording, read_events
from reenact.errors import ReenactError
from reenact.recording.listing import head_and_tail
from reenact.stats.many_runs import runs
from support.examples import LONG
from support.hostile import COMMANDS, command, folders, mutated, rich_run, sizes

CASES = 100_000 if LONG else 120
BATCHES = 100 if LONG else 4
DOCUMENTED = (ReenactError, OSError)
_FAULT = re.compile(r"a fault of its own|cannot be read \(\w*(?:Error|Exception|Iteration)\b")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("REENACT_DEBUG", "1")
    monkeypatch.chdir(tmp_path)


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
    for event in debugger.all(system=True)[:20]:
        debugger.context_at(event), debugger.state_at(event)


def faults_of(path: Path, commands: list[list[str]] = COMMANDS) -> list[str]:
    """What reading a file does that is documented nowhere."""
    found = []
    before = sizes(path.parent)
    try:
        read_with_the_library(path)
    except DOCUMENTED as why:
        if _FAULT.search(str(why)):
            found.append("library\n" + traceback.format_exc())
    except Exception:
        found.append("library\n" + traceback.format_exc())
    for words in commands:
        words = [word.format(path=path) if word == "{path}" else word for word in words]
        try:
            done = command(*words)
        except Exception:
            found.append(f"{' '.join(words)}\n{traceback.format_exc()}")
            continue
        if _FAULT.search(done.out + done.err) or done.code not in (0, 1, 2):
            found.append(f"{' '.join(words)}\n{done.err}")
    if sizes(path.parent) != before:
        found.append("a file was changed")
    return found


@pytest.mark.parametrize("batch", range(BATCHES))
def test_whatever_a_trace_holds_reading_it_raises_nothing_undocumented(batch):
    with tempfile.TemporaryDirectory() as rich:
        sources = [*folders(), *[rich_run(Path(rich) / "rich.jsonl")] * 12]
        for number in range(batch, CASES, BATCHES):
            chance = random.Random(number)
            with tempfile.TemporaryDirectory() as folder:
                path = mutated(chance.choice(sources), Path(folder), chance)
                faults = faults_of(path, chance.sample(COMMANDS, 5))
                assert not faults, f"case {number}\n{path.read_bytes()!r:.4000}\n" + "\n".join(faults)


def test_a_tool_id_that_is_no_text_is_looked_up_nowhere(tmp_path):
    (tmp_path / "runs").mkdir()
    path = rich_run(tmp_path / "runs" / "t.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"tool_id": "toolu"', b'"tool_id": {"a":[]}'))
    assert not faults_of(path)
