"""reenact run --workspace: the folder a coding agent works on, as it was at each of its calls."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording
from reenact.playback.fork.world import Snapshots
from reenact.playback.matching.tape import Tape
from support.folders import state
from support.forked import type_in
from support.posting import POST
from support.provider import Provider

CODER = """
import json, os, pathlib, shutil, signal, subprocess, sys, urllib.request
from concurrent.futures import ThreadPoolExecutor

started = []
sys.addaudithook(lambda event, args: started.append(event) if event in STARTS else None)
STARTS = ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.fork", "os.system")

from reenact import Tap

work, copies, tap = pathlib.Path("work"), pathlib.Path("copies"), Tap()

def copy():
    shutil.copytree(work, copies / f"{len(os.listdir(copies)):02}", symlinks=True)

def create(messages):
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": messages}).encode()
    url, headers = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return json.load(answer)["content"]

def ask(messages):
    copy()
    return create(messages)

@tap.tool(effect="write")
def write(path, text):
    (work / path).parent.mkdir(parents=True, exist_ok=True)
    (work / path).write_text(text, newline="")
    return "written"

@tap.tool(effect="write")
def rename(path, to):
    os.rename(work / path, work / to)

@tap.tool(effect="write")
def delete(path):
    os.unlink(work / path)

@tap.tool(effect="write")
def link(path, to):
    os.symlink(to, work / path)

@tap.tool(effect="write")
def allow(path):
    os.chmod(work / path, 0o755)

@tap.tool(effect="read")
def die():
    (work / "last words").write_text("oh")
    os.kill(os.getpid(), signal.SIGKILL)

def undecorated(path):
    (work / path).write_text("nobody told")

messages = [{"role": "user", "content": os.environ["PROMPT"]}]
while True:
    answer = ask(messages)
    messages.append({"role": "assistant", "content": answer})
    uses = [block for block in answer if block["type"] == "tool_use"]
    if not uses:
        break
    results = []
    for use in uses:
        globals()[use["name"]](**use["input"])
        results.append({"type": "tool_result", "tool_use_id": use["id"], "content": "done"})
    messages.append({"role": "user", "content": results})
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda n: create(messages[:1]), range(4)))
print(started)
if len(sys.argv) > 1:
    sys.exit(subprocess.call([sys.executable, sys.argv[1]]))
"""
CHILD = (
    POST
    + """
import os, pathlib
pathlib.Path("work/of a child").write_text("x")
ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "PLAN []"}]}
post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", ask)
"""
)
ODD = "new\nline – ünï ✓.txt"
STEPS: list[list[Any]] = [
    [["write", {"path": "a.py", "text": "a = 1\r\n"}]],
    [["write", {"path": f"deep/er/{ODD}", "text": ""}], ["write", {"path": "a.py", "text": "a = 2\r\n"}]],
    [["rename", {"path": "a.py", "to": "b.py"}], ["link", {"path": "out", "to": "/etc/passwd"}]],
    [["allow", {"path": "b.py"}], ["delete", {"path": f"deep/er/{ODD}"}]],
    [["undecorated", {"path": "b.py"}]],
]


def prompt(steps: list[list[Any]]) -> str:
    return f"PLAN {json.dumps(steps)}"


class Desk:
    """A project of its own, and commands typed in it."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        for name in ("work", "copies"):
            (folder / name).mkdir()
        (folder / "coder.py").write_text(CODER)
        (folder / "child.py").write_text(CHILD)
        (folder / "work" / "old.txt").write_text("old")
        (folder / "work" / ".gitattributes").write_text("* text=auto eol=lf\n")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REENACT")}
        self.env = {**kept, "ANTHROPIC_BASE_URL": provider.url("plan"), "ANTHROPIC_API_KEY": "k"}

    def run(self, steps: list[list[Any]], *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {**self.env, "PROMPT": prompt(steps), **more}
        return type_in(["run", *words], self.folder, env)

    @property
    def tape(self) -> Tape:
        (path,) = (
            each for each in (self.folder / ".reenact").glob("*-coder-*.jsonl") if ".p" not in each.name
        )
        return Tape(Recording.load(str(path)))

    def copies(self) -> list[Path]:
        return sorted((self.folder / "copies").iterdir())


@pytest.fixture(scope="module")
def coded(tmp_path_factory: pytest.TempPathFactory, provider: Provider) -> tuple[Desk, Any]:
    desk = Desk(tmp_path_factory.mktemp("coder"), provider)
    return desk, desk.run(STEPS, "--workspace", "work", "coder.py", "child.py")


def test_each_calls_snapshot_is_the_folder_as_it_was_then(coded: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, done = coded
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"  # the agent's process has started nothing
    assert len(done.stderr.splitlines()) == 1
    snapshots = Snapshots.of(desk.tape.recording)
    assert snapshots is not None and snapshots.folder == str(desk.folder / "work")
    calls = [call for call in desk.tape.calls if call.kind == "model"]
    copies = desk.copies()
    assert len(copies) == len(STEPS) + 1
    folder = tmp_path / "again"
    folder.mkdir()
    for call, copy in zip(calls, copies, strict=False):
        tree = snapshots.tree_at(call)
        assert tree is not None
        snapshots.restore(tree, str(folder), str(tmp_path))
        assert state(folder) == state(copy)
    assert snapshots.first() == snapshots.tree_at(calls[0])
    assert state(copies[-1])[b"b.py"][1] == b"nobody told"


def test_before_a_tool_is_after_the_one_before_it(coded: tuple[Desk, Any], tmp_path: Path) -> None:
    desk, _ = coded
    snapshots = Snapshots.of(desk.tape.recording)
    assert snapshots is not None
    second = [call for call in desk.tape.calls if call.tool == "write"][2]
    tree = snapshots.tree_at(second)
    assert tree is not None
    snapshots.restore(tree, str(tmp_path), str(desk.folder))
    found = state(tmp_path)
    assert found[b"a.py"][1] == b"a = 1\r\n" and os.fsencode(f"deep/er/{ODD}") in found


@pytest.mark.long
def test_processes_that_join_ask_too_and_equal_folders_are_one_commit(coded: tuple[Desk, Any]) -> None:
    desk, _ = coded
    model = [call for call in desk.tape.calls if call.kind == "model"]
    trees = [call.event.workspace for call in model]
    assert len(set(trees[-5:-1])) == 1  # four at the same time, and nothing was changed
    assert model[-1].process != model[0].process and trees[-1] != trees[-2]
    (repository,) = (desk.folder / ".reenact").glob("*.workspace.git")
    assert repository.stat().st_mode & 0o777 == 0o700
    words = ["git", "--git-dir", str(repository), "log", "--format=%T"]
    kept = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert len(kept) == len(set(kept)) and set(trees) <= set(kept)


def test_what_a_killed_agent_had_done_is_there(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "killed").mkdir()
    desk = Desk(tmp_path / "killed", provider)
    (desk.folder / "work" / ".gitignore").write_text("ignored\n")
    (desk.folder / "work" / "ignored").write_text("big")
    steps = [STEPS[0], [["write", {"path": "c", "text": "c"}], ["die", {}]]]
    assert desk.run(steps, "--workspace", ".", "coder.py").returncode == -9
    snapshots = Snapshots.of(desk.tape.recording)
    last = desk.tape.calls[-1]
    assert snapshots is not None and last.tool == "die"
    tree = snapshots.tree_at(last)
    assert tree is not None
    folder = tmp_path / "again"
    folder.mkdir()
    snapshots.restore(tree, str(folder), str(tmp_path))
    expected = state(desk.folder / "work", "ignored", "last words")
    assert state(folder / "work") == expected and b"c" in expected
    assert not (folder / ".reenact").exists() and (folder / "coder.py").exists()


def test_without_git_the_run_goes_on_and_says_so_once(tmp_path: Path, provider: Provider) -> None:
    desk = Desk(tmp_path, provider)
    twice = "exec(open('child.py').read()); import subprocess, sys; subprocess.check_call([sys.executable, 'child.py'])"
    done = desk.run([], "--workspace", "work", "--name", "coder", "-c", twice, PATH=str(tmp_path / "nowhere"))
    assert done.returncode == 0
    (reported,) = [line for line in done.stderr.splitlines() if "workspace" in line]
    assert "git is not on the PATH" in reported
    recording = desk.tape.recording
    notes = [event for event in recording.lines if event.kind == "proc.note"]
    assert [note.what for note in notes] == ["workspace", "workspace"]  # of each process
    assert all("git" in note.detail for note in notes)
    assert [call.event.workspace for call in desk.tape.calls] == [None, None]
    assert recording.start is not None and recording.start.workspace is None


@pytest.mark.parametrize(
    ("folder", "printed"),
    [
        ("nowhere", "there is no such folder"),
        ("/", "not only the agent's"),
        (".reenact", "the folder of the traces"),
    ],
)
def test_a_folder_that_cannot_be_kept_is_refused(
    tmp_path: Path, provider: Provider, folder: str, printed: str
) -> None:
    desk = Desk(tmp_path, provider)
    (tmp_path / ".reenact").mkdir()
    done = desk.run([], "--workspace", folder, "coder.py")
    assert done.returncode == 2 and printed in done.stderr and "hint:" in done.stderr
    assert not desk.copies()


def test_the_folder_may_stand_in_the_settings(tmp_path: Path, provider: Provider) -> None:
    desk = Desk(tmp_path, provider)
    (tmp_path / "reenact.toml").write_text('[run]\nworkspace = "work"\n')
    done = desk.run([], "--json", "-c", "pass")
    assert done.returncode == 0
    recording = Recording.load(json.loads(done.stderr)["path"])
    snapshots = Snapshots.of(recording)
    assert snapshots is not None and snapshots.folder == str(tmp_path / "work") and snapshots.first()
