"""A folder as it was at many moments: a git repository of our own beside the trace.

Used by the supervisor's side, never inside the agent. The folder's own repository, the user's settings, hooks
and filters are not touched, read or run; of a repository that came with a trace nothing is read but objects.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable
from shlex import quote

from ...capture.recorder.disk_space import SNAPSHOTS
from ...errors import UsageError
from ...lines import new_id
from .git import Git, SnapshotError, first_line

NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The tree of an empty folder."""
MOST_LISTED, MOST_BYTES = 64 << 20, 16 << 30
"""What a snapshot that came with a trace may unfold into: bytes of its list of files, and of the files."""
_TRIES = 4
_AS_IT_IS = "* -text -ident !eol !filter !working-tree-encoding\n"
"""Attributes that come before those of the folder: files go in and out byte for byte, and no filter runs."""


def named_folder(text: str, traces: str | None = None) -> str:
    """Return the folder that the user named as a workspace; UsageError for what cannot be one."""
    folder = os.path.realpath(text)
    if not os.path.isdir(folder):
        raise UsageError(
            f"--workspace {text}: there is no such folder", hint="make it first, or name another"
        )
    if folder in (os.sep, os.path.realpath(os.path.expanduser("~"))):
        raise UsageError(
            f"--workspace {text} is not only the agent's", hint="name the folder that it works on"
        )
    if traces is not None and folder == os.path.realpath(traces):
        raise UsageError(
            f"--workspace {text} is the folder of the traces", hint="put these elsewhere: --out DIR"
        )
    return folder


def repository_of(path: str) -> str:
    """Return where the snapshots of a run are, by the path of its file."""
    return path.removesuffix(".jsonl") + SNAPSHOTS


def is_tree_id(text: object) -> bool:
    """True for what may be the id of a tree; a trace is not to be trusted with anything else."""
    return type(text) is str and len(text) in (40, 64) and not set(text) - set("0123456789abcdef")


class Shadow:
    """One folder and the repository that remembers it. One process at a time."""

    def __init__(self, repository: str, folder: str, leave_out: Iterable[str] = ()) -> None:
        self.repository = os.path.abspath(repository)
        self.folder = os.path.realpath(folder)
        inside = self.folder.rstrip(os.sep) + os.sep
        everything = (self.repository, *leave_out)
        self._leave_out = [
            os.path.realpath(each).removeprefix(inside)
            for each in everything
            if os.path.realpath(each).startswith(inside)
        ]
        """Paths inside the folder that are ours."""
        self._known: tuple[tuple[int, ...], str] | None = None
        self._head: str | None = None
        self._committed = ""
        self.git = Git(self.repository, self.folder)

    def begin(self) -> None:
        """Make the repository; one that is there already is somebody else's."""
        try:
            os.mkdir(self.repository, 0o700)
        except OSError as exc:
            raise SnapshotError(f"{self.repository} cannot be made: {exc.strerror}") from exc
        self.git("init", "--quiet", "--bare", "--template=", "--initial-branch=workspace")
        os.makedirs(os.path.join(self.repository, "info"), exist_ok=True)
        with open(os.path.join(self.repository, "info", "attributes"), "w", encoding="ascii") as file:
            file.write(_AS_IT_IS)

    def snapshot(self) -> str:
        """Return the id of the folder as it is now."""
        self._stage(self.folder, self.git.index, self._leave_out)
        if self._known is None or self._known[0] != self._index_state():  # else git has left the file alone
            tree = self.git("write-tree").decode().strip()  # after which it knows the trees of the folders
            self._known = self._index_state(), tree
        return self._known[1]

    def _index_state(self) -> tuple[int, ...]:
        if not os.path.exists(self.git.index):
            return ()
        state = os.stat(self.git.index)
        return state.st_ino, state.st_mtime_ns, state.st_size

    def commit(self, tree: str, about: str = "workspace", branch: str = "workspace") -> None:
        """Keep a tree for good; one that was the last already needs nothing."""
        if tree == self._committed:
            return
        parents = () if self._head is None else ("-p", self._head)
        commit = self.git("commit-tree", tree, *parents, "-m", about).decode().strip()
        self.git("update-ref", f"refs/heads/{branch}", commit)
        self._head, self._committed = commit, tree

    def _stage(self, folder: str, index: str, leave_out: list[str]) -> None:
        """Bring the index up to the folder."""
        empty: list[str] = []
        for _ in range(_TRIES):
            without = [f":(exclude,literal,top){name}" for name in (*leave_out, *empty)]
            done = self.git.run("add", "--all", "--", ".", *without, index=index, folder=folder)
            if done.returncode == 0 and not done.stderr:
                return
            # Git stores a repository inside as a link; or a file has vanished meanwhile.
            for name in self._repositories(folder, index, [*leave_out, *empty]):
                if not self._take_in(folder, index, name):
                    empty.append(name)
        raise SnapshotError(first_line(done.stderr))

    def _repositories(self, folder: str, index: str, known: list[str]) -> list[str]:
        """Return the repositories inside a folder whose files the index does not hold."""
        others = self.git("ls-files", "-o", "-z", "--exclude-standard", index=index, folder=folder)
        entries = self.git("ls-files", "-s", "-z", index=index, folder=folder)
        found = [name[:-1] for name in _names(others) if name.endswith("/")]
        links = [entry.partition("\t")[2] for entry in _names(entries) if entry.startswith("160000 ")]
        return [name for name in dict.fromkeys([*links, *found]) if name not in known]

    def _take_in(self, folder: str, index: str, name: str) -> bool:
        """Add the files of a repository inside as files; False if there are none."""
        own_index = f"{index}.{new_id(4)}"
        try:
            inner = os.path.join(folder, name)
            leave_out = [each[len(name) + 1 :] for each in self._leave_out if each.startswith(name + "/")]
            self._stage(inner, own_index, leave_out if folder == self.folder else [])
            tree = self.git("write-tree", index=own_index, folder=inner).decode().strip()
        finally:
            if os.path.exists(own_index):
                os.unlink(own_index)
        words = ("update-index", "--force-remove", "-z", "--stdin")
        self.git(*words, stdin=_lines([name]), index=index, folder=folder)
        if tree == NOTHING:
            return False
        self.git("read-tree", f"--prefix={name}/", tree, index=index, folder=folder)
        return True

    def fetch(self, tree: str, source: str) -> None:
        """Copy a tree out of another repository, of which nothing but objects is read, each checked."""
        if not is_tree_id(tree):
            raise SnapshotError(f"{tree!r} is not the id of a snapshot")
        objects = os.path.join(source, "objects")
        if not os.path.isdir(objects):
            raise SnapshotError(f"there are no snapshots at {source}")
        try:
            _refuse_odd_files(source)
            with tempfile.TemporaryFile(dir=self.repository) as pack:
                alternates = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(objects)}
                words = ("pack-objects", "--revs", "--stdout", "-q", "--window=0")
                self.git.within_limits(*words, stdin=f"{tree}\n".encode(), into=pack, more=alternates)
                pack.seek(0)
                with open(os.devnull, "wb") as nowhere:
                    self.git.within_limits("index-pack", "--stdin", "--strict", stdin=pack, into=nowhere)
            self._refuse_bomb(tree)
        except SnapshotError as exc:
            raise SnapshotError(f"the snapshot {tree[:12]} cannot be read: {exc}") from exc

    def _refuse_bomb(self, tree: str) -> None:
        """Refuse a few objects that unfold into more files, or more bytes, than an agent's folder has."""
        total = 0
        with tempfile.TemporaryFile(dir=self.repository) as listing:
            try:
                words = ("ls-tree", "-r", "-l", "-z", tree)
                self.git.within_limits(*words, stdin=b"", into=listing, blocks=str(MOST_LISTED // 512))
            except SnapshotError as exc:
                raise SnapshotError(f"it has too many files ({exc})") from exc
            listing.seek(0)
            for entry in listing.read().split(b"\0"):
                size = entry.partition(b"\t")[0].rpartition(b" ")[2]
                total += int(size) if size.isdigit() else 0
        if total > MOST_BYTES:
            raise SnapshotError(f"its files have {total:,} bytes, more than {MOST_BYTES:,}")

    def restore(self, tree: str) -> str:
        """Make the folder equal to a tree; returns that of what was there before, which is kept.

        What is ignored stays as it is, and so does the folder's own repository.
        """
        if not is_tree_id(tree) or self.git.run("cat-file", "-e", f"{tree}^{{tree}}").returncode:
            raise SnapshotError(f"there is no snapshot {tree}")
        kept = self.snapshot()
        in_the_way = self._in_the_way(tree)
        if in_the_way:
            self.git("update-index", "--add", "-z", "--stdin", stdin=_lines(in_the_way))
            kept = self.git("write-tree").decode().strip()
        self.commit(kept, "before a restore", "kept")
        self.git("read-tree", "--reset", "-u", tree)
        if self.git.run("diff-files", "--quiet").returncode:  # ignored files beside it do not count
            raise SnapshotError(
                f"{self.folder} is not as the snapshot {tree[:12]} has it: is somebody at work there?"
            )
        self.commit(tree, "restored")
        return kept

    def changed(self, before: str, after: str) -> list[str]:
        """Return the files in which two trees differ."""
        return _names(self.git("diff-tree", "-r", "-z", "--name-only", before, after))

    def _in_the_way(self, tree: str) -> list[str]:
        """Return what is ignored and stands where the tree has something, so that it can be kept, too."""
        known = set(_names(self.git("ls-files", "-z")))
        found: dict[str, None] = {}
        for name in _names(self.git("ls-tree", "-r", "-z", "--name-only", tree)):
            parts = name.split("/")
            for depth in range(1, len(parts) + 1):
                path = "/".join(parts[:depth])
                whole = os.path.join(self.folder, path)
                is_folder = os.path.isdir(whole) and not os.path.islink(whole)
                if is_folder and depth == len(parts):
                    self._refuse_ignored(path, known)
                if not is_folder:
                    if os.path.lexists(whole) and path not in known:
                        found[path] = None
                    break
        return list(found)

    def _refuse_ignored(self, path: str, known: set[str]) -> None:
        for folder, _, files in os.walk(os.path.join(self.folder, path)):
            inside = [os.path.relpath(os.path.join(folder, file), self.folder) for file in files]
            lost = [name for name in inside if name not in known]
            if lost:
                raise SnapshotError(f"{lost[0]} is ignored and would be lost: the snapshot has a file {path}")


def way_back(repository: str, folder: str, kept: str) -> str:
    """Return the command line that brings back what a restore has put away."""
    places = f"--git-dir={quote(repository)} --work-tree={quote(folder)}"
    return f"git {places} read-tree --reset -u {kept}"


def _refuse_odd_files(repository: str) -> None:
    """Refuse links, pipes and devices among objects, and objects elsewhere: we write none of these."""
    if os.path.islink(repository) or os.path.lexists(
        os.path.join(repository, "objects", "info", "alternates")
    ):
        raise SnapshotError(f"{repository} refers to objects elsewhere")
    for place, folders, files in os.walk(os.path.join(repository, "objects")):
        for name in (*folders, *files):
            mode = os.lstat(os.path.join(place, name)).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise SnapshotError(f"{os.path.join(place, name)} is not a plain file")


def _names(data: bytes) -> list[str]:
    return [os.fsdecode(each) for each in data.split(b"\0") if each]


def _lines(names: list[str]) -> bytes:
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def _quoted(path: str) -> str:
    """Spell a path for a list that is separated by colons."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
