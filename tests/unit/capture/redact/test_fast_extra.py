"""The extra `fast`: orjson and RE2 change the time that recording takes, and not one byte of the file."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import re2  # noqa: F401  the group `test` has it: without it these tests prove nothing

from reenact import Trace, lines
from reenact.capture.recorder import jsonable
from reenact.capture.redact import prefilter

SAMPLES = Path(__file__).parents[4] / ".." / "shared" / "samples" / "swe-agent"
PLANTED = (
    "api_key = " + "aB3" * 8,
    "Bearer " + "aB3" * 8,
    "gh" + "p_" + "aB3" * 12,
    "https://me:aB3aB3aB3@host/",
)


def texts() -> list[str]:
    chance = random.Random(3)
    letters = [
        "plain words ",
        "é",
        "日本",
        "😀",
        "\x7f",
        "\\",
        '"',
        "\n",
        "\\u00e9",
        "\ud800",
        "\t",
        "Größe ",
    ]
    made = ["".join(chance.choices(letters, k=chance.randint(1, 3000))) for _ in range(60)]
    made += ["few " * 2000 + "é" + "few " * 2000, "é\x7f" + "words " * 1000]
    for path in sorted(SAMPLES.glob("*.traj"))[:3]:
        made += [step.get("observation") or "" for step in json.loads(path.read_text("utf-8"))["trajectory"]]
    return [f"{text} {chance.choice(PLANTED)}" if n % 5 == 0 else text for n, text in enumerate(made)]


def recorded(path: Path, events: list[dict[str, Any]]) -> list[str]:
    """The lines of the events without their times and their writer."""
    with Trace(path) as trace:
        for event in events:
            trace.step("note", **event)
    written = [line for line in path.read_text("ascii").splitlines() if '"kind": "note"' in line[:200]]
    return [re.sub(r'^\{"ts": [\d.]+, "run": "\w+", "w": "\w+"', "", line) for line in written]


def test_the_file_has_the_same_bytes_with_and_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = texts()
    events = [{"text": text, "items": [{"role": "user", "content": each} for each in found[n : n + 3]]}
              for n, text in enumerate(found)]  # fmt: skip
    monkeypatch.setattr(jsonable, "_tried_accelerator", True)
    monkeypatch.setattr(lines, "_accelerated", None)
    monkeypatch.setattr(prefilter, "_looks", {})
    monkeypatch.setattr(prefilter, "_may_load", False)
    without = recorded(tmp_path / "without.jsonl", events)
    monkeypatch.setattr(prefilter, "_may_load", True)
    assert lines.accelerate()
    with_them = recorded(tmp_path / "with.jsonl", events)
    assert prefilter._looks, "RE2 was not used"
    assert with_them == without and len(without) == len(events)
    assert sum("<redacted:" in line for line in without) > 10


FORKS = """
import os, signal, sys, threading
from reenact import Trace
from reenact.capture.redact import prefilter
trace = Trace(sys.argv[1])
trace.step("note", text="words " * 2000)
assert prefilter._looks
data = b'"' + b"a long text, searched without the interpreter's lock " * 40_000 + b'"'
def fork():
    for _ in range(40):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            trace.step("note", text="in a child " * 2000)
            os._exit(0 if not prefilter._looks else 3)
        _, status = os.waitpid(child, 0)
        if status:
            os._exit(4)
    os._exit(0)
threading.Thread(target=fork).start()
while True:
    prefilter.scan(data, None)
"""


def test_a_child_forked_in_a_search_records_without_re2(tmp_path: Path) -> None:
    run = [sys.executable, "-c", FORKS, str(tmp_path / "run.jsonl")]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert sum(b"in a child" in path.read_bytes() for path in tmp_path.glob("run.p*.jsonl")) == 40


LEAVES_THREADS = """
import sys, threading, time
from reenact import Trace
from reenact.capture.redact import prefilter
trace = Trace(sys.argv[1])
trace.step("note", text="words " * 2000)
assert prefilter._looks
def work():
    while True:
        trace.step("note", text="words " * 20_000)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""


def test_daemon_threads_that_record_at_exit_do_not_abort_the_process(tmp_path: Path) -> None:
    for n in range(5):
        run = [sys.executable, "-c", LEAVES_THREADS, str(tmp_path / f"{n}.jsonl")]
        done = subprocess.run(run, capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("other", ["raise RuntimeError('broken')", "def search(pattern, text): ..."])
def test_another_library_of_that_name_is_not_used(tmp_path: Path, other: str) -> None:
    (tmp_path / "re2.py").write_text(other)
    code = "from reenact import Trace; trace = Trace('run.jsonl'); trace.step('note', text='words ' * 2000)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert b"words words" in (tmp_path / "run.jsonl").read_bytes()
