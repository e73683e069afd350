"""A process that may come to ask: all that answering takes is loaded when it does, for many never do."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from ...capture import replay_hook
from ..matching.claims import Claims
from ..serve import adapter, prepare


def claims_path(scratch: str) -> str:
    """Return the file in which the processes of an execution tell each other what they do."""
    return os.path.join(scratch, "claims")


def claims_of(scratch: str) -> Claims:
    return Claims(claims_path(scratch))


class Later:
    """Answers in the place of a responder that is made when it is needed."""

    def __init__(self, make: Callable[[], None]) -> None:
        self._make = make
        """Puts the real one in its place."""
        self._lock = Lock()

    def adapter(self, library: str) -> Any:
        """Return the module that makes answers for a library, before anything is asked."""
        return adapter(library)

    def prepare(self, library: str, module: Any, watch: Any) -> Callable[[], None] | None:
        """Have the connections of a module lead to the recording; returns what undoes it."""
        return prepare(library, module, watch)

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if replay_hook.responder is self:
                self._make()
        return getattr(replay_hook.responder, name)
