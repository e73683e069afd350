"""reenact fork --workspace: a coding agent goes on from the folder of the step where it is cut."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording
from reenact.playback.fork.world import Snapshots
from reenact.playback.matching.tape import Tape
from support.examples import LONG
from support.folders import state
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

CODER = (
    POST
    + """
import os, pathlib, sys
from reenact import Tap

work, tap, url = pathlib.Path("work"), Tap(), os.environ["MODEL_URL"]
files = sorted(each.name for each in work.iterdir())

@tap.tool(effect="write")
def write(path, text):
    (work / path).write_text(text + "".join(sorted(each.name for each in work.iterdir())))
    return text

@tap.tool(effect="write")
def delete(path):
    os.unlink(work / path)

messages = [{"role": "user", "content": f"{files} {sys.argv[1]}"}]
while True:
    answer = post(url, {"model": "m", "max_tokens": 9, "messages": messages})
    messages.append({"role": "assistant", "content": answer["content"]})
    uses = [block for block in answer["content"] if block["type"] == "tool_use"]
    if not uses:
        break
    results = []
    for use in uses:
        result = str(globals()[use["name"]](**use["input"]))
        results.append({"type": "tool_result", "tool_use_id": use["id"], "content": result})
    messages.append({"role": "user", "content": results})
"""
)
STEPS: list[list[Any]] = [[["write", {"path": f"f{n}", "text": f"{n} "}]] for n in range(3)]
STEPS.append([["delete", {"path": "f0"}], ["write", {"path": "f1", "text": "again "}]])
STEPS.append([["write", {"path": "last", "text": ""}]])
PROMPT = f"PLAN {json.dumps(STEPS)}"


class Desk:
    """A project with one recorded run."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder
        self.env = env

    def type(self, *words: str) -> subprocess.CompletedProcess[str]:
        return type_in(words, self.folder, self.env)

    def fork(self, *words: str) -> subprocess.CompletedProcess[str]:
        return self.type("fork", "coder", *words, "--", "coder.py", PROMPT)

    @property
    def work(self) -> Path:
        return self.folder / "work"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> Desk:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
    env = {**kept, "MODEL_URL": provider.url("plan") + "/v1/messages"}
    desk = Desk(tmp_path_factory.mktemp("coder"), env)
    desk.work.mkdir()
    (desk.work / "given").write_text("given")
    (desk.folder / "coder.py").write_text(CODER)
    done = desk.type("run", "--name", "coder", "--workspace", "work", "coder.py", PROMPT)
    assert done.returncode == 0, done.stderr
    return desk


def copy_of(original: Desk, folder: Path) -> Desk:
    """The project in a place of its own, the folder as the run left it, and then some."""
    shutil.copytree(original.folder, folder / "copy", symlinks=True)
    made = Desk(folder / "copy", original.env)
    (made.work / "mine").write_text("written since")
    return made


@pytest.fixture
def desk(original: Desk, tmp_path: Path) -> Desk:
    return copy_of(original, tmp_path)


def calls_of(desk: Desk, name: str) -> list[Any]:
    (path,) = (each for each in (desk.folder / ".reenact").glob(f"*-{name}-??????????*.jsonl"))
    return Tape(Recording.load(str(path))).calls


WORDS = ("--workspace", "work", "--live-tools", "all")
TURNS = range(1, len(STEPS) + 2) if LONG else [4]


@pytest.fixture(scope="module", params=TURNS)
def forked(request: pytest.FixtureRequest, original: Desk, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A fork at one of the turns: which, where, what was in the folder, and what was said."""
    desk = copy_of(original, tmp_path_factory.mktemp("forked"))
    before = state(desk.work)
    done = desk.fork("--at", f"turn:{request.param}", *WORDS, "--name", "again")
    assert done.returncode == 0, done.stderr
    return request.param, desk, before, done.stderr


def test_the_fork_of_a_step_begins_with_the_folder_of_that_step(original: Desk, forked: Any) -> None:
    turn, desk, before, printed = forked
    assert "world: workspace" in printed
    assert state(desk.work) == state(original.work)  # the rest of the work is done again, on the right files
    then, now = (
        [call for call in calls_of(desk, name) if call.kind == "model"] for name in ("coder", "again")
    )
    taken = [call.event.workspace for call in now]
    assert taken[turn - 1 :] == [call.event.workspace for call in then][turn - 1 :]
    assert set(taken[: turn - 1]) <= {None}
    command = next(line for line in printed.splitlines() if "to undo that: " in line)
    back = command.partition("that: ")[2]
    copied = desk.folder / "back"
    copied.mkdir()
    subprocess.run(back.replace(f"--work-tree={desk.work}", f"--work-tree={copied}"), shell=True, check=True)
    assert state(copied) == before


def test_a_fork_of_a_fork_has_its_folders_too(forked: Any, tmp_path: Path) -> None:
    turn, desk, _, _ = forked
    (path,) = (desk.folder / ".reenact").glob("*-again-*.jsonl")
    shutil.copytree(f"{str(path).removesuffix('.jsonl')}.workspace.git", tmp_path / "again.workspace.git")
    shutil.copy(path, tmp_path / "again.jsonl")  # it stands for itself
    tape = Tape(Recording.load(str(tmp_path / "again.jsonl")))
    snapshots = Snapshots.of(tape.recording)
    last = [call for call in tape.calls if call.kind == "model"][-1]
    assert snapshots is not None
    tree = snapshots.tree_at(last)
    assert tree is not None
    (tmp_path / "there").mkdir()
    snapshots.restore(tree, str(tmp_path / "there"), str(tmp_path))
    assert state(tmp_path / "there") == state(desk.work)
    if turn > 2:
        refused = desk.type("fork", "again", "--at", "turn:2", *WORDS, "--", "coder.py", PROMPT)
        assert refused.returncode == 2 and "no snapshot was taken before" in refused.stderr


def test_without_a_choice_it_stops_and_lists_what_was_done(desk: Desk) -> None:
    before = state(desk.work)
    done = desk.fork("--at", "turn:3")
    assert done.returncode == 2
    assert done.stderr.count("(write; does not run again)") == 2 and 'write {"path": "f0"' in done.stderr
    assert all(flag in done.stderr for flag in ("--workspace", "--restore CMD", "--stale-world"))
    failed = desk.fork("--at", "turn:3", "--restore", "echo cannot; exit 9")
    assert failed.returncode == 2 and "cannot\n" in failed.stderr and "exit code 9" in failed.stderr
    (next((desk.folder / ".reenact").glob("*.git"))).rename(desk.folder / "elsewhere")
    none = desk.fork("--at", "turn:3", "--workspace", "work")
    assert none.returncode == 2 and "there are no snapshots of a workspace" in none.stderr
    assert state(desk.work) == before and len(list((desk.folder / ".reenact").glob("*.jsonl"))) == 1


def test_a_folder_that_cannot_be_made_what_it_was_stops_the_fork_at_the_cut(
    desk: Desk, provider: Provider
) -> None:
    (repository,) = (desk.folder / ".reenact").glob("*-coder-*.git")
    tree = [call for call in calls_of(desk, "coder") if call.kind == "model"][3].event.workspace
    (repository / "objects" / tree[:2] / tree[2:]).unlink()  # what is restored at the start is there
    before = len(provider.settled())
    done = desk.fork("--at", "turn:4", "--workspace", "work", "--live-tools", "all")
    assert done.returncode == 1 and "not what it was at the cut" in done.stderr
    assert len(provider.settled()) == before
