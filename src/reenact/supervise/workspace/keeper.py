"""The keeper of a workspace: a process of the supervisor's that takes snapshots while the agent waits.

It listens on a socket in a folder of its own and ends with the supervisor. Those who ask at the same time
get the same snapshot: each of them waits, so none of them has changed anything since.
"""

from __future__ import annotations

import os
import select
import shutil
import socket
import tempfile
import time
from collections.abc import Callable
from typing import NoReturn

from ...capture import guard
from ...capture.front.options import Options
from ...capture.recorder.disk_space import over_quota_by_now
from ...capture.workspace import FAILED, FAILED_BEFORE, RESTORE, RESTORED, SNAPSHOT, TREE, VARIABLE, WAITS
from ...capture.workspace import RESTORE_PATIENCE_S as LONG_S
from .git import TIMEOUT_S, SnapshotError
from .snapshots import Shadow

_LONGEST_PATH = 100
"""Of a socket; systems have room for about that many bytes."""
_CLIENT_S = 2.0
_MEASURED_S = 10.0
"""How long it is taken to be known how much room there is."""


class Keeper:
    """The supervisor's end: begins the process and ends it."""

    def __init__(self, shadow: Shadow, source: str | None = None) -> None:
        self._shadow = shadow
        self._source = source
        """The repository to restore from; nothing is kept before that was done."""
        self._place = ""
        self._alive = -1
        self._pid = 0

    def start(self) -> dict[str, str]:
        """Begin; returns the variables for the agent. OSError if no process is to be had."""
        self._place = _short_folder()
        path = os.path.join(self._place, "keeper")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(path)
        listener.listen(128)
        supervisor, self._alive = os.pipe()
        try:
            self._pid = os.fork()
            if self._pid == 0:
                os.close(self._alive)
                self._become_keeper(listener, supervisor)
        finally:
            listener.close()
            os.close(supervisor)
        return {VARIABLE: path}

    def stop(self) -> None:
        """End it, and wait a while until what it does is done."""
        try:
            os.write(self._alive, b"\n")  # closing it says nothing while a fork of ours has it, too
            until = time.monotonic() + TIMEOUT_S
            while os.waitpid(self._pid, os.WNOHANG)[0] == 0 and time.monotonic() < until:
                time.sleep(0.002)
        except (BrokenPipeError, ChildProcessError):
            pass  # it is gone; the supervisor buries whatever ends
        finally:
            os.close(self._alive)
        shutil.rmtree(self._place, ignore_errors=True)

    def _become_keeper(self, listener: socket.socket, supervisor: int) -> NoReturn:
        """In the forked process: answer until the supervisor is gone."""
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):  # nobody shall wait for the end of a pipe because of us
                os.dup2(nowhere, stream)
            _Serving(self._shadow, self._source).serve(listener, supervisor)
            shutil.rmtree(self._place, ignore_errors=True)  # a supervisor that was killed cannot
            os._exit(0)
        finally:
            os._exit(1)


def _short_folder() -> str:
    folder = tempfile.mkdtemp(prefix="reenact-")
    if len(os.fsencode(folder)) < _LONGEST_PATH - 10:
        return folder
    os.rmdir(folder)
    return tempfile.mkdtemp(prefix="reenact-", dir="/tmp")


class _Serving:
    def __init__(self, shadow: Shadow, source: str | None) -> None:
        self._shadow = shadow
        self._source = source
        self._waits = source is not None
        self._failed: str | None = None
        self._is_reported = False
        self._uncommitted: str | None = None
        self._measured_until = 0.0
        shadow.git.timeout_s = LONG_S
        self._attempt(shadow.begin)

    def serve(self, listener: socket.socket, supervisor: int) -> None:
        """Answer until the supervisor says that it is over, or is gone."""
        calls = listener.fileno()
        while True:
            ready = select.select([calls, supervisor], [], [])[0]
            if calls in ready:
                self._answer(_waiting(listener))
            if supervisor in ready:
                return

    def _answer(self, requests: list[tuple[socket.socket, str]]) -> None:
        snapshot = None
        for client, request in requests:
            if request == SNAPSHOT:
                snapshot = snapshot or self._snapshot()
                answer = snapshot
            else:
                answer, snapshot = self._restore(request), None
            _reply(client, self._failure() if self._failed is not None else answer)
        if self._uncommitted is not None and self._failed is None:
            tree, self._uncommitted = self._uncommitted, None
            self._attempt(lambda: self._shadow.commit(tree))
            self._measure()

    def _measure(self) -> None:
        """Take no more snapshots once the folder's traces are more than they may be."""
        if time.monotonic() >= self._measured_until and self._failed is None:
            self._failed = over_quota_by_now(os.path.dirname(self._shadow.repository), Options())
            self._measured_until = time.monotonic() + _MEASURED_S

    def _snapshot(self) -> str:
        if self._waits:
            return WAITS

        def take() -> None:
            self._uncommitted = self._shadow.snapshot()

        self._attempt(take)
        self._shadow.git.timeout_s = TIMEOUT_S
        return f"{TREE} {self._uncommitted}"

    def _restore(self, request: str) -> str:
        word, _, tree = request.partition(" ")
        kept = ""

        def restore() -> None:
            nonlocal kept
            if word != RESTORE or self._source is None:
                raise SnapshotError(f"{word[:20]!r} is nothing that is done here")
            self._shadow.fetch(tree, self._source)
            kept = self._shadow.restore(tree)

        self._shadow.git.timeout_s = LONG_S
        self._attempt(restore)
        self._waits = False
        return f"{RESTORED} {kept}"

    def _attempt(self, work: Callable[[], None]) -> None:
        """Do it, unless something has failed before; a failure is for good."""
        if self._failed is not None:
            return
        try:
            work()
        except SnapshotError as exc:
            self._failed = str(exc)
        except Exception as exc:
            self._failed = guard.explain(exc)

    def _failure(self) -> str:
        word = FAILED_BEFORE if self._is_reported else FAILED
        self._is_reported = True
        return f"{word} {' '.join((self._failed or '').split())}"


def _waiting(listener: socket.socket) -> list[tuple[socket.socket, str]]:
    """Return all who are asking now, and what they ask."""
    found = []
    while select.select([listener], [], [], 0)[0]:
        client, _ = listener.accept()
        client.settimeout(_CLIENT_S)
        try:
            found.append((client, client.recv(200).decode("ascii").strip()))
        except (OSError, ValueError):  # gone again
            client.close()
    return found


def _reply(client: socket.socket, answer: str) -> None:
    try:
        client.sendall(answer.encode("utf-8", "replace") + b"\n")
    except OSError:
        pass  # it could not wait any longer
    finally:
        client.close()
