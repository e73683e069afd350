"""git as a tool of ours: one repository, no settings but these, no prompt, no hook or filter run."""

from __future__ import annotations

import os
import subprocess
from typing import IO

TIMEOUT_S = 18.0
"""For one command; whoever asks for a snapshot waits a little longer."""

_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null", "core.autocrlf=false", "core.safecrlf=false", "core.fileMode=true",
    "core.fsync=none", "gc.auto=0", "maintenance.auto=false",
    "commit.gpgSign=false", "advice.addEmbeddedRepo=false", "core.sparseCheckout=false",
    "core.commitGraph=false", "core.multiPackIndex=false", "core.bigFileThreshold=16m", "pack.threads=1",
)  # fmt: skip
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "false", "GIT_EDITOR": "false",
    "GIT_NO_REPLACE_OBJECTS": "1", "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none", "LC_ALL": "C",
    "GIT_AUTHOR_NAME": "reenact", "GIT_AUTHOR_EMAIL": "", "GIT_COMMITTER_NAME": "reenact",
    "GIT_COMMITTER_EMAIL": "",
}  # fmt: skip
_LIMITED = ("sh", "-c", 'ulimit -d 524288; ulimit -f "$1"; shift; exec "$@"', "sh")
"""512 MB of memory for what reads objects of somebody else's, and so many blocks of output (of 512 bytes)."""
_WITHOUT_FOLDER = ("init", "index-pack", "pack-objects")


class SnapshotError(Exception):
    """A snapshot could not be taken or brought back; the text says why."""


class Git:
    """Commands on one repository, by default with its own index and one folder as the work tree."""

    def __init__(self, repository: str, folder: str) -> None:
        self.repository = repository
        self.folder = folder
        self.index = os.path.join(repository, "index")
        self.timeout_s = TIMEOUT_S

    def __call__(
        self,
        *words: str,
        stdin: bytes = b"",
        index: str | None = None,
        folder: str | None = None,
    ) -> bytes:
        """Return what a command writes; SnapshotError if it fails."""
        return _output(words, self.run(*words, stdin=stdin, index=index, folder=folder))

    def within_limits(
        self, *words: str, stdin: bytes | IO[bytes], into: IO[bytes], blocks: str = "unlimited",
        more: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Run a command on objects of somebody else's: memory is limited, and output, ``into`` a file."""
        _output(words, self.run(*words, stdin=stdin, into=into, more=more, before=(*_LIMITED, blocks)))

    def run(
        self,
        *words: str,
        stdin: bytes | IO[bytes] = b"",
        index: str | None = None,
        folder: str | None = None,
        more: dict[str, str] | None = None,
        into: IO[bytes] | None = None,
        before: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command, however it ends."""
        folder, index = folder or self.folder, index or self.index
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env |= _ENVIRONMENT | {"HOME": self.repository, "XDG_CONFIG_HOME": self.repository} | (more or {})
        env |= {"GIT_DIR": self.repository, "GIT_INDEX_FILE": index}
        if words[0] not in _WITHOUT_FOLDER:
            env["GIT_WORK_TREE"] = folder
        command = [*before, "git", *(word for each in _SETTINGS for word in ("-c", each)), *words]
        try:
            return subprocess.run(  # noqa: S603
                command,
                stdout=subprocess.PIPE if into is None else into,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=env,
                timeout=self.timeout_s,
                check=False,
                input=stdin if isinstance(stdin, bytes) else None,
                stdin=None if isinstance(stdin, bytes) else stdin,
            )
        except FileNotFoundError as exc:
            missing = "git is not on the PATH" if os.path.isdir(folder) else f"{folder} is gone"
            raise SnapshotError(missing) from exc
        except subprocess.TimeoutExpired as exc:
            _unlock(index)
            raise SnapshotError(f"git {words[0]} took longer than {self.timeout_s:g} s") from exc
        except OSError as exc:
            raise SnapshotError(f"git cannot be run: {exc.strerror}") from exc


def _output(words: tuple[str, ...], done: subprocess.CompletedProcess[bytes]) -> bytes:
    if done.returncode:
        raise SnapshotError(first_line(done.stderr) or f"git {words[0]} ended with {done.returncode}")
    return done.stdout


def _unlock(index: str) -> None:
    """Take away the lock of a git that was ended; nobody else writes here."""
    if os.path.exists(f"{index}.lock"):
        os.unlink(f"{index}.lock")


def first_line(data: bytes) -> str:
    """Return what git complains of."""
    lines = data.decode("utf-8", "replace").strip().splitlines()
    text = lines[0].removeprefix("fatal: ").removeprefix("error: ")[:300] if lines else ""
    return "".join(char if char.isprintable() else "?" for char in text)  # it may name files of a trace
