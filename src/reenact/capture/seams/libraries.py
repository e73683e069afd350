"""The seams: which modules each listens to; installed after the module is imported.

``install()`` patches modules that are imported already and waits for the rest; it imports no library itself.
``REENACT_SEAMS=-aiohttp,-mcp`` leaves some out.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from importlib import import_module

from .. import guard
from ..import_lock import import_lock
from .patching import LibraryChanged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

    from ..http.watch import Watch

SEAMS_VARIABLE = "REENACT_SEAMS"
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
}
"""Module -> the file of this folder that listens to it. Its ``patch(module, watch)`` returns the undo, or
raises if the module is not as expected; its ``shortfall(module)``, if any, returns what it misses."""


class Installed:
    """The seams in force, and those that wait for their module."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.undo: dict[str, Callable[[], None]] = {}
        self.failed: dict[str, str] = {}
        """Modules that are not recorded, or not completely, and the reason."""
        self._waiting: AfterImport | None = None

    def install(self) -> None:
        """Listen to every module of the table, now or once it is imported. Never raises."""
        if self.watch is not None:
            self.watch.is_off = False
        modules = wanted_modules()
        for name in modules:
            if name in sys.modules and name not in self.undo:
                self.patch(name, sys.modules[name])
        if self._waiting is None:
            self._waiting = AfterImport(modules, self.patch)
            sys.meta_path.insert(0, self._waiting)

    def patch(self, name: str, module: ModuleType) -> None:
        """Listen to one module."""
        try:
            with import_lock:
                from .. import replay_hook
            if name in self.undo:  # it is loaded again
                self.undo.pop(name)()
            seam: Any = import_module(f".{SEAMS[name]}", __package__)
            self.undo[name] = seam.patch(module, self.watch)
            undo_answers = replay_hook.prepare(SEAMS[name], module, self.watch)
            if undo_answers is not None:
                self.undo[name] = _both(undo_answers, self.undo[name])
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
        guard.tell(
            f"seam:{name}",
            f"calls made with {called} are not recorded as they should be ({self.failed[name]}). "
            "Your agent is unaffected.",
        )

    def uninstall(self) -> None:
        """Give everything back as it was."""
        if self._waiting is not None and self._waiting in sys.meta_path:
            sys.meta_path.remove(self._waiting)
        self._waiting = None
        for undo in reversed(self.undo.values()):  # urllib3 builds upon http.client
            try:
                undo()
            except Exception as exc:
                guard.swallow("stop listening", exc)
        self.undo.clear()
        if self.watch is not None:
            self.watch.is_off = True


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def undo() -> None:
        first()
        second()

    return undo


def wanted_modules() -> list[str]:
    """Return the modules to listen to, without those the environment leaves out."""
    left_out = {
        name.strip()[1:] for name in os.environ.get(SEAMS_VARIABLE, "").split(",") if name.strip()[:1] == "-"
    }
    return [name for name in SEAMS if not any(f"{name}.".startswith(f"{each}.") for each in left_out)]


class AfterImport:
    """An import finder that finds nothing by itself: it patches a module once it is loaded."""

    def __init__(self, names: Sequence[str], patch: Callable[[str, ModuleType], None]) -> None:
        self._names = frozenset(names)
        self._patch = patch
        self._searched: set[tuple[str, int]] = set()
        """Names that the finders after this one are searching for now, with the thread."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name not in self._names or (name, get_ident()) in self._searched:
            return None
        self._searched.add((name, get_ident()))
        try:
            with import_lock:
                from importlib.util import find_spec

            spec = find_spec(name)
            if spec is not None and spec.loader is not None:
                _call_when_loaded(spec, lambda module: self._patch(name, module))
            return spec
        except Exception as exc:
            guard.swallow(f"wait for {name}", exc)
            return None
        finally:
            self._searched.discard((name, get_ident()))


def _call_when_loaded(spec: ModuleSpec, then: Callable[[ModuleType], None]) -> None:
    loader: Any = spec.loader
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        try:
            del loader.exec_module  # the loader is as it was before anything of the module runs
        except AttributeError:
            pass
        execute(module)
        if module.__name__ == spec.name:  # a zip file has one loader for all of its modules
            then(module)

    loader.exec_module = exec_module
