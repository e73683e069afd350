"""Hostile conditions while calls are under way: the agent gets what it gets without us, and the file stays readable."""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from reenact import Debugger
from support.examples import LONG, long, one_in
from support.forked import do_script
from support.harness import Finished, Lines, environment
from support.provider import Provider

BEFORE, DURING, LAST = "before", "during", "last"
AGENT = """
import asyncio, contextvars, gc, hashlib, os, random, resource, shutil, signal, subprocess, sys, threading, time
URL, WAY, RUNS = sys.argv[1:4]
sys.argv[3:] = []
os.environ["REENACT_DIR"] = RUNS
import httpx
if WAY == "recorded":
    import reenact
    reenact.install()
BODY = {"model": "c", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}

def ask(words="text"):
    answer = httpx.post(f"{URL}/s/{words}/v1/messages", json=BODY, timeout=60, verify=False)
    return answer.json()["content"][0]["text"]

def stream(act=lambda: None, stage="never", words="long-100"):
    got = hashlib.sha256()
    if stage == "before":
        act()
    ask_for = {"json": {**BODY, "stream": True}, "timeout": 60, "verify": False}
    with httpx.stream("POST", f"{URL}/s/{words}/v1/messages", **ask_for) as answer:
        for number, piece in enumerate(answer.iter_raw()):
            got.update(piece)
            if stage == "during" and number == 10 or stage == "last" and b"message_stop" in piece:
                act()
    return got.hexdigest()
"""


def play(folder: Path, source: str, provider: Provider, *, recorded: bool, runs: str = "runs") -> Finished:
    base = provider.url().rpartition("/s/")[0]
    way = "recorded" if recorded else "bare"
    script = folder / "agent.py"
    script.write_text(AGENT + textwrap.dedent(source))
    done = do_script(script, [base, way, runs], environment())
    return Finished(done.returncode, done.stdout.decode(), done.stderr.decode())


def both(folder: Path, source: str, provider: Provider, *, runs: str = "runs") -> Finished:
    """Play it bare and recorded: the same output, and on stderr one line of ours for a cause at most."""
    bare = play(folder, source, provider, recorded=False, runs=runs)
    assert bare.code == 0 and bare.err == "", bare.err
    finished = play(folder, source, provider, recorded=True, runs=runs)
    assert finished.code == 0 and finished.out == bare.out, finished.err
    assert finished.err.splitlines() == finished.ours, finished.err
    assert len(finished.ours) <= 4 and not any("Error: 'NoneType'" in line for line in finished.ours), (
        finished.err
    )
    return finished


def calls_of(folder: Path) -> Lines:
    """The lines of the only run in a folder, readable by the desk, too."""
    files = sorted(path for path in folder.glob("*.jsonl") if ".p" not in path.name)
    assert len(files) == 1, files
    lines = Lines(files[0])
    assert len(lines.torn) <= 1, lines.torn
    Debugger.load(files[0]).turns()
    return lines


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("stage", [long(BEFORE), DURING, long(LAST)])
def test_a_disk_fills_up(stage: str, small_disk: Path, tmp_path: Path, provider: Provider) -> None:
    source = f"""
    print(ask())
    def act():
        with open(os.path.dirname(RUNS) + "/ballast", "ab", buffering=0) as file:
            for size in (4096, 1):
                try:
                    while file.write(b"x" * size):
                        pass
                except OSError:
                    pass
    print(stream(act, {stage!r}), ask())
    """
    bare = play(tmp_path, source, provider, recorded=False, runs=str(small_disk / "runs"))
    (small_disk / "ballast").unlink()
    finished = play(tmp_path, source, provider, recorded=True, runs=str(small_disk / "runs"))
    assert finished.code == bare.code == 0 and finished.out == bare.out, finished.err
    assert finished.err.splitlines() == finished.ours and finished.ours, finished.err
    lines = calls_of(small_disk / "runs")
    assert lines.of("model.request")[0]["call"] == lines.of("model.response")[0]["call"]


FOLDER = {
    "deleted": "shutil.rmtree(RUNS)",
    "replaced by a file": "shutil.rmtree(RUNS); open(RUNS, 'w').write('mine')",
    "renamed": "os.rename(RUNS, RUNS + '.old')",
    "chdir": "os.chdir('/')",
    "blobs deleted": "[shutil.rmtree(RUNS + '/' + name) for name in os.listdir(RUNS) if name.endswith('.blobs')]",
    "another user": "os.setgroups([]); os.setgid(65534); os.setuid(65534); os.umask(0o777)",
    "no descriptor left": "limit = resource.getrlimit(resource.RLIMIT_NOFILE); resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit[1]))",
    "small recursion limit": "sys.setrecursionlimit(120)",
    "gc all the time": "gc.set_threshold(1)",
    "environment gone": "os.environ.clear()",
    "stderr closed": "os.close(2); sys.stderr = None",
    "no thread to be had": "import _thread; _thread.start_new_thread = None; threading.Thread.start = None",
}  # fmt: skip


@pytest.mark.parametrize("stage", [long(BEFORE), DURING, long(LAST)])
@pytest.mark.parametrize("what", one_in(3, FOLDER))
def test_the_ground_moves(what: str, stage: str, tmp_path: Path, provider: Provider) -> None:
    """Bare and recorded do the same; RUNS is a folder of the agent's in both."""
    if stage == BEFORE and what == "no descriptor left":
        stage = DURING  # before it no socket can be had
    after = "resource.setrlimit(resource.RLIMIT_NOFILE, limit)" if what == "no descriptor left" else "pass"
    source = f"""
    print(ask())
    os.makedirs(RUNS, exist_ok=True)
    def act():
        global limit
        {FOLDER[what]}
    print(stream(act, {stage!r}))
    {after}
    print(ask(), ask())
    if os.path.isfile(RUNS):
        print(open(RUNS).read())
        os.unlink(RUNS)
    """
    both(tmp_path, source, provider)
    for folder in (tmp_path / "runs", tmp_path / "runs.old"):
        for path in folder.glob("*.jsonl"):
            lines = Lines(path)
            assert not lines.torn
            Debugger.load(path).turns()
    if what not in ("deleted", "replaced by a file", "renamed", "another user", "no descriptor left"):
        lines = calls_of(tmp_path / "runs")
        assert len(lines.of("model.request")) == len(lines.of("model.response")) == 4
        assert lines.of("model.response")[1]["ended"] == "complete"
    assert not list(tmp_path.glob("runs*/*.blobs/*.part")) or what in ("renamed", "another user")


def test_descriptors_that_became_the_agents_own_are_not_written_to(
    tmp_path: Path, provider: Provider
) -> None:
    """A daemon closes all descriptors it finds, here in the middle of a stream, and opens files of its own."""
    source = """
    files = []
    def act():
        for name in os.listdir("/proc/self/fd"):
            try:
                is_socket = os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
            except OSError:
                continue
            if int(name) > 2 and not is_socket:
                os.close(int(name))
        files.extend(os.open(f"mine{n}", os.O_RDWR | os.O_CREAT | os.O_TRUNC) for n in range(20))
    print(ask(), stream(act, "during"), ask())
    for fd in files:
        print(os.fstat(fd).st_size, end=" ")
        os.close(fd)
    """
    finished = both(tmp_path, source, provider)
    assert finished.out.splitlines()[1].split() == ["0"] * 20
    assert len(calls_of(tmp_path / "runs").of("model.response")) == 3


@pytest.mark.long
def test_many_streams_at_once_take_few_descriptors(tmp_path: Path, provider: Provider) -> None:
    source = """
    async def one(client, all_there, go):
        async with client.stream("POST", f"{URL}/s/long-100/v1/messages", json={**BODY, "stream": True}) as answer:
            got, pieces = b"", answer.aiter_raw()
            async for piece in pieces:
                got += piece
                if not all_there.is_set():
                    count.append(1)
                    if len(count) == 120:
                        descriptors.append(len(os.listdir("/proc/self/fd")))
                        all_there.set()
                    await all_there.wait()
            return len(got)

    async def main():
        all_there = asyncio.Event()
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(limits=limits, timeout=60, verify=False) as client:
            return await asyncio.gather(*(one(client, all_there, None) for _ in range(120)))

    count, descriptors = [], []
    ask()
    print(set(asyncio.run(main())))
    print(descriptors[0], file=open(f"{WAY}.count", "w"))
    """
    both(tmp_path, source, provider)
    used = {way: int((tmp_path / f"{way}.count").read_text()) for way in ("bare", "recorded")}
    assert used["recorded"] - used["bare"] <= 40, used
    lines = calls_of(tmp_path / "runs")
    assert [event["ended"] for event in lines.of("model.response")] == ["complete"] * 121
    assert not list(tmp_path.glob("runs/*.blobs/*.part"))


@pytest.mark.parametrize("how", one_in(2, ["sys.exit()", "os._exit(0)", "raise LookupError", "return"]))
def test_a_fork_in_the_middle_of_a_stream(how: str, tmp_path: Path, provider: Provider) -> None:
    """The child unwinds its copy of the call, as it does without us; the parent's call is untouched."""
    source = f"""
    class Gone(Exception): pass
    def act():
        pid = os.fork()
        if pid == 0:
            os.close(2)
            sys.stderr = None
            {"raise Gone" if how == "return" else how}
        os.waitpid(pid, 0)
    try:
        print(stream(act, "during", "long-100,drip-2"), flush=True)
    except Gone:
        os._exit(0)
    print(ask())
    """
    both(tmp_path, source, provider)
    lines = calls_of(tmp_path / "runs")
    lines.assert_gapless()
    assert [event["ended"] for event in lines.of("model.response")] == ["complete", "complete"]
    (path,) = [path for path in (tmp_path / "runs").glob("*.jsonl") if ".p" not in path.name]
    found = Debugger.load(path)
    assert len(found.calls()) == 2 and not any(call.is_open for call in found.calls())


@pytest.mark.parametrize("daemon", [True, long(False)])
def test_threads_in_a_stream_at_interpreter_exit(daemon: bool, tmp_path: Path, provider: Provider) -> None:
    source = f"""
    begun = threading.Barrier(5)
    def work():
        stream(begun.wait, "during", "long-60,drip-10")
    threads = [threading.Thread(target=work, daemon={daemon}) for _ in range(4)]
    for thread in threads:
        thread.start()
    begun.wait()
    print("over")
    """
    both(tmp_path, source, provider)
    lines = calls_of(tmp_path / "runs")
    assert len(lines.of("model.request")) == 4
    ended = [event["ended"] for event in lines.of("model.response")]
    assert len(ended) == 4 or daemon


ROUNDS = 400 if LONG else 40


def test_an_interrupt_at_any_moment_reaches_the_agent(tmp_path: Path, provider: Provider) -> None:
    """Each one that was raised is one that the agent gets, but what a finaliser swallows as it does without us."""
    source = f"""
    import httpcore._synchronization  # an interrupt between acquire and return leaves its lock taken for ever
    httpcore._synchronization.ThreadLock.__enter__ = lambda lock: lock  # and there is only one thread
    httpcore._synchronization.ThreadLock.__exit__ = lambda lock, *_: None
    raised, caught, odd = 0, 0, []
    def interrupt(*_):
        global raised
        raised += 1
        raise KeyboardInterrupt
    signal.signal(signal.SIGINT, interrupt)
    ignored = []
    sys.unraisablehook = lambda unraisable: ignored.append(repr(unraisable.exc_value))
    chance = random.Random(5)
    ask(); stream(words="text")
    def timed():
        began = time.perf_counter()
        stream(words="text")
        return time.perf_counter() - began
    took = min(timed() for _ in range(5))
    number = 0
    while number < {ROUNDS} or raised <= {ROUNDS} // 4 and number < 20 * {ROUNDS}:
        number += 1
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, interrupt)
            signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, took))
            stream(words="text") if number % 2 else ask()
            signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            caught += 1
        except Exception as exc:
            odd.append(repr(exc))
    signal.setitimer(signal.ITIMER_REAL, 0)
    gc.collect()
    print(raised - caught - len(ignored), odd, file=open("counted", "w"))
    print(raised, caught, len(ignored), file=open(f"{{WAY}}.counts", "w"))
    print(ask())
    """
    both(tmp_path, source, provider)
    assert (tmp_path / "counted").read_text() == "0 []\n"
    raised, caught, ignored = map(int, (tmp_path / "recorded.counts").read_text().split())
    assert raised > ROUNDS // 4 and ignored <= raised // 10 + 3, (raised, caught, ignored)
    lines = calls_of(tmp_path / "runs")
    assert not lines.torn
    begun = [event["call"] for event in lines.of("model.request")]
    ended = [event["call"] for event in lines.of("model.response")]
    assert len(set(begun)) == len(begun) and len(set(ended)) == len(ended)
    assert set(ended) <= set(begun) and len(begun) - len(ended) <= raised // 2
    # What the interrupts left behind may end after the last call.
    assert [event["ended"] for event in lines.of("model.response") if event["call"] == begun[-1]] == [
        "complete"
    ]


def test_a_task_is_cancelled_at_every_step_of_the_loop(tmp_path: Path, provider: Provider) -> None:
    source = """
    async def call():
        async with httpx.AsyncClient(timeout=60, verify=False) as client:
            ask_for = {"json": {**BODY, "stream": True}}
            async with client.stream("POST", f"{URL}/s/text/v1/messages", **ask_for) as answer:
                async for _ in answer.aiter_raw():
                    pass
            return "done"

    async def cancelled_after(steps):
        task = asyncio.ensure_future(call())
        for step in range(steps):
            if task.done():
                break
            # A provider that is slow to answer is waited for, too, in the end.
            await asyncio.sleep(0 if step < 1_000 else 0.001)
        task.cancel()
        try:
            return await task
        except asyncio.CancelledError:
            return "cancelled"

    async def main():
        outcomes, steps = [], 0
        while outcomes[-3:] != ["done"] * 3 and steps < 20_000:
            outcomes.append(await cancelled_after(steps))
            steps += 1 if steps < 40 else steps // 10
        return outcomes

    found = asyncio.run(main())
    print(sorted(set(found)), found[0])
    """
    both(tmp_path, source, provider)
    lines = calls_of(tmp_path / "runs")
    lines.assert_gapless()
    begun = [event["call"] for event in lines.of("model.request")]
    ended = {event["call"]: event["ended"] for event in lines.of("model.response")}
    assert sorted(ended) == sorted(begun) and len(begun) > 10
    assert set(ended.values()) <= {"cancelled", "closed", "complete"} and "cancelled" in ended.values()
    assert not list(tmp_path.glob("runs/*.blobs/*.part"))


@pytest.mark.long
def test_signal_handlers_that_call_a_model_themselves(tmp_path: Path, provider: Provider) -> None:
    """Also in the middle of our own writing, or of another call's transport."""
    source = f"""
    made = []
    def handler(*_):
        made.append(ask())
    signal.signal(signal.SIGALRM, handler)
    chance = random.Random(7)
    ask(), stream()
    for number in range({ROUNDS}):
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0005, 0.02))
        stream(words="text")
        while len(made) <= number:
            time.sleep(0.0005)
    print(set(made), len(made))
    """
    both(tmp_path, source, provider)
    lines = calls_of(tmp_path / "runs")
    assert not lines.torn
    assert sorted(event["step"] for event in lines.all) == list(range(1, len(lines.all) + 1))
    assert len(lines.of("model.request")) == len(lines.of("model.response")) == 2 * ROUNDS + 2


@pytest.mark.long
def test_a_model_call_at_any_line_of_ours_loses_nothing_and_ends_nothing_twice(
    tmp_path: Path, provider: Provider
) -> None:
    """As a signal handler may make one."""
    source = """
    OURS = os.sep + os.path.join("reenact", "capture") + os.sep
    def interrupted(at, work):
        "Do some work, and call a model at a line of ours; False if there are not so many."
        count, done = 0, False
        def line(frame, event, arg):
            nonlocal count, done
            if not done and event == "line":
                count += 1
                if count == at:
                    done = True
                    sys.settrace(None)
                    ask()
            return line
        sys.settrace(lambda frame, event, arg: line if not done and OURS in frame.f_code.co_filename else None)
        work()
        sys.settrace(None)
        return done
    print(ask(), stream(words="text"))
    for work in (ask, lambda: stream(words="text")):
        at = 1
        while interrupted(at, work):
            at += 1
    """
    both(tmp_path, source, provider)
    lines = calls_of(tmp_path / "runs")
    begun = [event["call"] for event in lines.of("model.request")]
    ended = [event["call"] for event in lines.of("model.response")]
    assert sorted(ended) == sorted(begun) and len(begun) > 50
