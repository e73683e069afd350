"""A responder that loads the real one at the first call: many processes of a replay never make one."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from ...capture import replay_hook
from ..matching.claims import Claims
from ..serve import adapter, prepare


def claims_path(scratch: str) -> str:
    """Return the file through which the processes of an execution share their claims."""
    return os.path.join(scratch, "claims")


def claims_of(scratch: str) -> Claims:
    return Claims(claims_path(scratch))


class LazyResponder:
    """Stands for a responder that is created at the first call."""

    def __init__(self, make: Callable[[], None]) -> None:
        self._make = make
        """Installs the real responder."""
        self._lock = Lock()

    def adapter(self, library: str) -> Any:
        """Return the module that builds responses for a library; needs no responder."""
        return adapter(library)

    def prepare(self, library: str, module: Any, watch: Any) -> Callable[[], None] | None:
        """Connect a module to the recording; return a function that undoes it."""
        return prepare(library, module, watch)

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if replay_hook.responder is self:
                self._make()
        return getattr(replay_hook.responder, name)
