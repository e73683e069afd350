"""The ground moves while a run is recorded or read: the clock jumps, processes are stopped and continued, files are cut,
replaced, removed and written under their readers. Nothing is lost, nobody hangs, no command ends in a traceback."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reenact import Debugger, Recording, read_events
from reenact.errors import ReenactError
from reenact.tracefile.follow import follow
from support.examples import LONG, long
from support.forked import COMMAND, type_in
from support.harness import Lines, environment, only_file, wait_until
from support.hostile import COMMANDS, command, rich_run
from support.provider import Provider
from support.typed import record_trip

FAULT = re.compile(r"a fault of its own|Traceback|cannot be read \(\w*(?:Error|Exception|Iteration)\b")
DAY = 86_400.0

JUMPS = """
import sys, time
real, offset = time.time, [0.0]
time.time = lambda: real() + offset[0]
from reenact import Tap
tap, messages = Tap(), []
for turn in range(4):
    messages.append({"role": "user", "content": f"turn {turn}"})
    call = tap.record_model_request({"model": "m", "messages": messages})
    offset[0] += float(sys.argv[1]) if turn == 1 else 0
    tap.record_model_response({"role": "assistant", "content": f"answer {turn}"}, call=call)
    tool = tap.record_tool_call("look", {"turn": turn})
    offset[0] -= 2 * float(sys.argv[1]) if turn == 2 else 0
    tap.record_tool_result("look", "seen", None, call=tool)
"""


@pytest.mark.parametrize("jump", [long(DAY), -DAY])
def test_a_clock_that_jumps_changes_no_duration_and_no_order(tmp_path: Path, jump: float) -> None:
    (tmp_path / "agent.py").write_text(JUMPS)
    env = environment(XDG_STATE_HOME=str(tmp_path / "state"))
    assert type_in(["run", "agent.py", jump], tmp_path, env).returncode == 0
    path = only_file(tmp_path / ".reenact")
    found = Lines(path)
    found.assert_gapless()
    times = [line["ts"] for line in found.events]
    assert max(times) - min(times) > DAY  # it did jump
    durations = [line["duration_ms"] for line in found.events if "duration_ms" in line]
    assert len(durations) == 9 and all(0 <= each < DAY / 2 * 1000 for each in durations)
    printed = {words: type_in([words, path], tmp_path, env) for words in ("show", "ls", "doctor", "stats")}
    assert all(done.returncode == 0 for done in printed.values()), printed
    assert re.findall(r"^turn (\d)", printed["show"].stdout, re.MULTILINE) == ["1", "2", "3", "4"]
    listed = printed["ls"].stdout.replace(str(jump), "")  # the argument of the agent is its input
    assert not re.search(r"-\d", re.sub(r"\S*\d{4}-\d\d-\d\d\S*|\S+\.jsonl", "", listed))
    assert "nothing is damaged" in printed["doctor"].stdout
    assert [each.step for each in Recording.load(path).events] == list(range(2, 18))


# Processes that are stopped and continued

STOPPABLE = """
import os, sys
import httpx
from reenact import Tap
body = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}], "stream": True}

def at(point):
    print(point, os.getpid(), flush=True)
    sys.stdin.readline()

tap = Tap()
call = tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "in a call"}]})
at("call")
tap.record_model_response({"role": "assistant", "content": "answered"}, call=call)
with httpx.stream("POST", os.environ["MODEL_URL"] + "/v1/messages", json=body) as answer:
    pieces = answer.iter_raw(64)
    next(pieces)
    at("stream")
    for piece in pieces:
        pass
print("went on", flush=True)
"""
READING = [["ls"], ["show"], ["show", "--all"], ["tail", "--no-follow"], ["cat"], ["doctor"], ["messages"], ["stats"]]  # fmt: skip


@pytest.mark.parametrize("who", ["agent", long("supervisor")])
def test_a_process_that_is_stopped_is_read_and_goes_on_as_if_nothing_had_been(
    tmp_path: Path, provider: Provider, who: str
) -> None:
    (tmp_path / "agent.py").write_text(STOPPABLE)
    env = environment(MODEL_URL=provider.url("text"), XDG_STATE_HOME=str(tmp_path / "state"))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    started = subprocess.Popen([COMMAND, "run", "agent.py"], cwd=tmp_path, env=env, text=True, **pipes)  # type: ignore[call-overload]
    tail = None
    for point in ("call", "stream"):
        word, agent = started.stdout.readline().split()
        assert word == point
        stopped = int(agent) if who == "agent" else started.pid
        os.kill(stopped, signal.SIGSTOP)
        wait_until(lambda pid=stopped: state_of(pid) == "T", started)
        path = only_file(tmp_path / ".reenact")
        for words in READING:
            done = type_in([words[0], path, *words[1:]], tmp_path, env)
            assert done.returncode in (0, 1) and not FAULT.search(done.stderr), done
        if tail is None:
            tail = subprocess.Popen(
                [COMMAND, "tail", path], cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE
            )
        if who == "agent":
            os.kill(stopped, signal.SIGCONT)
        started.stdin.write("\n")
        started.stdin.flush()
        if who == "supervisor" and point == "stream":  # the agent goes on, and ends, without it
            assert started.stdout.readline() == "went on\n"
        if who == "supervisor":
            os.kill(stopped, signal.SIGCONT)
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0 and not FAULT.search(err), err
    assert tail is not None
    followed = tail.communicate(timeout=120)[0]
    assert "answered" in followed and "run.end" in followed  # it ends when the run does
    found = Lines(path)
    found.assert_gapless()
    assert [line["kind"] for line in found.events].count("model.response") == 2
    assert found.all[-1]["status"] == "ok"


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]


# Files that change under their readers


def truncated(path: Path, other: bytes) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path, other: bytes) -> None:
    os.truncate(path, 0)


def removed(path: Path, other: bytes) -> None:
    path.unlink()


def replaced(path: Path, other: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(other)
    new.rename(path)


def overwritten(path: Path, other: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(b"\0garbage\n" * 50)


def grown(path: Path, other: bytes) -> None:
    with open(path, "ab") as file:
        file.write(other)


def a_folder(path: Path, other: bytes) -> None:
    path.unlink()
    path.mkdir()


CHANGES: dict[str, Callable[[Path, bytes], None]] = {
    change.__name__: change
    for change in (truncated, emptied, removed, replaced, overwritten, grown, a_folder)
}


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("REENACT_DEBUG", "1")


def large(path: Path) -> Path:
    """A run that is read by its offsets."""
    record_trip(path)
    rows = path.read_bytes().splitlines(keepends=True)
    note = b'{"ts": 1763200000.5, "run": "x", "w": "0000aaaa", "step": %d, "kind": "note", "text": "%s"}\n'
    path.write_bytes(b"".join(note % (number, b"x" * 900) for number in range(1, 1500)) + b"".join(rows))
    return path


RUNS: dict[str, Callable[[Path], Path]] = {"small": rich_run, "large": large, "with blobs": record_trip}


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("change", CHANGES)
def test_what_is_read_from_a_file_that_changes_is_an_event_or_a_documented_error(
    tmp_path: Path, change: str, run: str
) -> None:
    """In the middle of reading, and between opening a recording and its questions."""
    other = rich_run(tmp_path / "other.txt").read_bytes()

    def changed(number: int, path: Path) -> None:
        if number == 3:
            CHANGES[change](path, other)

    for number, reads in enumerate((_read, _follow, _ask)):
        path = RUNS[run](tmp_path / f"{number}.jsonl")
        try:
            for count, event in enumerate(reads(path)):
                _ = event.summary(), event.payload, event.content
                changed(count, path)
        except (ReenactError, OSError) as why:
            assert not FAULT.search(str(why)), why


def _read(path: Path) -> Iterator[object]:
    yield from read_events(path)


def _follow(path: Path) -> Iterator[object]:
    looks = itertools.count()
    yield from follow(path, from_start=True, poll=0.001, stop=lambda: next(looks) > 30)


def _ask(path: Path) -> Iterator[object]:
    recording = Recording.load(path)
    yield from itertools.islice(recording.events, 4)
    debugger = Debugger(recording)
    yield from recording.events
    _ = recording.status, recording.totals, recording.started, recording.ended, recording.findings
    _ = debugger.turns(), debugger.calls(), debugger.summary(), debugger.errors()
    yield from (
        debugger.context_at(event) and event for event in recording.events if event.kind == "model.request"
    )


def test_commands_on_a_file_that_changes_all_the_time_end_in_an_answer_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, stop = tmp_path / "t.jsonl", threading.Event()
    sources = [
        make(tmp_path / f"{name}.txt").read_bytes() for name, make in RUNS.items() if name != "with blobs"
    ]
    path.write_bytes(sources[0])

    def change() -> None:
        for number in itertools.count():
            if stop.is_set():
                return
            each = list(CHANGES.values())[number % len(CHANGES)]
            try:
                each(path, sources[number % 2])
            except OSError:
                pass
            if path.is_dir():
                path.rmdir()
            if number % 5 == 0:
                replaced(path, sources[number % 2])
            stop.wait(0.0005 * (number % 7))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(20 if LONG else 2):
            for words in COMMANDS:
                done = command(*(path if word == "{path}" else word for word in words))
                assert not FAULT.search(done.out + done.err) and done.code in (0, 1, 2), (words, done.err)
    finally:
        stop.set()
        thread.join()
