"""``reenact run`` with real processes and a real provider: what dies is recorded, what lives is not disturbed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from support.examples import long, one_in
from support.forked import type_in
from support.harness import Finished, Lines, environment, finish, only_file, wait_until
from support.provider import Provider

ASK = """
import json, os, signal, subprocess, sys, time, urllib.request

BODY = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}

def call(base, **more):
    url, headers = base + "/v1/messages", {"content-type": "application/json"}
    return urllib.request.urlopen(urllib.request.Request(url, json.dumps({**BODY, **more}).encode(), headers), timeout=60)

def ask(base, **more):
    with call(base, **more) as answer:
        answer.read()
        return answer.status

def stream(base):
    with call(base, stream=True) as answer:
        for number, piece in enumerate(iter(answer.read1, b"")):
            print("piece", number, flush=True)
"""


def begin(
    folder: Path, source: str, *args: object, options: tuple[str, ...] = (), session: bool = True, **more: str
) -> subprocess.Popen[str]:
    """Start ``reenact run agent.py args``; what it records goes to the folder ``runs``."""
    (folder / "agent.py").write_text(ASK + textwrap.dedent(source))
    command = ["--out", "runs", *options, "agent.py", *map(str, args)]
    return subprocess.Popen(
        [sys.executable, "-m", "reenact", "run", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(**more),
        start_new_session=session,
        process_group=None if session else 0,
    )


def run(folder: Path, source: str, *args: object, options: tuple[str, ...] = (), **more: str) -> Finished:
    return finish(begin(folder, source, *args, options=options, **more))


def main_file(folder: Path) -> Path:
    return only_file_of(folder / "runs")


def only_file_of(folder: Path) -> Path:
    found = [path for path in folder.glob("*.jsonl") if ".p" not in path.name]
    assert len(found) == 1, found
    return found[0]


def recorded(folder: Path) -> Lines:
    found = Lines(only_file(folder / "runs"))
    assert found.torn == []
    found.assert_gapless()
    return found


def family(folder: Path) -> list[Lines]:
    """The lines of the first process, and those of each further one."""
    first = main_file(folder)
    return [Lines(first), *(Lines(path) for path in sorted((folder / "runs").glob(f"{first.stem}.p*.jsonl")))]


def show(folder: Path) -> str:
    done = type_in(["show", folder / "runs"], folder, environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


def wait_for_line(child: subprocess.Popen[str], line: str) -> None:
    assert child.stdout is not None
    while (got := child.stdout.readline()) != line + "\n":
        assert got, "the agent ended early"


@pytest.mark.parametrize("code", one_in(2, [0, 1, 3, 130], first=1))
def test_the_exit_code_is_the_agents(code: int, tmp_path: Path, provider: Provider) -> None:
    finished = run(tmp_path, f"print(ask(sys.argv[1]))\nsys.exit({code})", provider.url())
    assert (finished.code, finished.out) == (code, "200\n")
    found = recorded(tmp_path)
    assert found.kinds() == ["run.start", "model.request", "model.response", "run.end", "run.end"]
    end = found.events[-1]
    assert (end["status"], end["exit"], end["by"]) == ("error" if code else "ok", code, "supervisor")
    assert end["unseen"] == [] and end["tot"]["turns"] == 1 and end["tot"]["in"] == 25
    assert end["duration_ms"] > 0 and end["peak_bytes"] > 1 << 20
    assert len(finished.err.splitlines()) == 1, finished.err
    assert finished.ours[0].endswith(f"  {end['status']}, 1 call, 29 tokens")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
def test_the_supervisor_dies_by_the_same_signal(number: int, tmp_path: Path) -> None:
    finished = run(tmp_path, f"os.kill(os.getpid(), {int(number)})")
    assert finished.code == -number
    end = recorded(tmp_path).one("run.end")
    assert (end["status"], end["exit"]) == ("killed", -number)


@pytest.mark.parametrize(
    ("source", "at"),
    [
        ("stream(sys.argv[1])", "piece 5"),
        ("ask(sys.argv[1])", None),
        ('from reenact import Tap\n@Tap().tool\ndef dig(): print("digging", flush=True); time.sleep(60)\ndig()', "digging"),
    ],
    ids=["in a stream", "while waiting", "in a tool"],
)  # fmt: skip
@pytest.mark.parametrize("attempt", [0, long(1), long(2)])
def test_a_kill_leaves_the_call_it_was_in(
    source: str, at: str | None, attempt: int, tmp_path: Path, provider: Provider
) -> None:
    scenario = "text,hang-6" if at == "piece 5" else "silent"
    child = begin(tmp_path, source, provider.url(f"{scenario}@kill{attempt}"))
    if at is None:
        wait_until(lambda: any(f"kill{attempt}" in each.target for each in list(provider.log)), child)
    else:
        wait_for_line(child, at)
    time.sleep(0.05)
    found = Lines(only_file(tmp_path / "runs"))
    os.kill(found.one("run.start")["pid"], signal.SIGKILL)
    assert finish(child).code == -signal.SIGKILL
    provider.reset()
    found = recorded(tmp_path)
    begun = found.events[1]
    assert begun["kind"] == ("tool.called" if at == "digging" else "model.request")
    assert not found.of("model.response") and not found.of("tool.result")
    text = show(tmp_path)
    assert "killed" in text and "signal SIGKILL" in text
    assert ("died inside tool dig" if at == "digging" else "died while waiting for the model") in text
    if at == "piece 5":
        parts = list((tmp_path / "runs").glob("*.blobs/*.part"))
        assert [part.stem for part in parts] == [begun["call"]]
        assert b"message_start" in parts[0].read_bytes()


def test_a_kill_with_calls_in_flight_in_children_too(tmp_path: Path, provider: Provider) -> None:
    source = """
    import threading
    if len(sys.argv) == 2:
        subprocess.Popen([sys.executable, __file__, sys.argv[1], "child"])
        for _ in range(2):
            threading.Thread(target=ask, args=(sys.argv[1],)).start()
    else:
        ask(sys.argv[1])
    """
    child = begin(tmp_path, source, provider.url("silent@many"))
    wait_until(lambda: sum("@many" in each.target for each in list(provider.log)) == 3, child)
    os.killpg(child.pid, signal.SIGKILL)
    assert finish(child).code == -signal.SIGKILL
    provider.reset()
    first, second = family(tmp_path)
    assert [len(each.of("model.request")) for each in (first, second)] == [2, 1]
    assert not first.of("run.end"), "the supervisor was killed as well"
    assert "died while waiting for the model" in show(tmp_path)


@pytest.mark.parametrize(
    ("number", "whom"),
    [
        (signal.SIGTERM, "supervisor"),
        (signal.SIGINT, "group"),
        (signal.SIGHUP, "supervisor"),
        (signal.SIGUSR1, "group"),
        long(signal.SIGTERM, "group"),
        long(signal.SIGINT, "supervisor"),
        long(signal.SIGHUP, "group"),
        long(signal.SIGUSR1, "supervisor"),
    ],
)
def test_a_signal_reaches_the_agent_exactly_once(number: int, whom: str, tmp_path: Path) -> None:
    source = f"""
    got = []
    signal.signal({int(number)}, lambda *_: got.append(1))
    print("up", flush=True)
    until = time.monotonic() + 60
    while not got and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.4)
    print(len(got))
    sys.exit(7)
    """
    child = begin(tmp_path, source)
    wait_for_line(child, "up")
    time.sleep(0.1)  # the supervisor's listener is up, too
    os.kill(child.pid, number) if whom == "supervisor" else os.killpg(child.pid, number)
    finished = finish(child)
    assert (finished.code, finished.out) == (7, "1\n")


STOPS = {
    "exit 0": ("sys.exit(0)", 0, "stopped"),
    "exit 143": ("sys.exit(143)", 143, "stopped"),
    "the signal again": ("signal.signal(15, signal.SIG_DFL); signal.raise_signal(15)", -15, "stopped"),
    "another code": ("sys.exit(1)", 1, "error"),
    "an exception": ("raise ValueError('shutdown')", 1, "error"),
    "no handler": ("", -15, "killed"),
}


@pytest.mark.parametrize("how", one_in(2, STOPS))
def test_a_program_that_handles_sigterm_and_ends_is_stopped_and_did_not_fail(
    how: str, tmp_path: Path
) -> None:
    """Servers end so at every deploy; uvicorn by sending itself the signal again."""
    source, code, status = STOPS[how]
    handler = f"def stop(*_):\n    {source}\nsignal.signal(15, stop)\n" if source else ""
    child = begin(tmp_path, handler + 'print("up", flush=True)\ntime.sleep(60)')
    wait_for_line(child, "up")
    os.kill(child.pid, signal.SIGTERM)
    assert finish(child).code == code
    end = recorded(tmp_path).events[-1]
    assert (end["status"], end["exit"]) == (status, code)
    failed = type_in(["ls", "runs", "--failed", "--json"], tmp_path, environment())
    assert bool(failed.stdout) == (status != "stopped")
    newest = type_in(["show", "@failed"], tmp_path, environment(REENACT_DIR="runs"))
    assert (newest.returncode == 0) == (status != "stopped"), newest.stderr
    assert f"{'·' if status == 'stopped' else '✗'} {status}" in show(tmp_path)


def test_ctrl_c_ends_both_as_it_would_end_the_agent(tmp_path: Path) -> None:
    child = begin(
        tmp_path, 'from reenact import Trace\nTrace().step("begun")\nprint("up", flush=True)\ntime.sleep(60)'
    )
    wait_for_line(child, "up")
    time.sleep(0.1)
    os.killpg(child.pid, signal.SIGINT)
    finished = finish(child)
    assert finished.code == -signal.SIGINT
    assert finished.err.count("KeyboardInterrupt") == 1
    end = recorded(tmp_path).events[-1]
    assert (end["status"], end["exit"], end["error"]["type"]) == ("cancelled", -2, "KeyboardInterrupt")


def test_stop_and_continue_reach_the_agent(tmp_path: Path) -> None:
    # Not in a session of its own: there the kernel ignores this signal.
    child = begin(tmp_path, 'print("up", flush=True)\nprint(sys.stdin.readline().strip())', session=False)
    wait_for_line(child, "up")
    pid = Lines(main_file(tmp_path)).one("run.start")["pid"]
    os.kill(child.pid, signal.SIGTSTP)
    wait_until(lambda: state(pid) == state(child.pid) == "T", child)
    os.kill(child.pid, signal.SIGCONT)
    wait_until(lambda: state(pid) != "T", child)
    out, _ = child.communicate("went on\n", timeout=60)
    assert (out, child.returncode) == ("went on\n", 0)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_input_and_output_pass_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import shutil, sys\nshutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    )
    data = bytes(range(256)) * 4096
    command = [sys.executable, "-m", "reenact", "run", "agent.py"]
    done = subprocess.run(
        command, input=data, capture_output=True, cwd=tmp_path, env=environment(), check=True
    )
    assert done.stdout == data


def test_a_reader_sees_the_end_of_output_when_the_agent_closes_it(tmp_path: Path) -> None:
    with begin(tmp_path, 'print("all", flush=True)\nos.close(1)\nsys.stdin.readline()\nos._exit(0)') as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.read() == "all\n", "the supervisor holds no end of the pipe"
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(60) == 0


@pytest.mark.parametrize("closed", one_in(3, [">&-", "<&-", "2>&-", ">&- 2>&- <&-"]))
def test_a_closed_stream_stays_closed(closed: str, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import os\nopen_ones = []\nfor fd in range(3):\n    try:\n        os.fstat(fd)\n        open_ones.append(fd)\n"
        "    except OSError:\n        pass\nopen('streams', 'w').write(repr(open_ones))"
    )
    bare = f"{sys.executable} agent.py {closed}"
    texts = []
    for command in (bare, f"{sys.executable} -m reenact run agent.py {closed}"):
        subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment(), check=True, stdin=subprocess.DEVNULL
        )
        texts.append((tmp_path / "streams").read_text())
    assert texts[0] == texts[1]


def test_a_folder_that_cannot_be_written_costs_one_line(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "runs").write_text("in the way")
    finished = run(tmp_path, "print(ask(sys.argv[1]))", provider.url())
    assert (finished.code, finished.out) == (0, "200\n")
    assert finished.err == f"reenact: {tmp_path}/runs is not a folder; nothing is recorded.\n"
    (tmp_path / "runs").rename(tmp_path / "file")
    finished = run(tmp_path, "print(ask(sys.argv[1]))", provider.url(), options=("--out", "file/runs"))
    assert (finished.code, finished.out) == (0, "200\n")
    assert len(finished.err.splitlines()) == 1 and "could not make" in finished.err


def test_the_first_process_reaps_orphans_and_ends_with_128_and_the_signal(tmp_path: Path) -> None:
    unshare = ["unshare", "--pid", "--fork", "--user", "--map-root-user", "--kill-child"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("no pid namespace to be had")
    (tmp_path / "agent.py").write_text(
        "import os, subprocess, sys, time\n"
        "subprocess.run(['sh', '-c', 'sleep 0.2 & true'])\ntime.sleep(0.6)\nos.kill(os.getpid(), 15)"
    )
    command = [*unshare, sys.executable, "-m", "reenact", "run", "--out", "runs", "agent.py"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=60
    )
    assert done.returncode == 128 + 15, done.stderr
    assert recorded(tmp_path).one("run.end")["exit"] == -15


CHILD = {
    "subprocess": "subprocess.run([sys.executable, '-c', 'import agent, sys; agent.ask(sys.argv[1])', sys.argv[1]])",
    "exec": "os.execv(sys.executable, [sys.executable, '-c', 'import agent, sys; agent.ask(sys.argv[1])', sys.argv[1]])",
    **{
        method: f"""
        import multiprocessing
        child = multiprocessing.get_context("{method}").Process(target=ask, args=(sys.argv[1],))
        child.start()
        child.join()
        """
        for method in ("fork", "spawn", "forkserver")
    },
    "os.fork": "pid = os.fork()\nif not pid:\n    ask(sys.argv[1])\n    os._exit(0)\nos.waitpid(pid, 0)",
    "shell": "os.system(f'{sys.executable} -c \"import agent, sys; agent.ask(sys.argv[1])\" {sys.argv[1]}')",
}


@pytest.mark.parametrize("how", one_in(2, CHILD))
def test_children_record_into_the_same_run(how: str, tmp_path: Path, provider: Provider) -> None:
    body = textwrap.indent(textwrap.dedent(CHILD[how]), "    ")
    finished = run(tmp_path, f"if __name__ == '__main__':\n    ask(sys.argv[1])\n{body}\n", provider.url())
    assert finished.code == 0, finished.err
    assert finished.err.count("\n") == 1 and "2 calls" in finished.err, finished.err
    first, *others = family(tmp_path)
    assert len(first.of("model.request")) == 1
    assert [len(each.of("model.request")) for each in others] == [1]
    assert {event["run"] for each in others for event in each.events} == {first.events[0]["run"]}
    assert others[0].one("proc.start")["parent_w"] == first.events[0]["w"]


def test_a_run_block_inside_is_a_run_of_its_own(tmp_path: Path, provider: Provider) -> None:
    source = """
    import reenact
    ask(sys.argv[1])
    with reenact.run("inner"):
        ask(sys.argv[1])
    """
    assert run(tmp_path, source, provider.url()).code == 0
    files = {Lines(path).events[0]["name"]: Lines(path) for path in (tmp_path / "runs").glob("*.jsonl")}
    assert len(files["agent"].of("model.request")) == len(files["inner"].of("model.request")) == 1
    assert files["inner"].events[0]["parent_run"] == files["agent"].events[0]["run"]


def test_a_large_run_is_continued_in_segments_and_ended_in_the_last(tmp_path: Path) -> None:
    source = """
    from reenact.capture.front import options
    options.Options.segment_bytes = 20_000
    from reenact import Trace
    for n in range(1000): Trace().step("n", text="x" * 100)
    os.kill(os.getpid(), 9)
    """
    assert run(tmp_path, source).code == -9
    files = sorted((tmp_path / "runs").glob("*.jsonl"))
    assert len(files) > 3
    found = Lines(*files)
    found.assert_gapless()
    assert found.events[-1]["kind"] == "run.end" and Lines(files[-1]).of("run.end")


def test_a_terminal_stays_the_agents_and_ctrl_c_comes_once(tmp_path: Path) -> None:
    source = """
    print(os.isatty(0), os.isatty(1), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(0.4)
        print("once", flush=True)
    """
    (tmp_path / "agent.py").write_text(ASK + textwrap.dedent(source))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        command = [sys.executable, "-m", "reenact", "run", "--out", "runs", "agent.py"]
        os.execve(sys.executable, command, environment())
    text = b""
    while b"True True True" not in text:
        text += os.read(terminal, 1000)
    time.sleep(0.2)
    os.write(terminal, b"\x03")
    try:
        while more := os.read(terminal, 1000):
            text += more
    except OSError:
        pass  # Linux's way to say that nobody has the terminal any more
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"once" in text and b"Traceback" not in text
    assert recorded(tmp_path).one("run.end")["status"] == "ok"


def test_a_prefork_server_records_what_its_workers_call(tmp_path: Path, provider: Provider) -> None:
    app = f"""
    def app(environ, start):
        start("200 OK", [])
        return [str(ask({provider.url()!r})).encode()]
    """
    (tmp_path / "app.py").write_text(ASK + textwrap.dedent(app))
    command = ["gunicorn", "--workers", "2", "--bind", "unix:socket", "--no-control-socket", "app:app"]
    child = subprocess.Popen(
        [sys.executable, "-m", "reenact", "run", "--out", "runs", *command],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment(),
        start_new_session=True,
    )  # fmt: skip
    wait_until((tmp_path / "socket").exists, child)
    import httpx

    with httpx.Client(transport=httpx.HTTPTransport(uds=str(tmp_path / "socket")), timeout=60) as client:
        for _ in range(4):
            assert client.get("http://server/").text == "200"
    child.send_signal(signal.SIGTERM)
    finished = finish(child)
    assert finished.code == 0 and "4 calls" in finished.err, finished.err
    first, *workers = family(tmp_path)
    assert first.kinds()[0] == "run.start" and first.kinds()[-1] == "run.end"
    assert sum(len(each.of("model.request")) for each in workers) == 4
