"""Thousands of runs in one process: no event in a wrong run, a bounded number of descriptors."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest

from reenact import Recording
from support.examples import LONG, long
from support.harness import CHILDREN, environment, lines, run_script


def test_thousands_of_unclosed_step_logs_leave_no_descriptor_and_no_run_without_an_end(
    tmp_path: Path,
) -> None:
    count = 10_000 if LONG else 2_000
    finished = run_script(
        """
import os, sys
from reenact import StepLog
def agent(n):
    log = StepLog(f"runs/run-{n}.jsonl", run_id=f"run-{n}", redact=False)
    log.record_llm_call("m", 10, 5, "end_turn", duration_ms=3.5)
    log.record_tool_call("search", {"q": n}, "out", None, 1.0)
    return log.summarize().total_steps
counts = set()
for n in range(int(sys.argv[1])):
    assert agent(n) == 2
    if n % 500 == 0:
        counts.add(len(os.listdir("/proc/self/fd")))
print(counts)
""",
        count,
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == ""
    assert len(eval(finished.out)) == 1, "the number of descriptors changed"
    files = list((tmp_path / "runs").iterdir())
    assert len(files) == count
    for path in files:
        last = path.read_bytes().splitlines()[-1]
        assert b'"kind": "run.end", "status": "unclosed"' in last
    assert Recording.load(str(files[0])).status == "unclosed"


@pytest.mark.long
def test_two_thousand_held_step_logs_share_few_descriptors_and_all_end(tmp_path: Path) -> None:
    finished = run_script(
        """
import os
from reenact import StepLog
logs = [StepLog(f"runs/{n}.jsonl", run_id=f"run-{n}", redact=False) for n in range(2_000)]
for _ in range(2):
    for n, log in enumerate(logs):
        log.record_tool_call("search", {"q": n}, "out", None, 1.0)
print(len(os.listdir("/proc/self/fd")))
""",
        cwd=tmp_path,
    )
    assert finished.code == 0 and finished.err == ""
    assert int(finished.out) < 100
    for n in range(0, 2_000, 7):
        found = lines(tmp_path / "runs" / f"{n}.jsonl")
        assert found.kinds() == ["run.start", "tool_call", "tool_call", "run.end"]
        assert {each["input"]["q"] for each in found.of("tool_call")} == {n}
        assert found.one("run.end")["status"] == "unclosed"


def check_runs(folder: Path, markers: list[str]) -> None:
    """Every event of every run bears the run's marker, and none is missing."""
    assert sorted(path.stem for path in folder.glob("*.jsonl")) == sorted(markers)
    for marker in markers:
        path = folder / f"{marker}.jsonl"
        found = lines(path)
        assert found.torn == []
        found.assert_gapless()
        assert len({each["run"] for each in found.events}) == 1
        assert found.one("run.start")["input"] == {"marker": marker}
        assert found.one("run.end")["status"] == "ok"
        assert len(found.of("model.request")) == len(found.of("model.response")) == 3
        assert len(found.of("tool.called")) == len(found.of("tool.result")) == 6
        assert found.one("thread")["marker"] == marker
        assert all(f'"{marker}' in str(each).replace("'", '"') for each in found.of("tool.called"))
        assert all(each["result"] == f"found {marker}" for each in found.of("tool.result"))
        text = path.read_text()
        assert text.count(marker) >= 1 + 3 + 3 + 6 + 6 + 1
        request_calls = {each["call"] for each in found.of("model.request")}
        assert {each["parent"] for each in found.of("tool.called")} == request_calls


MANY = 1_000 if LONG else 300


@pytest.mark.parametrize("loop", ["asyncio", long("uvloop")])
def test_hundreds_of_concurrent_runs_in_one_loop(loop: str, tmp_path: Path) -> None:
    finished = run_script(
        f"""
import asyncio, sys
import {loop} as loop
sys.path.insert(0, {str(CHILDREN)!r})
import service
async def main():
    await asyncio.gather(*(service.agent(f"m{{n:05d}}x") for n in range({MANY})))
loop.run(main())
print(service.most_inside, service.most_descriptors)
""",
        cwd=tmp_path,
        SERVICE_TRACES=str(tmp_path / "traces"),
    )
    assert finished.code == 0 and finished.err == "", finished.err
    most_inside, most_descriptors = map(int, finished.out.split())
    assert most_inside > MANY // 2, "the runs were not concurrent"
    assert most_descriptors < 64 + 40
    check_runs(tmp_path / "traces", [f"m{n:05d}x" for n in range(MANY)])


class Server:
    """A real HTTP server in a process of its own, on a port that nobody can take from it."""

    def __init__(self, tmp_path: Path, *command: str) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.port = listening.getsockname()[1]
        self.log = (tmp_path / "server.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *(part.replace("SOCKET", str(listening.fileno())) for part in command)],
            cwd=CHILDREN,
            env=environment(SERVICE_TRACES=str(tmp_path / "traces"), PYTHONPATH=str(CHILDREN)),
            stdout=self.log,
            stderr=self.log,
            pass_fds=[listening.fileno()],
        )
        listening.close()

    def get(self, path: str) -> str:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == 200, self.tail()
            return response.read().decode()
        finally:
            connection.close()

    def wait(self, probe: str) -> None:
        until = time.monotonic() + 60
        while True:
            try:
                self.get(probe)
                return
            except OSError:
                assert self.process.poll() is None and time.monotonic() < until, self.tail()
                time.sleep(0.05)

    def stop(self) -> str:
        self.process.terminate()
        self.process.wait(60)
        text = self.tail()
        self.log.close()
        return text

    def tail(self) -> str:
        self.log.flush()
        self.log.seek(0)
        return self.log.read()[-3000:]


@pytest.mark.long
def test_uvicorn_with_uvloop_keeps_concurrent_requests_apart(tmp_path: Path) -> None:
    server = Server(
        tmp_path, "uvicorn", "--loop", "uvloop", "--fd", "SOCKET", "--log-level", "warning", "service:app"
    )
    markers = [f"m{n:05d}x" for n in range(400)]
    try:
        server.wait("/state")
        gate = threading.Barrier(40)

        def client(mine: list[str]) -> None:
            gate.wait()
            for marker in mine:
                server.get(f"/{marker}")

        with ThreadPoolExecutor(40) as pool:
            list(pool.map(client, [markers[n::40] for n in range(40)]))
        _, most_inside, most_descriptors, loop = server.get("/state").split()
        assert loop == "uvloop"
        assert int(most_inside) > 1
        assert int(most_descriptors) < 64 + 40 + 40
    finally:
        printed = server.stop()
    assert "reenact:" not in printed and "Traceback" not in printed
    check_runs(tmp_path / "traces", markers)


@pytest.mark.long
def test_gunicorn_with_forked_workers_keeps_requests_apart(tmp_path: Path) -> None:
    server = Server(
        tmp_path, "gunicorn", "--preload", "--workers", "2", "--bind", "fd://SOCKET",
        "--log-level", "warning", "service:wsgi",
    )  # fmt: skip
    markers = [f"m{n:05d}x" for n in range(120)]
    try:
        server.wait("/probe")
        with ThreadPoolExecutor(8) as pool:
            workers = set(pool.map(lambda marker: server.get(f"/{marker}"), markers))
            while len(workers) == 1 and len(markers) < 2_000:  # the other one is slow to come
                more = [f"m{n:05d}x" for n in range(len(markers), len(markers) + 40)]
                workers.update(pool.map(lambda marker: server.get(f"/{marker}"), more))
                markers += more
    finally:
        printed = server.stop()
    assert len(workers) == 2, "one worker did it all"
    assert "reenact:" not in printed and "Traceback" not in printed
    check_runs(tmp_path / "traces", [*markers, "probe"])


def test_one_run_object_entered_by_many_tasks_at_once_is_a_run_each(tmp_path: Path) -> None:
    finished = run_script(
        """
import asyncio, reenact
traced = reenact.run("shared", path="traces/", redact=False)
async def one(n):
    async with traced as run:
        reenact.Trace().step("begun", of=n)
        await asyncio.sleep(0.001 * (n % 7))
        reenact.Trace().step("done", of=n)
        return run.run_id
async def main():
    return await asyncio.gather(*(one(n) for n in range(50)))
print(len(set(asyncio.run(main()))))
""",
        cwd=tmp_path,
    )
    assert finished.out == "50\n" and finished.err == ""
    files = list((tmp_path / "traces").glob("*.jsonl"))
    assert len(files) == 50
    for path in files:
        found = lines(path)
        assert found.kinds() == ["run.start", "begun", "done", "run.end"]
        assert found.one("begun")["of"] == found.one("done")["of"]
