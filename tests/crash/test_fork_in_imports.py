"""A child forked while other threads record for the first time: what they import late does not hang it.

Each program forks three such children. The long suite has 1,002 of them bare and as many under ``reenact run``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reenact import Recording
from support.examples import LONG
from support.forked import COMMAND

PROGRAMS = {"bare": 334 if LONG else 8, "run": 334 if LONG else 4}
STARTS = {"bare": [sys.executable], "run": [COMMAND, "run"]}
TIME_LIMIT_S = 300
PROGRAM = """
import os, sys, threading
import reenact

tap = reenact.Tap()
ready = threading.Barrier(6)

def work(name):
    for number in range(5):
        call = tap.record_tool_call("look", {"by": name, "number": number})
        tap.record_tool_result("look", f"{name} {number}", None, call=call)
    call = tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": name}]})
    tap.record_model_response({"role": "assistant", "content": "sk-ant-" + "a1" * 20}, call=call)

def record(name):
    ready.wait()
    work(name)

def fork(name):
    ready.wait()
    pid = os.fork()
    if pid == 0:
        try:
            work(name)
        finally:
            os._exit(0)
    codes.append(os.waitpid(pid, 0)[1])

codes = []
threads = [threading.Thread(target=record, args=(f"thread {number}",)) for number in range(3)]
threads += [threading.Thread(target=fork, args=(f"child {number}",)) for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit(0 if codes == [0, 0, 0] else 3)
"""


@pytest.mark.parametrize("how", STARTS)
def test_children_forked_during_the_first_record_record_too(how: str, tmp_path: Path) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT_")}
    (tmp_path / "agent.py").write_text(PROGRAM)
    for first in range(0, PROGRAMS[how], 4):
        folders = [tmp_path / str(number) for number in range(first, min(first + 4, PROGRAMS[how]))]
        started = [
            subprocess.Popen(
                [*STARTS[how], str(tmp_path / "agent.py")],
                env={**env, "REENACT_DIR": str(folder)},
                start_new_session=True,
                stderr=subprocess.PIPE,
            )
            for folder in folders
        ]
        for process, folder in zip(started, folders, strict=True):
            try:
                reported = process.communicate(timeout=TIME_LIMIT_S)[1]
            except subprocess.TimeoutExpired:
                for each in started:
                    if each.poll() is None:
                        os.killpg(each.pid, signal.SIGKILL)
                raise
            assert process.returncode == 0, reported
            assert reported == b"" or (
                how == "run" and reported.startswith(b"reenact: ") and b"ok" in reported
            ), reported
            _everything_is_there(folder)
            shutil.rmtree(folder)


def _everything_is_there(folder: Path) -> None:
    """A child that was forked before the run began has a run of its own."""
    texts = []
    for path in folder.glob("*.jsonl"):
        if ".p" not in path.name:
            texts += [str(event.payload) for event in Recording.load(path).events]
    for name in [f"{kind} {number}" for kind in ("thread", "child") for number in range(3)]:
        for number in range(5):
            assert sum(f"'{name} {number}'" in text for text in texts) == 1, name
        assert sum(f"'content': '{name}'" in text for text in texts) == 1, name
    assert not any("sk-ant-" in text for text in texts)
