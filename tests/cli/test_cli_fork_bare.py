"""reenact fork of an agent that says nothing of itself, no prompt and no tools; cuts and tables that end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.forked import type_in
from support.provider import Provider

AGENT = """
import json, os, time, urllib.request

for question in ("summarise", "translate", f"review {os.getpid()}"):
    if os.environ.get("SLOW") and question.startswith("review"):
        time.sleep(600)
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": question}]}
    body = json.dumps({**body, "metadata": {"user_id": str(os.getpid())}}).encode()
    headers = {"content-type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(os.environ["MODEL_URL"] + "/v1/messages", body, headers)).read()
"""


class Recorded:
    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        (folder / "agent.py").write_text(AGENT)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env |= {"MODEL_URL": provider.url("text@bare"), "ANTHROPIC_API_KEY": "k"}
        self("run", "--name", "bare", "agent.py")
        (self.trace,) = folder.glob(".reenact/*-bare-*.jsonl")

    def start(self, *words: str, cwd: str = ".", **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "reenact", *words],
            cwd=self.folder / cwd, env={**self.env, **env},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __call__(self, *words: str, cwd: str = ".", **env: str) -> tuple[int, str]:
        done = type_in(words, self.folder / cwd, {**self.env, **env})
        return done.returncode, done.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("bare"), provider)


def received(provider: Provider, since: int) -> list[dict[str, Any]]:
    return [json.loads(each.body) for each in provider.settled()[since:] if "@bare" in each.target]


def test_a_setting_holds_for_every_call(recorded: Recorded, provider: Provider) -> None:
    before = len(provider.settled())
    (recorded.folder / "deep" / "er").mkdir(parents=True)
    code, printed = recorded("fork", str(recorded.trace), "--at", "1", "--set", "model=small", cwd="deep/er")
    assert [each["model"] for each in received(provider, before)] == ["small"] * 3
    path = printed.splitlines()[-1].removeprefix("reenact: ").partition("  ")[0]
    assert code == 0 and (recorded.folder / "deep" / "er" / path).is_file(), printed


def test_no_call_is_made_after_the_end(recorded: Recorded) -> None:
    end = json.loads(recorded.trace.read_text().splitlines()[-1])
    code, printed = recorded("fork", "bare", "--at", str(end["step"]))
    assert code == 2 and "no call was made" in printed


def test_a_call_alone_that_fails_is_a_run_that_ended(recorded: Recorded) -> None:
    down = recorded.folder / "down.jsonl"
    down.write_text(recorded.trace.read_text().replace(recorded.env["MODEL_URL"], "http://127.0.0.1:1"))
    code, printed = recorded("fork", "down.jsonl", "--one-call", "--name", "alone")
    assert code == 2 and "does not answer" in printed
    (trace,) = recorded.folder.glob(".reenact/*-alone-*.jsonl")
    assert json.loads(trace.read_text().splitlines()[-1])["status"] == "error"
    code, printed = recorded("fork", str(recorded.trace), "--one-call", REENACT_DIR="/proc")
    assert code == 2 and "nothing was sent" in printed


def test_a_table_that_is_ended_leaves_nobody_at_work(recorded: Recorded, provider: Provider) -> None:
    before = len(provider.settled())
    table = recorded.start("fork", "bare", "--samples", "2", "--inject-user=-h", SLOW="1")
    until = time.monotonic() + 60
    while len(received(provider, before)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    agent = int(received(provider, before)[1]["metadata"]["user_id"])
    table.send_signal(signal.SIGTERM)
    table.communicate(timeout=60)
    assert table.returncode == 128 + signal.SIGTERM
    while is_at_work(agent) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_at_work(agent)


@pytest.mark.long
def test_a_table_that_is_not_to_be_hung_up_goes_on(recorded: Recorded, provider: Provider) -> None:
    before = len(provider.settled())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        table = recorded.start("fork", "bare", "--samples", "1", "--inject-user=-h")
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    until = time.monotonic() + 60
    while not received(provider, before) and time.monotonic() < until:
        time.sleep(0.05)
    table.send_signal(signal.SIGHUP)
    printed = table.communicate(timeout=60)[1]
    assert table.returncode in (0, 1) and len(received(provider, before)) == 3, printed


def is_at_work(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_call_at_the_cut_that_has_changed_is_reported_as_changed(
    recorded: Recorded, provider: Provider
) -> None:
    since = len(provider.settled())
    code, printed = recorded("fork", str(recorded.trace), "--at", "turn:3")
    assert code == 3 and not received(provider, since)
    report = printed.partition("\nchanged-request: ")[2]
    assert "differs at messages[0].content" in report and "'review " in report
    assert "next: add --rebase" in report and "hint: 127.0.0.1" not in report
    assert report.splitlines()[-1] == (
        "reenact: the call at the cut was never made: 2 calls answered, 0 live"
    )
