"""In the agent: asks the supervisor's keeper for a snapshot of the workspace, and waits until it is taken.

Nothing is started here and no file is read: one line goes through a socket and one comes back. Where that
fails it is reported once, noted in the trace, and never tried again.
"""

from __future__ import annotations

import os
from _socket import AF_UNIX, SOCK_STREAM, socket  # what a library made of sockets is not for us

from ..errors import Halted
from . import guard
from .recorder.recorder import Recorder
from .runs.location import variable

VARIABLE = "REENACT_WORKSPACE"
"""The socket of the keeper (``keeper``); set by ``reenact run --workspace``."""
PATIENCE_S = 20.0
"""How long the agent may be kept waiting for one snapshot."""
RESTORE_PATIENCE_S = 300.0
"""The same for a fork at its cut, and before the agent begins: then every file is read or written."""

SNAPSHOT, RESTORE = "snapshot", "restore"
TREE, RESTORED, WAITS, FAILED, FAILED_BEFORE = "tree", "restored", "waits", "failed", "failed-before"
"""What a keeper answers: an id; the id of what was there before; nothing, since nothing was restored yet; why
there are no snapshots any more, and the same to those who ask after the first one was answered."""

_without_keeper: set[int] = set()
"""The process that need not ask again; a forked child may."""


def tree_now(recorder: Recorder) -> str | None:
    """Return the id of the workspace as it is, None if nobody keeps one. Never raises."""
    if os.getpid() in _without_keeper:
        return None
    if not variable(VARIABLE):  # a supervisor sets it before a process begins
        _without_keeper.add(os.getpid())
        return None
    try:
        word, detail = ask(SNAPSHOT, PATIENCE_S)
        if word == TREE:
            return detail
        if word != WAITS:
            _give_up(recorder, detail, is_new=word == FAILED)
    except Exception as exc:
        guard.pass_on(exc)
        _give_up(recorder, f"the keeper does not answer: {guard.explain(exc)}", is_new=True)
    return None


def _give_up(recorder: Recorder, why: str, *, is_new: bool) -> None:
    _without_keeper.add(os.getpid())
    if is_new:
        report(why)
    recorder.note("workspace", detail=why)


def report(why: str) -> None:
    """Report that the run continues without snapshots."""
    guard.tell("workspace", f"no more snapshots of the workspace ({why}). Your agent is unaffected.")


def ask(request: str, patience_s: float) -> tuple[str, str]:
    """Return the keeper's answer as a word and what it tells; OSError if there is none."""
    line = socket(AF_UNIX, SOCK_STREAM)
    try:
        line.settimeout(patience_s)
        line.connect(variable(VARIABLE))
        line.sendall(request.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            piece = line.recv(4096)
            if not piece:
                raise ConnectionError("the connection ended")
            answer += piece
    finally:
        line.close()
    word, _, detail = answer.decode("utf-8", "replace").strip().partition(" ")
    return word, detail


def restore(tree: str) -> str:
    """Make the workspace what it was at the cut of a fork; returns the id of what was there until now.

    Halted if that cannot be: nothing may go live in another world than the recorded one.
    """
    try:
        word, detail = ask(f"{RESTORE} {tree}", RESTORE_PATIENCE_S)
    except (KeyError, OSError) as exc:
        word, detail = "", f"the keeper does not answer: {guard.explain(exc)}"
    if word != RESTORED:
        raise Halted(
            f"the workspace is not what it was at the cut: {detail}", hint="--stale-world leaves it as it is"
        )
    return detail
