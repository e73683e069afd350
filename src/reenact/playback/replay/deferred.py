"""A process that may come to ask: all that answering takes is loaded when it does, for many never do."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Any

from ... import protocols
from ..matching.claims import Claims


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

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            if protocols.responder is self:
                self._make()
        return getattr(protocols.responder, name)
