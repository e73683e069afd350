"""Snapshots of a workspace that came with a trace, made to harm: nothing of them runs, nothing is written outside the
folder that the user names, and none takes the machine's memory."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from reenact.testing import write_trace
from support.examples import one_in
from support.typed import Typed, typed

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
ANSWER = {"role": "assistant", "content": "hi"}
PWN = "#!/bin/sh\ntouch {folder}/PWNED\n"
MOST_BYTES = 600 << 20


class Repository:
    """A repository whose objects are written by hand, so that git does not check them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (path / "objects" / "info").mkdir(parents=True)
        (path / "objects" / "pack").mkdir()
        (path / "refs").mkdir()
        (path / "HEAD").write_text("ref: refs/heads/workspace\n")

    def add(self, kind: str, data: bytes) -> str:
        whole = f"{kind} {len(data)}\0".encode() + data
        digest = hashlib.sha1(whole).hexdigest()
        self.file_of(digest).parent.mkdir(exist_ok=True)
        self.file_of(digest).write_bytes(zlib.compress(whole))
        return digest

    def file_of(self, digest: str) -> Path:
        return self.path / "objects" / digest[:2] / digest[2:]

    def blob(self, data: bytes = b"hello\n") -> str:
        return self.add("blob", data)

    def tree(self, *entries: tuple[str, str, str]) -> str:
        """Entries are (mode, name, digest)."""
        rows = sorted(entries, key=lambda entry: entry[1] + ("/" if entry[0] == "40000" else ""))
        return self.add(
            "tree", b"".join(f"{m} {n}\0".encode() + bytes.fromhex(digest) for m, n, digest in rows)
        )

    def file(self, name: str = "file", data: bytes = b"hello\n") -> tuple[str, str, str]:
        return ("100644", name, self.blob(data))


def plain(repository: Repository, folder: Path) -> str:
    return repository.tree(repository.file())


def with_settings(repository: Repository, folder: Path) -> str:
    """Everything that git may be configured to run."""
    script = repository.path / "hooks" / "any"
    script.parent.mkdir()
    names = ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor", "any")
    for name in names:
        (script.parent / name).write_text(PWN.format(folder=folder))
        (script.parent / name).chmod(0o700)
    (repository.path / "included").write_text(f'[filter "x"]\n\tsmudge = {script}\n\tprocess = {script}\n')
    (repository.path / "config").write_text(
        f"[core]\n\tbare = true\n\tfsmonitor = {script}\n\thooksPath = {script.parent}\n\tsshCommand = {script}\n"
        f"\tpager = {script}\n\teditor = {script}\n\talternateRefsCommand = {script}\n\tworktree = {folder}\n"
        f"[include]\n\tpath = {repository.path}/included\n"
        f'[filter "x"]\n\tsmudge = {script}\n\tclean = {script}\n\trequired = true\n[diff]\n\texternal = {script}\n'
        f"[extensions]\n\tpartialClone = origin\n[remote \"origin\"]\n\turl = ext::{script}\n\tpromisor = true\n"
        f"[uploadpack]\n\tpackObjectsHook = {script}\n[gpg]\n\tprogram = {script}\n[credential]\n\thelper = {script}\n"
    )  # fmt: skip
    (repository.path / "info").mkdir()
    (repository.path / "info" / "attributes").write_text("* filter=x diff=x\n")
    return repository.tree(repository.file(".gitattributes", b"* filter=x\n"), repository.file())


def with_submodule(repository: Repository, folder: Path) -> str:
    modules = f'[submodule "x"]\n\tpath = inner\n\turl = ext::sh -c "touch {folder}/PWNED"\n'.encode()
    return repository.tree(
        repository.file(".gitmodules", modules), repository.file(), ("160000", "inner", "1" * 40)
    )


def with_link_out(repository: Repository, folder: Path) -> str:
    """A link that leads out is data; nothing may be written through it."""
    link = ("120000", "out", repository.blob(str(folder / "outside").encode()))
    return repository.tree(link, repository.file())


HARMLESS: dict[str, Callable[[Repository, Path], str]] = {
    "plain": plain,
    "settings": with_settings,
    "submodule": with_submodule,
    "link out": with_link_out,
}


def entry_named(name: str) -> Callable[[Repository, Path], str]:
    return lambda repository, folder: repository.tree(repository.file(), repository.file(name, b"evil\n"))


def folder_named(name: str) -> Callable[[Repository, Path], str]:
    def make(repository: Repository, folder: Path) -> str:
        inner = repository.tree(repository.file("config", b"[core]\n\tfsmonitor = touch PWNED\n"))
        return repository.tree(repository.file(), ("40000", name, inner))

    return make


def through_link(repository: Repository, folder: Path) -> str:
    inner = repository.tree(repository.file("evil"))
    link = repository.blob(str(folder / "outside").encode())
    return repository.tree(("120000", "a", link), ("40000", "a", inner))


def with_alternates(repository: Repository, folder: Path) -> str:
    other = Repository(folder / "other.git")
    (repository.path / "objects" / "info" / "alternates").write_text(str(other.path / "objects") + "\n")
    return other.tree(other.file())


def odd_object(make: Callable[[Path], object]) -> Callable[[Repository, Path], str]:
    def made(repository: Repository, folder: Path) -> str:
        blob = repository.blob(b"what is not there\n")
        repository.file_of(blob).unlink()
        make(repository.file_of(blob))
        return repository.tree(("100644", "file", blob))

    return made


def many_files(repository: Repository, folder: Path) -> str:
    """11 objects that unfold into 10 ** 10 files."""
    mode, digest = "100644", repository.blob()
    for _ in range(10):
        digest = repository.tree(*((mode, f"d{number}", digest) for number in range(10)))
        mode = "40000"
    return digest


def many_bytes(repository: Repository, folder: Path) -> str:
    """One file of 16 MB, 1,100 times: 17 GB."""
    blob = repository.blob(bytes(16 << 20))
    return repository.tree(*(("100644", f"f{number:04}", blob) for number in range(1100)))


def large_tree(repository: Repository, folder: Path) -> str:
    """A tree of 700 MB, a few bytes on disk."""
    head, more = b"tree %d\0" % (700 << 20), b"\0" * (1 << 20)
    packer, digest = zlib.compressobj(1), hashlib.sha1(head)
    data = packer.compress(head)
    for _ in range(700):
        digest.update(more)
        data += packer.compress(more)
    name = digest.hexdigest()
    repository.file_of(name).parent.mkdir(exist_ok=True)
    repository.file_of(name).write_bytes(data + packer.flush())
    return name


def wrong_size(repository: Repository, folder: Path) -> str:
    blob = repository.blob(b"x")
    repository.file_of(blob).write_bytes(zlib.compress(b"blob 99999999999999\0x"))
    return repository.tree(("100644", "file", blob))


def garbage(repository: Repository, folder: Path) -> str:
    (repository.path / "objects" / "pack" / f"pack-{'1' * 40}.pack").write_bytes(b"PACK" + bytes(99))
    (repository.path / "objects" / "pack" / f"pack-{'1' * 40}.idx").write_bytes(b"\377tOc" + bytes(99))
    blob = repository.blob()
    repository.file_of(blob).write_bytes(b"\x1b[2J nothing of git")
    return repository.tree(("100644", "file", blob))


REFUSED: dict[str, Callable[[Repository, Path], str]] = {
    ".git": folder_named(".git"),
    ".GIT": folder_named(".GIT"),
    "dots": folder_named(".."),
    "dot": folder_named("."),
    "a path": entry_named("../evil"),
    "absolute": entry_named("/tmp/evil"),
    "no name": entry_named(""),
    "through a link": through_link,
    "alternates": with_alternates,
    "linked object": odd_object(lambda path: path.symlink_to("/etc/passwd")),
    "device": odd_object(lambda path: path.symlink_to("/dev/zero")),
    "pipe": odd_object(os.mkfifo),
    "many files": many_files,
    "many bytes": many_bytes,
    "large tree": large_tree,
    "wrong size": wrong_size,
    "garbage": garbage,
    "linked folder": lambda repository, folder: linked_objects(repository, folder),
}


BOMBS = ("many files", "many bytes", "large tree", "wrong size")


def linked_objects(repository: Repository, folder: Path) -> str:
    other = Repository(folder / "other.git")
    tree = other.tree(other.file())
    (repository.path / "objects" / tree[:2]).symlink_to(other.path / "objects" / tree[:2])
    return tree


class Sent:
    """A trace with a repository beside it, and a folder that the user wants it restored in."""

    def __init__(self, folder: Path, make: Callable[[Repository, Path], str]) -> None:
        self.folder = folder
        (folder / "outside").mkdir()
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "mine").write_text("mine")
        (folder / "agent.py").write_text("print('started')")
        tree = make(Repository(folder / "RUN.workspace.git"), folder)
        rows = [
            ("model.request", {"call": "a", "provider": "anthropic", "body": REQUEST, "workspace": tree}),
            ("model.response", {"call": "a", "provider": "anthropic", "body": ANSWER}),
        ]
        write_trace(folder / "RUN.jsonl", rows)

    def type(self, *words: str, start: Callable[[], None] | None = None) -> Typed:
        done = typed(*words, cwd=self.folder, start=start, XDG_STATE_HOME=str(self.folder / "state"))
        assert not (self.folder / "PWNED").exists() and not (self.work / "PWNED").exists(), done
        assert not list((self.folder / "outside").iterdir())
        assert "\x1b" not in done.out + done.err
        return done

    def fork(self, start: Callable[[], None] | None = None) -> Typed:
        words = ["fork", "RUN.jsonl", "--at", "turn:1", "--set", "system=x", "--workspace", "work"]
        return self.type(*words, "--", "agent.py", start=start)


def most_of_a_child() -> int:
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


@pytest.mark.parametrize("kind", HARMLESS)
def test_files_are_restored_and_nothing_is_run(tmp_path: Path, kind: str) -> None:
    sent = Sent(tmp_path, HARMLESS[kind])
    done = sent.fork()
    assert "work is restored" in done.err and "started" in done.out, done
    assert (sent.work / "file").read_text() == "hello\n"


@pytest.mark.parametrize("kind", one_in(2, REFUSED, first=1))
def test_what_is_no_snapshot_of_ours_is_refused_and_the_folder_left_as_it_is(
    tmp_path: Path, kind: str
) -> None:
    sent, before = Sent(tmp_path, REFUSED[kind]), most_of_a_child()
    done = sent.fork(start=(lambda: None) if kind in BOMBS else None)  # a child of ours: its memory counts
    assert done.code == 2 and "cannot be restored" in done.err and "started" not in done.out, done
    assert [path.name for path in sent.work.iterdir()] == ["mine"] and not Path("/tmp/evil").exists()
    kept = tmp_path / ".reenact"
    assert not kept.exists() or not list(kept.glob("kept-*"))
    assert most_of_a_child() <= max(before, MOST_BYTES)
    for words in (["ls"], ["show"], ["doctor"], ["stats"], ["ls", "."]):
        assert sent.type(words[0], words[-1] if len(words) > 1 else "RUN.jsonl").code in (0, 1)


def test_a_repository_that_is_a_link_is_refused(tmp_path: Path) -> None:
    sent = Sent(tmp_path, plain)
    (tmp_path / "RUN.workspace.git").rename(tmp_path / "elsewhere.git")
    (tmp_path / "RUN.workspace.git").symlink_to("elsewhere.git")
    done = sent.fork()
    assert done.code == 2 and "refers to objects elsewhere" in done.err, done


def test_the_objects_made_by_hand_are_what_git_would_make(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "x.git")
    tree = plain(repository, tmp_path)
    done = subprocess.run(
        ["git", "--git-dir", repository.path, "ls-tree", tree], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("\tfile\n")
