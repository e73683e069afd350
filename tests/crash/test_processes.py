"""Further processes of a run: fork, spawn, forkserver, exec. Own file, own numbers, the parent's run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.harness import Lines, lines, run_script


def family(folder: Path) -> Lines:
    found = Lines(*sorted(folder.glob("*.jsonl")))
    assert found.torn == []
    found.assert_gapless()
    return found


def test_fork_while_other_threads_write(tmp_path: Path) -> None:
    finished = run_script(
        """
import os, sys, threading, warnings
warnings.simplefilter("ignore")  # from 3.12 on Python warns of every fork beside threads, and these are the agent's
from reenact import Tap, Trace
trace = Trace("run.jsonl", redact=False)
tap = Tap("tap.jsonl", redact=False)
stop = False
counts = [0] * 4
def work(n):
    while not stop:
        trace.step("work", who=n, seq=counts[n], payload=["x" * 50] * 20)
        tap.record_model_request({"messages": [{"role": "user", "content": str(counts[n])}]})
        counts[n] += 1
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
for t in threads: t.start()
for child in range(15):
    pid = os.fork()
    if pid == 0:
        for seq in range(20):
            trace.step("child", child=child, seq=seq)
            tap.record_tool_call("t", {"child": child, "seq": seq})
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop = True
for t in threads: t.join()
trace.close(); tap.close()
print(*counts)
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == "", finished.err
    for stem, kind in (("run", "child"), ("tap", "tool.called")):
        parent = lines(tmp_path / f"{stem}.jsonl")
        assert parent.torn == []
        parent.assert_gapless()
        assert not parent.of(kind), "a child wrote into its parent's file"
        assert parent.one("run.end")["dropped"] == 0
        children = Lines(*tmp_path.glob(f"{stem}.p*.jsonl"))
        assert children.torn == []
        children.assert_gapless()
        assert len(children.of(kind)) == 15 * 20
        assert len(children.of("proc.start")) == 15
        assert not children.of("run.end") and not children.of("run.start")
        assert {each["parent_w"] for each in children.of("proc.start")} == {parent.one("run.start")["w"]}
        assert {each["run"] for each in children.events} == {parent.events[0]["run"]}
    for who, count in enumerate(map(int, finished.out.split())):
        seqs = [each["seq"] for each in lines(tmp_path / "run.jsonl").of("work") if each["who"] == who]
        assert seqs == list(range(count))


def test_a_fork_of_a_fork_knows_its_parent_and_shares_the_blobs(tmp_path: Path) -> None:
    finished = run_script(
        """
import os
from reenact import Trace
trace = Trace("run.jsonl", redact=False)
trace.step("tool_result", output="p" * 5000)
if os.fork() == 0:
    trace.step("tool_result", output="p" * 5000)
    if os.fork() == 0:
        trace.step("tool_result", output="g" * 5000)
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
trace.close()
""",
        cwd=tmp_path,
    )
    assert finished.err == ""
    found = family(tmp_path)
    first = found.one("run.start")
    child, grandchild = sorted(found.of("proc.start"), key=lambda each: each["ts"])
    assert child["parent_w"] == first["w"] and grandchild["parent_w"] == child["w"]
    assert {path.name for path in tmp_path.glob("*.jsonl")} == {
        "run.jsonl",
        f"run.p{child['w']}.jsonl",
        f"run.p{grandchild['w']}.jsonl",
    }
    assert len(list((tmp_path / "run.blobs").iterdir())) == 2


def test_a_child_that_records_nothing_leaves_no_file_and_no_end(tmp_path: Path) -> None:
    finished = run_script(
        """
import os, subprocess, sys
import reenact
trace = reenact.Trace("run.jsonl", redact=False)
if os.fork() == 0:
    sys.exit(0)  # with all exit handlers
os.wait()
if os.fork() == 0:
    trace.close()
    os._exit(0)
os.wait()
subprocess.run([sys.executable, "-c", "import reenact"], check=True, preexec_fn=lambda: None)
subprocess.run(["true"], check=True)
with reenact.run("inner", path="inner.jsonl", redact=False):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
trace.step("after")
trace.close()
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == ""
    assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["inner.jsonl", "run.jsonl"]
    assert lines(tmp_path / "run.jsonl").kinds() == ["run.start", "after", "run.end"]


def test_only_the_process_that_started_a_run_ends_it(tmp_path: Path) -> None:
    finished = run_script(
        """
import os, sys
import reenact
with reenact.run("trip", path="run.jsonl", redact=False):
    pid = os.fork()
    reenact.Trace().step("both", child=pid == 0)
    if pid:
        os.waitpid(pid, 0)
# the child leaves the block, too, and exits like any program
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == ""
    found = family(tmp_path)
    assert lines(tmp_path / "run.jsonl").kinds() == ["run.start", "both", "run.end"]
    assert found.one("run.end")["status"] == "ok"
    assert found.one("proc.end")["status"] == "ok"
    assert sorted(each["child"] for each in found.of("both")) == [False, True]


def test_an_exception_in_a_forked_child_is_that_childs(tmp_path: Path) -> None:
    run_script(
        """
import os
from reenact import Trace
trace = Trace("run.jsonl", redact=False)
if os.fork() == 0:
    trace.step("child")
    raise ValueError("child broke")
os.wait()
trace.close()
""",
        cwd=tmp_path,
    )
    assert lines(tmp_path / "run.jsonl").kinds() == ["run.start", "run.end"]
    found = family(tmp_path)
    assert found.one("error")["error"]["message"] == "child broke"
    assert found.one("proc.end")["status"] == "error"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_join_the_run(method: str, tmp_path: Path) -> None:
    finished = run_script(
        """
import multiprocessing, os, sys
import reenact

def work(n):
    tap = reenact.Tap()
    call = tap.record_tool_call("t", {"n": n})
    tap.record_tool_result("t", os.getpid(), None, call=call)
    return tap.run_id

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with reenact.run("trip", path="traces/run.jsonl", redact=False) as run:
        reenact.Trace().step("begun")
        with context.Pool(2) as pool:
            ids = pool.map(work, range(6), chunksize=1)
        single = context.Process(target=work, args=(6,))
        single.start(); single.join()
        assert single.exitcode == 0
        print(set(ids) == {run.run_id})
""",
        method,
        cwd=tmp_path,
    )
    assert finished.out == "True\n" and finished.err == "", finished.err
    folder = tmp_path / "traces"
    found = family(folder)
    start = lines(folder / "run.jsonl").one("run.start")
    assert lines(folder / "run.jsonl").kinds() == ["run.start", "begun", "run.end"]
    assert sorted(each["args"]["n"] for each in found.of("tool.called")) == list(range(7))
    assert len(found.of("tool.result")) == 7
    assert {each["run"] for each in found.events} == {start["run"]}
    assert {each["parent_w"] for each in found.of("proc.start")} == {start["w"]}
    assert len(found.of("run.end")) == len(found.of("run.start")) == 1
    for each in found.of("proc.start"):
        assert (folder / f"run.p{each['w']}.jsonl").exists()


def test_fork_and_exec_joins_by_environment(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(
        "import reenact\nreenact.Trace().step('child')\nreenact.Tap().record_tool_call('t', {})\n"
    )
    finished = run_script(
        """
import os, subprocess, sys
import reenact
with reenact.run("trip", path="run.jsonl", redact=False):
    pid = os.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "child.py"])
    os.waitpid(pid, 0)
    subprocess.run([sys.executable, "child.py"], check=True)
    os.mkdir("elsewhere")
    subprocess.run([sys.executable, "../child.py"], check=True, cwd="elsewhere")
assert "REENACT_RUN" not in os.environ
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == "", finished.err
    found = family(tmp_path)
    assert len(found.of("proc.start")) == len(found.of("child")) == len(found.of("tool.called")) == 3
    assert {each["run"] for each in found.events} == {found.one("run.start")["run"]}


def test_a_run_id_with_spaces_reaches_a_child_whole(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text("import reenact\nreenact.Trace().step('child')\n")
    finished = run_script(
        """
import subprocess, sys
import reenact
with reenact.run("trip", path="a run.jsonl", run_id="my run é %20", redact=False) as run:
    subprocess.run([sys.executable, "child.py"], check=True)
    subprocess.run([sys.executable, "child.py"], check=True, env=run.env())
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == "", finished.err
    assert {each["run"] for each in family(tmp_path).events} == {"my run é %20"}
    assert len(list(tmp_path.glob("a run.p*.jsonl"))) == 2


def test_with_several_runs_open_a_child_joins_only_its_own(tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text("import reenact, sys\nreenact.Trace().step('child', of=sys.argv[1])\n")
    finished = run_script(
        """
import asyncio, os, sys
import reenact
async def one(name, together):
    async with reenact.run(name, path=f"{name}.jsonl", redact=False) as run:
        await together.wait()
        child = await asyncio.create_subprocess_exec(sys.executable, "child.py", name, env=run.env())
        assert await child.wait() == 0
        bare = await asyncio.create_subprocess_exec(sys.executable, "child.py", "nobody")
        assert await bare.wait() == 0
        await together.wait()
async def main():
    together = asyncio.Barrier(2)
    await asyncio.gather(one("a", together), one("b", together))
asyncio.run(main())
""",
        cwd=tmp_path,
        REENACT_DIR=str(tmp_path / "own"),
    )
    assert finished.code == 0 and finished.err == "", finished.err
    for name in ("a", "b"):
        found = Lines(*tmp_path.glob(f"{name}.p*.jsonl"))
        assert [each["of"] for each in found.of("child")] == [name]
    own = Lines(*(tmp_path / "own").glob("*.jsonl"))
    assert [each["of"] for each in own.of("child")] == ["nobody", "nobody"]
    assert len({each["run"] for each in own.events}) == 2


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_fork_inside_a_running_loop(loop: str, tmp_path: Path) -> None:
    finished = run_script(
        f"""
import asyncio, os
import {loop} as loop
import reenact
async def one(n):
    async with reenact.run(f"r{{n}}", path=f"r{{n}}.jsonl", redact=False):
        reenact.Trace().step("before", of=n)
        await asyncio.sleep(0)
        pid = os.fork()
        if pid == 0:
            reenact.Trace().step("child", of=n)
            os._exit(0)
        os.waitpid(pid, 0)
        await asyncio.sleep(0)
        reenact.Trace().step("after", of=n)
async def main():
    await asyncio.gather(*(one(n) for n in range(5)))
loop.run(main())
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == "", finished.err
    for n in range(5):
        assert lines(tmp_path / f"r{n}.jsonl").kinds() == ["run.start", "before", "after", "run.end"]
        child = Lines(*tmp_path.glob(f"r{n}.p*.jsonl"))
        assert child.kinds() == ["proc.start", "child"] and child.one("child")["of"] == n


def test_two_processes_on_one_path_keep_their_runs_and_lines_apart(tmp_path: Path) -> None:
    finished = run_script(
        """
import subprocess, sys
code = '''
import sys
from reenact import Trace
trace = Trace("run.jsonl", redact=False, segment_bytes=20_000)
for seq in range(500):
    trace.step("work", who=sys.argv[1], seq=seq, payload="x" * 100)
trace.close()
'''
children = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(4)]
print(*(child.wait() for child in children))
""",
        cwd=tmp_path,
    )
    assert finished.out.split() == ["0"] * 4 and finished.err == ""
    found = family(tmp_path)
    for who in "0123":
        mine = [each for each in found.of("work") if each["who"] == who]
        assert sorted(each["seq"] for each in mine) == list(range(500))
        assert len({each["run"] for each in mine}) == 1
    assert len(found.of("run.end")) == 4


def test_a_fork_with_a_bus_neither_hangs_nor_hears_the_parents_events_again(tmp_path: Path) -> None:
    finished = run_script(
        """
import os, threading, time
from reenact import EventBus, Trace
bus = EventBus()
received = []
bus.on("**", lambda event: (received.append(event["kind"]), time.sleep(0.0005)))
trace = Trace("run.jsonl", redact=False, bus=bus)
stop = False
def work():
    while not stop: trace.step("parent")
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
codes = []
for _ in range(10):
    pid = os.fork()
    if pid == 0:
        received.clear()
        trace.step("child")
        done = bus.flush(60)
        os._exit(0 if done and received[-1:] == ["child"] and "parent" not in received else 1)
    codes.append(os.waitpid(pid, 0)[1])
stop = True
for t in threads: t.join()
print(codes)
""",
        cwd=tmp_path,
    )
    assert finished.out == f"{[0] * 10}\n", finished.out + finished.err


def test_fork_while_another_thread_begins_the_processs_own_run(tmp_path: Path) -> None:
    finished = run_script(
        """
import os, threading
import reenact
from reenact.capture.runs import current
codes = []
for _ in range(10):
    held, free = threading.Event(), threading.Event()
    def hold():
        with current.making():
            held.set(); free.wait()
    t = threading.Thread(target=hold); t.start(); held.wait()
    pid = os.fork()
    if pid == 0:
        reenact.Trace().step("child")
        os._exit(0)
    codes.append(os.waitpid(pid, 0)[1])
    free.set(); t.join()
print(codes)
""",
        cwd=tmp_path,
    )
    assert finished.out == f"{[0] * 10}\n", finished.err


@pytest.mark.skipif(sys.platform != "linux", reason="vfork and /proc")
def test_a_retained_run_takes_its_childrens_files_with_it(tmp_path: Path) -> None:
    run_script(
        """
import os, sys
from reenact import Trace
for name in ("good", "bad"):
    trace = Trace(f"{name}.jsonl", redact=False, retain="failed")
    trace.step("tool_result", output="x" * 9000)
    if os.fork() == 0:
        trace.step("child")
        sys.exit(0)  # by os._exit() nobody would know that it ended well
    os.wait()
    if name == "bad":
        trace.step("error", err="no")
    trace.close()
""",
        cwd=tmp_path,
    )
    left = sorted(path.name.split(".")[0] for path in tmp_path.iterdir())
    assert left == ["agent", "bad", "bad", "bad"]
