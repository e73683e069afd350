"""``%load_ext reenact`` in a notebook: every call is recorded, and so is the error a cell ends with."""

from __future__ import annotations

from typing import Any

from .. import guard
from ..calls.error_fields import failure
from ..runs.current import current_recorder
from ..seams.install import install, uninstall


def load_ipython_extension(ipython: Any) -> None:
    """IPython calls this for ``%load_ext reenact``."""
    install()
    ipython.events.register("post_run_cell", _after_cell)


def unload_ipython_extension(ipython: Any) -> None:
    """IPython calls this for ``%unload_ext reenact``."""
    ipython.events.unregister("post_run_cell", _after_cell)
    uninstall()


def _after_cell(result: Any) -> None:
    """Record how a cell failed; IPython prints the traceback itself and calls no other hook."""
    try:
        exc = result.error_before_exec or result.error_in_exec
        if exc is not None:
            error = {"where": "cell", "cell": result.execution_count, "error": failure(exc)}
            current_recorder().emit("error", error)
    except Exception as own:
        guard.swallow("record a cell's error", own)
