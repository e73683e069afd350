"""``reenact run`` with settings: the command line counts, then the environment, then the nearest file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.forked import type_in
from support.provider import Provider

AGENT = """
import sys, urllib.request, httpx
body = b'{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}'
httpx.post(sys.argv[1] + "/v1/messages", content=body)
httpx.get(sys.argv[1] + "/models")
urllib.request.urlopen(urllib.request.Request(sys.argv[1] + "/v1/messages", body)).read()
"""
SETTINGS = """
[run]
out = "kept"
name = "nightly"
tags = { env = "dev", team = "trips" }
hosts = ["127.0.0.1"]
record_http = "all"
seams = ["-http.client"]
content = "hash"
strict_coverage = true
"""


def run(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REENACT_")}
    return type_in(["run", *words], folder, {**kept, **more})


def lines(folder: Path) -> list[dict[str, Any]]:
    (path,) = folder.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "below").mkdir()
    return tmp_path


def kinds(reported: list[dict[str, Any]]) -> list[str]:
    return [line["kind"] for line in reported if line["kind"].endswith("request")]


def test_all_settings_are_heard_from_a_folder_below(project: Path, provider: Provider) -> None:
    (project / "reenact.toml").write_text(SETTINGS)
    done = run(project / "below", "../agent.py", provider.url())
    assert done.returncode == 0, done.stderr
    reported = lines(project / "kept")
    assert reported[0]["name"] == "nightly" and reported[0]["meta"] == {"env": "dev", "team": "trips"}
    assert kinds(reported) == ["model.request", "http.request"]  # not what the library left out asked
    assert "$hash" in json.dumps(reported[1]["body"])


def test_the_environment_and_the_command_line_come_before(project: Path, provider: Provider) -> None:
    (project / "pyproject.toml").write_text(SETTINGS.replace("[run]", "[tool.reenact.run]"))
    arguments = ["--name", "mine", "--tag", "env=prod", "--record-http", "models", "agent.py", provider.url()]
    done = run(
        project, *arguments, REENACT_DIR=str(project / "mine"), REENACT_SEAMS="-mcp", REENACT_CONTENT="full"
    )
    assert done.returncode == 0, done.stderr
    reported = lines(project / "mine")
    assert reported[0]["name"] == "mine" and reported[0]["meta"] == {"env": "prod", "team": "trips"}
    assert kinds(reported) == ["model.request", "http.request", "model.request"]
    assert [line["sort"] for line in reported if line["kind"] == "http.request"] == ["models"]
    assert reported[1]["body"]["messages"][0]["content"] == "hi"
    assert not (project / "kept").exists()
    run(project, "--out", "third", "agent.py", provider.url(), REENACT_DIR=str(project / "mine"))
    assert lines(project / "third")[0]["name"] == "nightly"


@pytest.mark.long
def test_strict_coverage_from_settings(project: Path) -> None:
    (project / "reenact.toml").write_text("[run]\nstrict_coverage = true\n")
    assert run(project, "-c", "import httpx, openai").returncode == 3


@pytest.mark.parametrize(
    "text, printed",
    [
        ("[run]\nnames = 1\n", "run.names is not a setting"),
        ("[run]\nname = 1\n", "run.name is 1"),
        ("[run]\nhosts = 'a'\n", "run.hosts is 'a'"),
        ("[run]\nhosts = [1]\n", "run.hosts is [1]"),
        ("[run]\ntags = {a = 1}\n", "run.tags is {'a': 1}"),
        ("[run]\nrecord_http = 'none'\n", "run.record_http is 'none'"),
        ("[run]\ncontent = 'some'\n", "run.content is 'some'"),
        ("[run]\nseams = ['aiohttp']\n", "run.seams is ['aiohttp']"),
        ("[run]\nstrict_coverage = 'yes'\n", "run.strict_coverage is 'yes'"),
        ("run = 3\n", "run is not a table"),
        ("[run\n", "is not TOML"),
    ],
)
def test_wrong_settings_are_named_and_nothing_is_started(project: Path, text: str, printed: str) -> None:
    (project / "reenact.toml").write_text(text)
    done = run(project, "-c", "print('started')")
    assert (done.returncode, done.stdout) == (2, "")
    assert printed in done.stderr and "reenact.toml" in done.stderr and "Traceback" not in done.stderr
    off = run(project, "-c", "print('started')", REENACT_OFF="1")
    assert (off.returncode, off.stdout, off.stderr) == (0, "started\n", "")


def test_a_library_that_nobody_listens_to_cannot_be_left_out(project: Path) -> None:
    done = run(project, "-c", "print('started')", REENACT_SEAMS="-httpx,-htpx2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "REENACT_SEAMS: -htpx2 is nothing to leave out" in done.stderr and "-httpx2" in done.stderr
    done = run(project, "-c", "print('started')", REENACT_SEAMS="-urllib3, -http.client,")
    assert (done.returncode, done.stdout) == (0, "started\n")
