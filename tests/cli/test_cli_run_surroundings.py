"""``reenact run`` of programs that ignore, empty or change what surrounds them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli_run import ASK, calls, events, reenact

from support.provider import Provider

KEY = "sk-ant-api03-AbCdEfGhIjKlMnOpQrSt"


@pytest.mark.parametrize("how", ["-I", "-sE", "script"])
def test_a_program_that_ignores_its_environment_is_reported(how: str, tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text(f"#!/usr/bin/env -S {sys.executable} -I\n")
    script.chmod(0o755)
    words = ["./tool", KEY] if how == "script" else [sys.executable, how, "-c", "0", KEY]
    done = reenact(tmp_path, "run", "--strict-coverage", *words)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-1].startswith("reenact: not seen: a Python of its own began without us")
    end = events(tmp_path / ".reenact")[-1]
    assert end["unseen"] and KEY not in str(end) + done.stderr


def test_a_program_that_empties_its_environment_is_still_in_its_run(
    tmp_path: Path, provider: Provider
) -> None:
    (tmp_path / "agent.py").write_text(
        f"import os\nos.environ.clear()\n{ASK}\nask(sys.argv[1])\nimport reenact\nwith reenact.run('inner'): pass\n"
    )
    done = reenact(tmp_path, "run", "--out", "runs", "agent.py", provider.url(), REENACT_CONTENT="none")
    assert done.returncode == 0 and "1 call" in done.stderr, done.stderr
    outer, inner = sorted((tmp_path / "runs").glob("*.jsonl"), key=lambda path: "inner" in path.name)
    assert calls(tmp_path / "runs") == outer.read_text().count('"kind": "model.request"') == 1
    assert "inner" in inner.name and '"content": "hi"' not in outer.read_text()


@pytest.mark.parametrize("typed", ["sh", "/bin/sh"])
@pytest.mark.parametrize("off", ["0", "1"])
def test_a_program_is_called_as_it_was_typed(typed: str, off: str, tmp_path: Path) -> None:
    done = reenact(tmp_path, "run", typed, "-c", "echo $0", REENACT_OFF=off)
    assert done.stdout == f"{typed}\n", done.stderr


EARLY = {
    "raised": ("def start():\n    raise ValueError('no config')\nstart()", "ValueError", ["agent.py:2 in start"]),
    "syntax": ("def f(:", "SyntaxError", []),
    "in a block": ("import reenact\nwith reenact.run('inner'):\n    {}['x']", "KeyError", ["agent.py:3 in <module>"]),
}  # fmt: skip


@pytest.mark.parametrize("case", EARLY)
def test_what_a_program_dies_of_before_any_call_is_recorded(case: str, tmp_path: Path) -> None:
    code, kind, frames = EARLY[case]
    (tmp_path / "agent.py").write_text(code)
    bare = subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, capture_output=True, text=True)
    done = reenact(tmp_path, "run", "agent.py")
    assert done.returncode == bare.returncode == 1 and done.stderr.startswith(bare.stderr)
    (path,) = (tmp_path / ".reenact").glob("*-agent-*.jsonl")
    reported = [json.loads(line) for line in path.read_text().splitlines()]
    (error,) = [line["error"] for line in reported if line["kind"] == "error"]
    assert error["type"] == reported[-1]["error"]["type"] == kind and error["frames"][: len(frames)] == frames


def test_a_child_that_dies_before_any_call_is_its_parent_s_matter(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import subprocess, sys; subprocess.run([sys.executable, '-c', '1 / 0'])"
    )
    assert reenact(tmp_path, "run", "agent.py").returncode == 0
    assert [line["kind"] for line in events(tmp_path / ".reenact") if "run." not in line["kind"]] == []
