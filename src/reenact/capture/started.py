"""How a further process of a run was started: by this it is known again when the run is re-enacted."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAIN = "MainProcess"


def how_started() -> dict[str, Any]:
    """Return its command, and the name among its siblings that multiprocessing gave it, if it did."""
    made: dict[str, Any] = {"command": [word[:200] for word in sys.orig_argv[:20]]}
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None:
        name = multiprocessing.current_process().name
        if type(name) is str and name != _MAIN:
            made["process"] = name[:200]
    return made
