"""Deaths other than SIGKILL in the middle of a stream, the kernel's for want of memory, and a first process's duties."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact import Debugger
from reenact.supervise.supervisor import oom_kills
from support.examples import long, one_in
from support.forked import type_in
from support.harness import Finished, Lines, environment, finish, only_file, run_script, wait_until
from support.provider import Provider

STREAM = """
import ctypes, faulthandler, functools, os, resource, signal, sys, threading, time
import httpx

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
BODY = {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}

def stream(act=None, at=8):
    with httpx.stream("POST", sys.argv[1] + "/v1/messages", json={**BODY, "stream": True}, timeout=60) as answer:
        for number, piece in enumerate(answer.iter_raw()):
            if number == at and act is not None:
                act()
"""
DEATHS = {
    "os._exit": ("os._exit(7)", 7),
    "sys.exit": ("sys.exit(7)", 7),
    "exception": ("1 / 0", 1),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", -15),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2),
    "SIGINT, left alone": ("signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), signal.SIGINT)", -2),
    "SIGSEGV": ("ctypes.string_at(0)", -11),
    "SIGSEGV with faulthandler": ("faulthandler.enable(); ctypes.string_at(0)", -11),
    "SIGABRT": ("os.abort()", -6),
    "SIGBUS": ("os.kill(os.getpid(), signal.SIGBUS)", -7),
    "recursion": ("(lambda f: f(f))(lambda f: f(f))", 1),
    "C stack": ("sys.setrecursionlimit(10**9); f = lambda: sorted([1], key=lambda _: f()); f()", -11),
}
SILENT = {
    "os._exit",
    "SIGTERM",
    "SIGINT, left alone",
    "SIGSEGV",
    "SIGSEGV with faulthandler",
    "SIGABRT",
    "SIGBUS",
    "C stack",
}
"""Those of which the process itself can say nothing."""


def run(folder: Path, source: str, *args: object, options: tuple[str, ...] = ()) -> Finished:
    (folder / "agent.py").write_text(STREAM + textwrap.dedent(source))
    command = [sys.executable, "-m", "reenact", "run", "--out", "runs", *options, "agent.py", *map(str, args)]
    return finish(start(command, folder))


def start(command: list[str], folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
        cwd=folder, env=environment(), start_new_session=True,
    )  # fmt: skip


def shown(folder: Path) -> str:
    done = type_in(["show", "runs"], folder, environment())
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def without_ours(text: str) -> list[str]:
    """What the program itself said; where things are differs from run to run."""
    lines = [line for line in text.splitlines() if not line.startswith("reenact: ")]
    return [
        line for line in lines if "0x" not in line and "Current thread" not in line and "^^^^" not in line
    ]


@pytest.mark.parametrize("how", one_in(5, DEATHS))
def test_a_death_in_a_stream(how: str, tmp_path: Path, provider: Provider) -> None:
    act, code = DEATHS[how]
    source = f"def die():\n    {act}\nstream(die)\n"
    url = provider.url("long-200,hang-30")
    (tmp_path / "agent.py").write_text(STREAM + source)
    bare = finish(start([sys.executable, "agent.py", url], tmp_path))
    finished = run(tmp_path, source, url)
    assert bare.code == finished.code == code, finished.err
    assert finished.out == bare.out
    if "recursion" not in how:
        printed, bare_printed = without_ours(finished.err), without_ours(bare.err)
        assert [line for line in printed if "reenact" not in line] == bare_printed
    path = only_file(tmp_path / "runs")
    lines = Lines(path)
    assert lines.torn == []
    lines.assert_gapless()
    assert lines.events[-1]["exit"] == code and lines.events[-1]["by"] == "supervisor"
    (call,) = Debugger.load(path).calls()
    part = path.with_suffix(".blobs") / f"{lines.of('model.request')[0]['call']}.part"
    assert call.is_open == part.exists() == (how in SILENT)
    if call.is_open:
        assert provider.log[-1].answer.startswith(part.read_bytes()) and part.stat().st_size > 500
        assert "waiting for the model" in shown(tmp_path).splitlines()[0]
    else:
        assert call.end is not None
        assert call.end.ended in ("closed", "cancelled", "error"), call.end


MEMORY = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def small_memory() -> Iterator[Path]:
    """A control group (version 1) of 160 MB."""
    group = MEMORY / f"reenact-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(160 << 20))
    except OSError:
        pytest.skip("no control group to be had: not root, or version 2 only")
    try:
        yield group
    finally:
        until = time.monotonic() + 10
        while time.monotonic() < until:
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


@pytest.mark.parametrize("who", [long("agent"), "child"])
def test_the_kernel_kills_for_memory_in_a_stream(
    who: str, small_memory: Path, tmp_path: Path, provider: Provider
) -> None:
    source = """
    def eat():
        held = []
        while True:
            held.append(b"x" * (8 << 20))
    """ + (
        "stream(eat)" if who == "agent" else
        "pid = os.fork()\n    if not pid:\n        stream(eat)\n    os.waitpid(pid, 0)\n    stream()"
    )  # fmt: skip
    url = provider.url("long-40" if who == "child" else "long-200,hang-30")
    (tmp_path / "agent.py").write_text(STREAM + textwrap.dedent(source))
    inner = f'echo $$ > {small_memory}/cgroup.procs; exec "$@"'
    command = [sys.executable, "-m", "reenact", "run", "--out", "runs", "agent.py", url]
    finished = finish(start(["sh", "-c", inner, "sh", *command], tmp_path))
    assert "oom_kill 1" in (small_memory / "memory.oom_control").read_text()
    assert finished.code == (-signal.SIGKILL if who == "agent" else 0), finished.err
    files = sorted((tmp_path / "runs").glob("*.jsonl"), key=lambda path: ".p" in path.name)
    end = Lines(files[0]).events[-1]
    assert end["oom_kills"] == 1 and end["exit"] == (-9 if who == "agent" else 0)
    still_open = [call for call in Debugger.load(files[0]).calls() if call.is_open]
    assert len(still_open) == 1
    part = files[0].with_suffix(".blobs") / f"{still_open[0].id}.part"
    assert (
        any(each.answer.startswith(part.read_bytes()) for each in provider.log) and part.stat().st_size > 500
    )
    first = shown(tmp_path).splitlines()[0]
    assert "waiting for the model" in first and (who == "child" or "the kernel killed for memory" in first)


@pytest.mark.parametrize(
    ("files", "own", "count"),
    [
        ({"g/memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"}, "0::/g\n", 2),
        ({"memory.events": "oom_kill 5\n"}, "0::/docker/ab\n", 5),
        ({"memory/g/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"}, "7:cpu:/\n4:memory:/g\n0::/\n", 4),
        ({"memory/memory.oom_control": "oom_kill_disable 0\noom_kill 1\n"}, "4:memory:/docker/ab\n", 1),
        ({"memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}, "4:memory:/\n", None),
        ({"memory.events": "oom_kill lots\n"}, "0::/\n", None),
        ({}, "0::/\n", None),
        ({}, "garbage\n\n::\n", None),
        ({}, "", None),
    ],
)  # fmt: skip
def test_both_layouts_of_control_groups(
    files: dict[str, str], own: str, count: int | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cgroup" / name).write_text(text)
    (tmp_path / "self").write_text(own)
    assert oom_kills(str(tmp_path / "cgroup"), str(tmp_path / "self")) == count


@pytest.mark.long
def test_no_memory_left_to_record_with(tmp_path: Path, provider: Provider) -> None:
    """The recorder's allocations fail; the agent's call does not."""
    source = """
    import httpx, resource, sys
    import reenact
    reenact.install()
    BODY = {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    ask = lambda: httpx.post(sys.argv[1] + "/v1/messages", json=BODY, timeout=60).json()["content"][0]["text"]
    ask()
    from reenact.capture.recorder.recorder import Recorder
    from reenact.capture.http.response_body import Arrived
    grab = lambda *args, **options: bytearray(1 << 40)
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
    for owner, name in ((Arrived, "data"), (Arrived, "add"), (Recorder, "emit_request"), (Recorder, "emit_answer")):
        kept = getattr(owner, name)
        setattr(owner, name, grab)
        print(ask())
        setattr(owner, name, kept)
    print(ask())
    """
    finished = run_script(source, provider.url(), cwd=tmp_path, REENACT_DIR=str(tmp_path / "runs"))
    assert finished.code == 0 and finished.out == "Lisbon has seven hills.\n" * 5, finished.err
    assert finished.err.splitlines() == finished.ours and "MemoryError" in finished.err
    lines = Lines(only_file(tmp_path / "runs"))
    assert not lines.torn and len(lines.of("model.response")) >= 3


UNSHARE = ["unshare", "--pid", "--mount-proc", "--fork", "--kill-child"]


def test_the_first_process_leaves_no_zombie_and_passes_signals_on(tmp_path: Path, provider: Provider) -> None:
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        pytest.skip("no pid namespace to be had")
    source = """
    import subprocess
    got = []
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        signal.signal(number, lambda number, _: got.append(number))
    for _ in range(20):
        subprocess.run(["sh", "-c", "sleep 0.05 & sleep 0.01 & true"])
    stream()
    def states():
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    yield int(name), *open(f"/proc/{name}/stat").read().rpartition(")")[0::2]
                except (FileNotFoundError, ProcessLookupError):
                    pass
    def is_left(pid, name, state):
        return state.split()[0] == "Z" or "(sleep" in name
    until = time.monotonic() + 60
    while (left := [each for each in states() if is_left(*each)]) and time.monotonic() < until:
        time.sleep(0.05)
    print("zombies", len(left), "first", 1 in dict(each[:2] for each in states()), flush=True)
    until = time.monotonic() + 60
    while len(got) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    print(sorted(got) == sorted((signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)), flush=True)
    sys.exit(9)
    """
    (tmp_path / "agent.py").write_text(STREAM + textwrap.dedent(source))
    agent = [sys.executable, "-m", "reenact", "run", "--out", "runs", "agent.py", provider.url("long-20")]
    child = start([*UNSHARE, *agent], tmp_path)
    assert child.stdout is not None
    assert child.stdout.readline() == "zombies 0 first True\n"
    (first,) = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP):
        os.kill(int(first), number)
        time.sleep(0.05)
    finished = finish(child)
    assert (finished.code, finished.out) == (9, "True\n"), finished.err
    end = Lines(only_file(tmp_path / "runs")).events[-1]
    assert (end["exit"], end["tot"]["turns"]) == (9, 1)


def test_a_killed_supervisor_leaves_the_agent_to_its_call(tmp_path: Path, provider: Provider) -> None:
    """Only the supervisor dies: the agent goes on, and what it records stays readable."""
    source = "stream()\nopen('done', 'w').close()"
    (tmp_path / "agent.py").write_text(STREAM + source)
    url = provider.url("long-30,drip-20@orphan")
    child = start([sys.executable, "-m", "reenact", "run", "--out", "runs", "agent.py", url], tmp_path)
    wait_until(lambda: any("@orphan" in each.target for each in list(provider.log)), child)
    os.kill(child.pid, signal.SIGKILL)
    until = time.monotonic() + 60
    while not (tmp_path / "done").exists() and time.monotonic() < until:
        time.sleep(0.02)
    child.communicate(timeout=60)
    lines = Lines(only_file(tmp_path / "runs"))
    assert lines.kinds() == ["run.start", "model.request", "model.response", "run.end"]
    assert lines.of("model.response")[0]["ended"] == "complete"
