"""A folder made what it was: every kind of file, nothing lost, and nothing done that a hostile trace wants."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording
from reenact.errors import UsageError
from reenact.playback.fork.world import Snapshots
from reenact.playback.matching.tape import Tape
from reenact.supervise.workspace.git import SnapshotError
from reenact.supervise.workspace.snapshots import Shadow, repository_of
from support.folders import state

ODD_NAMES = ("new\nline", "ünï ✓", "-rf", " space ", ":(top)x", "a*b?[c]", 'q"uo\\te', "\udcff\udcfe")


class Recorded:
    """A run whose file says which snapshot its model call was made at."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.work.mkdir(parents=True)
        self.path = folder / "run.jsonl"
        self.shadow = Shadow(repository_of(str(self.path)), str(self.work))
        self.shadow.begin()

    def snapshot(self) -> str:
        tree = self.shadow.snapshot()
        self.shadow.commit(tree)
        return tree

    def snapshots(self, tree: Any = None) -> Snapshots:
        head = {"ts": 1.0, "run": "r", "w": "00000000", "step": 1, "kind": "run.start", "v": "1.0"}
        ask = {"ts": 2.0, "run": "r", "w": "00000000", "step": 2, "kind": "model.request", "call": "c"}
        self.path.write_text(f"{json.dumps(head)}\n{json.dumps({**ask, 'workspace': tree, 'body': {}})}\n")
        found = Snapshots.of(Recording.load(str(self.path)))
        assert found is not None
        return found


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path / "recorded")


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def fill(folder: Path) -> None:
    (folder / "sub" / "deeper").mkdir(parents=True)
    for name in ODD_NAMES:
        (folder / "sub" / name).write_text(repr(name))
    (folder / "lines").write_bytes(b"one\r\ntwo\n$Id$\n")
    (folder / "empty").write_bytes(b"")
    (folder / "bytes").write_bytes(bytes(range(256)))
    (folder / "sub" / "deeper" / "program").write_text("#!/bin/sh\n")
    (folder / "sub" / "deeper" / "program").chmod(0o755)
    (folder / "out").symlink_to("/etc")
    (folder / "dangling").symlink_to("nowhere/at all")
    (folder / ".gitattributes").write_text("* text=auto eol=crlf ident working-tree-encoding=UTF-16\n")


def test_every_kind_of_file_comes_back_and_what_was_there_is_kept(
    recorded: Recorded, target: Path, tmp_path: Path
) -> None:
    fill(recorded.work)
    tree, expected = recorded.snapshot(), state(recorded.work)
    snapshots = recorded.snapshots(tree)
    (target / "sub").write_text("a file where a folder comes")
    (target / "empty").mkdir()
    (target / "empty" / "inside").write_text("a folder where a file comes")
    (target / "mine").write_text("only here")
    before = state(target)
    kept = snapshots.restore(tree, str(target), str(tmp_path))
    assert state(target) == expected
    assert kept is not None and {"mine", "sub", "empty/inside"} <= set(kept.changed)
    subprocess.run(kept.command, shell=True, check=True)
    assert state(target) == before
    assert snapshots.restore(tree, str(target), str(tmp_path)) is not None
    assert snapshots.restore(tree, str(target), str(tmp_path)) is None  # it is that already
    assert len(list(tmp_path.glob("kept-*"))) == 2


def test_an_empty_folder_is_a_state_too(recorded: Recorded, target: Path, tmp_path: Path) -> None:
    tree = recorded.snapshot()
    (target / "a").write_text("a")
    assert recorded.snapshots().restore(tree, str(target), str(tmp_path)) is not None
    assert state(target) == {}


def test_ignored_files_and_repositories_stay(recorded: Recorded, target: Path, tmp_path: Path) -> None:
    (recorded.work / ".gitignore").write_text("venv/\n")
    (recorded.work / "venv").mkdir()
    (recorded.work / "venv" / "big").write_text("big")
    git(recorded.work, "init", "-q", "inner")
    assert recorded.snapshot()  # a repository without anything in it
    (recorded.work / "inner" / "x").write_text("x")
    commit(recorded.work / "inner")
    git(recorded.work / "inner", "init", "-q", "innermost")
    (recorded.work / "inner" / "innermost" / "y").write_text("y")
    tree = recorded.snapshot()
    (recorded.work / "inner" / "x").write_text("x2")
    changed = recorded.snapshot()
    git(target, "init", "-q")
    (target / ".gitignore").write_text("venv/\n# mine\n")
    (target / "venv").mkdir()
    (target / "venv" / "mine").write_text("mine")
    snapshots = recorded.snapshots()
    for each, text in ((tree, "x"), (changed, "x2")):
        snapshots.restore(each, str(target), str(tmp_path))
        assert (target / "inner" / "x").read_text() == text
        assert (target / "inner" / "innermost" / "y").read_text() == "y"
        assert (target / "venv" / "mine").read_text() == "mine"
        assert not (target / "venv" / "big").exists() and (target / ".git" / "HEAD").exists()
    git(target, "status")


def test_what_is_ignored_now_and_stands_in_the_way_is_not_lost(
    recorded: Recorded, target: Path, tmp_path: Path
) -> None:
    (recorded.work / "data").write_text("recorded")
    tree = recorded.snapshot()
    (target / ".gitignore").write_text("data\nprecious\n")
    (target / "data").write_text("of today")
    kept = recorded.snapshots().restore(tree, str(target), str(tmp_path))
    assert kept is not None and (target / "data").read_text() == "recorded"
    subprocess.run(kept.command, shell=True, check=True)
    assert (target / "data").read_text() == "of today"
    (target / "data").unlink()
    (target / "data").mkdir()
    (target / "data" / "precious").write_text("gold")
    with pytest.raises(UsageError, match="precious is ignored and would be lost"):
        recorded.snapshots().restore(tree, str(target), str(tmp_path))
    assert (target / "data" / "precious").read_text() == "gold"


def test_a_link_that_leaves_the_folder_is_not_followed(
    recorded: Recorded, target: Path, tmp_path: Path
) -> None:
    (recorded.work / "out").mkdir()
    (recorded.work / "out" / "file").write_text("of the run")
    tree = recorded.snapshot()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (target / "out").symlink_to(outside)
    recorded.snapshots().restore(tree, str(target), str(tmp_path))
    assert (outside / "file").read_text() == "mine"
    assert (target / "out" / "file").read_text() == "of the run" and not (target / "out").is_symlink()


def test_nothing_in_the_repository_of_a_trace_is_run(
    recorded: Recorded, target: Path, tmp_path: Path
) -> None:
    (recorded.work / ".gitattributes").write_text("* filter=evil diff=evil\n")
    (recorded.work / "a").write_text("a")
    tree = recorded.snapshot()
    repository = Path(recorded.shadow.repository)
    evil = tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    (repository / "hooks").mkdir()
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        (repository / "hooks" / hook).symlink_to(evil)
    settings = f"fsmonitor = {evil}\n\thooksPath = {repository}/hooks\n\tpager = {evil}\n\tworktree = /\n"
    filters = f'[filter "evil"]\n\tclean = {evil}\n\tsmudge = {evil}\n\tprocess = {evil}\n\trequired\n'
    (repository / "config").write_text(f"[core]\n\tbare = false\n\t{settings}{filters}")
    (repository / "info" / "attributes").write_text("* filter=evil\n")
    git(target, "init", "-q")
    with open(target / ".git" / "config", "a") as file:  # nor of the folder's own one
        file.write(f"[core]\n\t{settings}{filters}")
    recorded.snapshots().restore(tree, str(target), str(tmp_path))
    assert (target / "a").read_text() == "a" and not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["..", ".git", "a/../../x", "/x", ".GIT"])
def test_a_tree_with_a_way_out_is_refused(
    recorded: Recorded, target: Path, tmp_path: Path, name: str
) -> None:
    (recorded.work / "evil").write_text("evil")
    recorded.snapshot()
    blob = bytes.fromhex(hashlib.sha1(b"blob 4\0evil").hexdigest())
    inner = loose(recorded, b"tree", b"100644 hooks\0" + blob)
    for entry in (
        b"100644 " + name.encode() + b"\0" + blob,
        b"40000 " + name.encode() + b"\0" + bytes.fromhex(inner),
    ):
        tree = loose(recorded, b"tree", entry)
        with pytest.raises(UsageError, match="cannot be restored"):
            recorded.snapshots().restore(tree, str(target), str(tmp_path))
    assert state(target) == {} and not (tmp_path / "x").exists() and not list(tmp_path.glob("kept-*"))


def test_objects_that_are_not_what_they_are_called_are_refused(
    recorded: Recorded, target: Path, tmp_path: Path
) -> None:
    tree = recorded.snapshot()
    (recorded.work / "a").write_text("a")
    other = recorded.snapshot()
    objects = Path(recorded.shadow.repository, "objects")
    place = objects / other[:2] / other[2:]
    place.chmod(0o644)
    place.write_bytes(zlib.compress(b"tree 0\0"))
    with pytest.raises(UsageError, match="cannot be restored"):
        recorded.snapshots().restore(other, str(target), str(tmp_path))
    with pytest.raises(UsageError, match="cannot be restored"):
        recorded.snapshots().restore("0" * 40, str(target), str(tmp_path))
    recorded.snapshots().restore(tree, str(target), str(tmp_path))


@pytest.mark.parametrize(
    "reported", ["HEAD", "--output=x", "A" * 40, "a" * 39, ["a" * 40], {"$": 1}, None, 5]
)
def test_what_is_no_id_is_no_snapshot(
    recorded: Recorded, target: Path, tmp_path: Path, reported: Any
) -> None:
    snapshots = recorded.snapshots(reported)
    (call,) = Tape(Recording.load(str(recorded.path))).calls
    assert snapshots.tree_at(call) is None and snapshots.first() is None
    if type(reported) is str:
        with pytest.raises(UsageError):
            snapshots.restore(reported, str(target), str(tmp_path))


def test_a_run_inside_another_finds_the_snapshots_of_that_one(recorded: Recorded, tmp_path: Path) -> None:
    snapshots = recorded.snapshots()
    parent = "ab" * 16
    os.rename(
        snapshots.repository, recorded.path.parent / f"20260101-000000-agent-{parent[:12]}.workspace.git"
    )
    head = {"ts": 1.0, "run": "r", "w": "00000000", "step": 1, "kind": "run.start", "v": "1.0"}
    recorded.path.write_text(json.dumps({**head, "parent_run": parent}) + "\n")
    found = Snapshots.of(Recording.load(str(recorded.path)))
    assert found is not None and found.repository.endswith(f"{parent[:12]}.workspace.git")
    recorded.path.write_text(json.dumps({**head, "parent_run": "../" * 10 + "ab"}) + "\n")
    assert Snapshots.of(Recording.load(str(recorded.path))) is None


def test_a_repository_that_is_there_is_not_taken(recorded: Recorded) -> None:
    with pytest.raises(SnapshotError, match="cannot be made"):
        Shadow(recorded.shadow.repository, str(recorded.work)).begin()


def loose(recorded: Recorded, kind: bytes, data: bytes) -> str:
    """Put an object into the repository that git itself would not make."""
    whole = kind + b" %d\0" % len(data) + data
    name = hashlib.sha1(whole).hexdigest()
    place = Path(recorded.shadow.repository, "objects", name[:2], name[2:])
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(zlib.compress(whole))
    return name


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "a")
