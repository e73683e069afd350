"""The seams: which modules each listens to; installed after the module is imported.

``install()`` patches modules that are imported already and waits for the rest; it imports no library itself.
``REENACT_SEAMS=-aiohttp,-mcp`` leaves some out.
"""

from __future__ import annotations

import os
import sys

from .. import guard
from ..import_lock import import_lock
from .patching import AroundImport, LibraryChanged, after_import, undo_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from ..http.watch import Watch

SEAMS_VARIABLE = "REENACT_SEAMS"
THREADS_AND_TASKS = "threads_and_tasks"
"""Records nothing by itself, so it needs no watch."""
FRAMEWORKS = "frameworks"
"""Gives ids to tool calls; where it does not fit, they are found all the same."""
SEAMS = {
    "httpx": "httpx",
    "httpx2": "httpx",
    "http.client": "http_client",
    "urllib3.connection": "http_client",
    "urllib3.connectionpool": "urllib3",
    "aiohttp": "aiohttp",
    "websockets.sync.client": "websockets",
    "websockets.asyncio.client": "websockets",
    "mcp.client.session": "mcp",
    "mcp.client.stdio": "mcp",
    "mcp.client.streamable_http": "mcp",
    "mcp.client.sse": "mcp",
    "mcp.client.websocket": "mcp",
    "starlette.applications": "starlette",
    "threading": THREADS_AND_TASKS,
    "concurrent.futures.thread": THREADS_AND_TASKS,
    "asyncio.base_events": THREADS_AND_TASKS,
    "asyncio.tasks": THREADS_AND_TASKS,
    "uvloop": THREADS_AND_TASKS,
    "langchain_core.tools.base": FRAMEWORKS,
    "anthropic.lib.tools._beta_runner": FRAMEWORKS,
    "agents.tool": FRAMEWORKS,
    "pydantic_ai.toolsets.function": FRAMEWORKS,
    "agno.tools.function": FRAMEWORKS,
    "strands.tools.decorator": FRAMEWORKS,
    "strands.tools.tools": FRAMEWORKS,
    "autogen_core.tools._base": FRAMEWORKS,
}
"""Module -> the file of this folder, or of ``tools``, that listens to it. Its ``patch(module, watch)``
returns the undo, or raises if the module is not as expected; its ``shortfall(module)``, if any, what it
misses."""


def _seam(name: str) -> Any:
    """Return the file of this folder that listens to a library; loaded once the library is."""
    seam: Any
    with import_lock:
        if name == "httpx":
            from . import httpx as seam
        elif name == "http_client":
            from . import http_client as seam
        elif name == "urllib3":
            from . import urllib3 as seam
        elif name == "aiohttp":
            from . import aiohttp as seam
        elif name == "websockets":
            from . import websockets as seam
        elif name == "mcp":
            from . import mcp as seam
        elif name == "starlette":
            from . import starlette as seam
        elif name == THREADS_AND_TASKS:
            from . import threads_and_tasks as seam
        elif name == FRAMEWORKS:
            from ..tools import frameworks as seam
        else:
            raise ValueError(f"no seam is called {name}")
    return seam


class Installed:
    """The seams in force, and those that wait for their module."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.undo: dict[str, Callable[[], None]] = {}
        self.failed: dict[str, str] = {}
        """Modules that are not recorded, or not completely, and the reason."""
        self._waiting: AroundImport | None = None

    def install(self) -> None:
        """Listen to every module of the table, now or once it is imported. Never raises."""
        if self.watch is not None:
            self.watch.is_off = False
        modules = wanted_modules()
        for name in modules:
            if name in sys.modules and name not in self.undo:
                self.patch(name, sys.modules[name])
        if self._waiting is None:
            self._waiting = after_import(modules, self.patch)
            sys.meta_path.insert(0, self._waiting)

    def patch(self, name: str, module: ModuleType) -> None:
        """Listen to one module."""
        try:
            with import_lock:
                from .. import replay_hook
            if name in self.undo:  # it is loaded again
                self.undo.pop(name)()
            seam = _seam(SEAMS[name])
            self.undo[name] = seam.patch(module, self.watch)
            undo_answers = replay_hook.prepare(SEAMS[name], module, self.watch)
            if undo_answers is not None:
                self.undo[name] = undo_all(self.undo[name], undo_answers)
            why = seam.shortfall(module) if hasattr(seam, "shortfall") else ""
        except Exception as exc:
            guard.pass_on(exc)
            why = str(exc) if isinstance(exc, LibraryChanged) else guard.explain(exc)
        if why:
            self.failed[name] = why
            self.report_failed(name, module)

    def report_failed(self, name: str, module: ModuleType) -> None:
        """Report that a module is not recorded, or not completely."""
        called = f"{name} {getattr(module, '__version__', '')}".strip()
        what = f"calls made with {called} are not recorded as they should be"
        if SEAMS[name] == FRAMEWORKS:
            what = f"tools of {name} are recorded only if they are found by name and arguments"
        guard.tell(f"seam:{name}", f"{what} ({self.failed[name]}). Your agent is unaffected.")

    def uninstall(self) -> None:
        """Give everything back as it was."""
        if self._waiting is not None and self._waiting in sys.meta_path:
            sys.meta_path.remove(self._waiting)
        self._waiting = None
        for undo in reversed(self.undo.values()):  # urllib3 builds upon http.client
            with guard.Swallowing("stop listening"):
                undo()
        self.undo.clear()
        if self.watch is not None:
            self.watch.is_off = True


def wanted_modules() -> list[str]:
    """Return the modules to listen to, without those the environment leaves out."""
    left_out = {
        name.strip()[1:] for name in os.environ.get(SEAMS_VARIABLE, "").split(",") if name.strip()[:1] == "-"
    }
    return [name for name in SEAMS if not any(f"{name}.".startswith(f"{each}.") for each in left_out)]
