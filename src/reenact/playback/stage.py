"""What is changed in a process while a run is re-enacted in it; each change returns what undoes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from .. import protocols
from ..capture import install, places
from . import preflight

Undo = Callable[[], None]

_FOLDER_VARIABLE = "REENACT_DIR"


def set_environment(folder: str, *, with_keys: bool) -> Undo:
    """Have runs that are begun meanwhile go to a folder, and SDKs find keys where nobody will see them."""
    wanted = {_FOLDER_VARIABLE: folder}
    if with_keys:
        wanted |= {name: "none" for name in preflight.KEYS if not os.environ.get(name)}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)

    def undo() -> None:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    return undo


def answer_with(responder: protocols.Responder) -> Undo:
    """Have all calls of this process answered; what it records into files of its own stands elsewhere."""
    protocols.responder, places.replaying = responder, True

    def undo() -> None:
        protocols.responder, places.replaying = None, False

    return undo


def listen(hosts: Iterable[str], *, everything: bool) -> Undo:
    """Have seams of our own in the place of those there are.

    After ``answer_with``: they are made for what is so when they are installed.
    """
    before = install.swap(install.Seams(tuple(hosts), everything, is_supervised=True))

    def undo() -> None:
        install.swap(before)

    return undo


def in_ci() -> bool:
    """True where the environment says that this is continuous integration."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false", "no")
