"""SIGKILL in calls of real SDKs: every call in flight is named, and what had come of its answer is there.

The agent counts in shared memory the letters it has got; that count outlives it, so what it had seen is known.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reenact import Debugger
from sdk import offline
from support.examples import long
from support.forked import type_in
from support.harness import CHILDREN, Counters, Finished, Lines, environment, finish, wait_until
from support.provider import Provider, Received

CHILD_AT, PIDS_AT, SLOTS = 8, 16, 18
REACHED = 1 << 32
HELD_BACK = 1_024
"""Bytes that may wait to be looked at: the events of a word that is not over."""
MARKS = {
    "anthropic": b"text_delta",
    "openai": b'"delta":{"content"',
    "boto3": b"contentBlockDelta",
    "genai": b'"text"',
}
"""What a piece of the stream holds that brings text, of which there are at most 6 letters in one."""
EIGHT = "stream,stream,stream,wait,wait,tool,tool,asked"
FOUR = "stream,wait,tool,stream"


class Killed:
    """An agent in its calls, about to be killed."""

    def __init__(self, folder: Path, provider: Provider, way: str, sdk: str, shape: str, stages: str) -> None:
        self.folder, self.provider, self.sdk, self.shape, self.way = folder, provider, sdk, shape, way
        self.stages = stages.split(",")
        self.counters = Counters(folder / "counters", SLOTS)
        provider.reset()
        base = provider.url().rpartition("/s/")[0]
        agent = [CHILDREN / "calling.py", base, way, sdk, shape, stages, self.counters.path]
        command = ["-m", "reenact", "run", "--out", folder / "runs", *agent] if way == "run" else agent
        self.process = subprocess.Popen(
            [sys.executable, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True,
            env=environment(**{**offline.environment(folder), "REENACT_DIR": str(folder / "runs")}),
        )  # fmt: skip

    @property
    def slots(self) -> dict[int, str]:
        """Which calls there are: slot -> stage."""
        of_child = {CHILD_AT + n: stage for n, stage in enumerate(self.stages)}
        if "+" not in self.shape:
            return dict(enumerate(self.stages))
        return {**dict(enumerate(self.stages)), **of_child} if self.shape.endswith("both") else of_child

    def received_by(self, slot: int) -> Received | None:
        found = [each for each in list(self.provider.log) if f"@{slot}/" in each.target]
        return found[-1] if found else None

    def is_there(self) -> bool:
        values = self.counters.values()
        there = all(values[slot] for slot in self.slots)
        return there and all(self.received_by(slot) for slot in self.slots)

    def kill(self, delay: float) -> Finished:
        """Wait until every call is where it is to be, a little longer, and kill."""
        wait_until(self.is_there, self.process)
        time.sleep(delay)
        pids = self.counters.values()[PIDS_AT:]
        if self.shape.endswith("both"):
            os.killpg(self.process.pid, signal.SIGKILL)
        else:
            os.kill(pids["+" in self.shape], signal.SIGKILL)
        return finish(self.process)

    def files(self) -> list[Path]:
        return sorted((self.folder / "runs").glob("*.jsonl"))


def kill_cell(
    folder: Path, provider: Provider, way: str, sdk: str, shape: str, stages: str, delay: float
) -> int:
    """Kill one agent and look at what it left; returns the letters it had got."""
    killed = Killed(folder, provider, way, sdk, shape, stages)
    finished = killed.kill(delay)
    assert finished.code == (0 if shape.endswith("child") else -signal.SIGKILL), finished.err
    head = next(path for path in killed.files() if ".p" not in path.name)
    for path in killed.files():
        lines = Lines(path)
        assert len(lines.torn) == 0
        lines.assert_gapless()
    found = Debugger.load(head)
    assert found.errors() == [] or all(each.error is not None for each in found.errors())
    still_open = [call for call in found.calls() if call.is_open and not call.derived]
    derived = [call.tool for call in found.calls() if call.is_open and call.derived]
    assert derived == ["lookup"] * list(killed.slots.values()).count("asked"), derived
    assert sorted(call.kind for call in still_open) == sorted(kinds_open(killed)), (still_open, finished.err)
    assert [call.tool for call in still_open if call.kind == "tool"].count("lookup") == kinds_open(
        killed
    ).count("tool")
    assert len(found.turns()) >= len(killed.slots)
    letters = check_streams(killed, head)
    check_desk(killed, head)
    killed.counters.close()
    return letters


def kinds_open(killed: Killed) -> list[str]:
    """Kinds of the calls that must be named as open."""
    sorts = {"stream": "model", "wait": "model", "tool": "tool", "mcp": "tool"}
    return [sorts[stage] for stage in killed.slots.values() if stage in sorts]


def check_streams(killed: Killed, head: Path) -> int:
    """What had come of every stream is in its .part, up to what the agent had got but for the last bytes."""
    lines = [event for path in killed.files() for event in Lines(path).of("model.request")]
    letters = 0
    for slot, stage in killed.slots.items():
        (call,) = [line["call"] for line in lines if f"@{slot}/" in line["url"]]
        part = head.with_suffix(".blobs") / f"{call}.part"
        if stage != "stream":
            assert not part.exists() or not part.stat().st_size
            continue
        got = killed.counters.values()[slot]
        letters += got
        received = killed.received_by(slot)
        assert received is not None
        kept = part.read_bytes() if part.exists() else b""
        assert received.answer.startswith(kept)
        due = acknowledged(received, MARKS[killed.sdk], got)
        assert len(kept) >= len(due) - HELD_BACK, (len(kept), len(due), got)
    return letters


def acknowledged(received: Received, mark: bytes, letters: int) -> bytes:
    """The bytes of the answer that brought that many letters."""
    brought, data = 0, b""
    for _, piece in list(received.sent):
        if brought >= letters:
            break
        data += piece
        brought += 6 * (mark in piece)
    return data


def check_desk(killed: Killed, head: Path) -> None:
    """The first screen of show and of debug names what it was in."""
    env = environment(PYTHONWARNINGS="error", COLUMNS="400")
    for words in (["show", str(head)], ["debug", str(head), "-c", "w"]):
        done = type_in(words, killed.folder, env)
        assert done.returncode == 0 and done.stderr == "", (words, done.stderr)
        if words[0] == "debug":
            continue
        first = done.stdout.splitlines()[0]
        sorts = kinds_open(killed)
        if not sorts:  # a tool that only the answer speaks of
            assert "died before the result of tool lookup(" in first, done.stdout
            continue
        whose = "a further process was last seen " if killed.shape.endswith("child") else ""
        verb = ("inside" if sorts[-1] == "tool" else "waiting for") if whose else "died "
        assert whose + verb in first, done.stdout[:2000]
        if len(set(sorts)) == 1:
            assert ("tool lookup" if sorts[0] == "tool" else "the model") in first, first


CELLS = [
    ("run", "boto3", "one", "wait"),
    ("wrap", "boto3", "threads", FOUR),
    ("install", "boto3", "spawn+child", "wait"),
    ("run", "boto3", "fork+both", "stream"),
]  # fmt: skip
"""One of each kind."""
ALL = [
    (way, sdk, shape, stages)
    for way, sdk, (shape, stages) in itertools.product(
        ("run", "install", "wrap"),
        MARKS,
        [
            *itertools.product(("one",), ("stream", "wait", "tool", "mcp", "asked")),
            ("gather", EIGHT), ("gather", "stream,stream"), ("threads", FOUR),
            *itertools.product(
                (f"{how}+{who}" for how in ("fork", "spawn", "subprocess") for who in ("child", "both")),
                ("stream", "wait", "tool"),
            ),
        ],
    )
    if not (sdk == "boto3" and shape == "gather") and not (way == "wrap" and stages == "mcp")
]  # fmt: skip


KILLED = [
    (pytest.param if cell in CELLS and attempt == 0 else long)((*cell, attempt))
    for cell in ALL
    for attempt in range(3)
]


@pytest.mark.parametrize("cell", KILLED, ids=lambda cell: " ".join(map(str, cell)))
def test_a_kill_in_calls_of_an_sdk(
    cell: tuple[str, str, str, str, int], tmp_path: Path, provider: Provider
) -> None:
    kill_cell(tmp_path, provider, *cell[:4], random.Random(str(cell)).uniform(0, 0.2))
