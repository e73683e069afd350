"""``reenact run --ambient my_agent``: record the clock and the random numbers of some of the user's modules.

Such a module gets an ``__import__`` of its own, and by it stand-ins for five modules of Python's. No other
module is changed, and nothing of Python's is.
"""

from __future__ import annotations

import builtins
import sys
from _thread import get_ident
from collections.abc import Mapping, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from .. import guard
from ..import_lock import import_lock

AMBIENT_VARIABLE = "REENACT_AMBIENT"
MAIN = "__main__"
_NAMES = ("time", "datetime", "uuid", "random", "secrets")

_loaded_stand_ins: dict[str, ModuleType] = {}


class _Builtins(dict[str, object]):
    """What a module finds without importing: Python's own names as they are just then, but for one."""

    def __init__(self) -> None:
        super().__init__(__import__=_import)

    def __missing__(self, name: str) -> object:
        return vars(builtins)[name]


def _import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    found = builtins.__import__(name, globals, locals, fromlist or (), level)
    if level or name not in _NAMES or found is not sys.modules.get(name):
        return found
    if not _loaded_stand_ins:
        try:
            with import_lock:
                from .standins import stand_ins  # late: `reenact run` loads this file before the agent starts

            _loaded_stand_ins.update(stand_ins())
        except Exception as exc:
            guard.swallow("record clock and chance", exc)
    return _loaded_stand_ins.get(name, found)


class _Finder:
    """Finds nothing by itself: it sees a module of the user's come in, and gives it its import."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._searched: set[tuple[str, int]] = set()

    def is_meant(self, module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in self._names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not self.is_meant(name) or (name, get_ident()) in self._searched:
            return None
        self._searched.add((name, get_ident()))
        try:
            spec = find_spec(name)
            if spec is not None and hasattr(spec.loader, "exec_module"):
                _prepare(spec)
            return spec
        finally:
            self._searched.discard((name, get_ident()))


def _prepare(spec: ModuleSpec) -> None:
    loader: Any = spec.loader
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        try:
            del loader.exec_module  # the loader is as it was before anything of the module runs
        except AttributeError:
            pass
        if module.__name__ == spec.name:
            vars(module)["__builtins__"] = _Builtins()
        execute(module)

    loader.exec_module = exec_module


def watch(names: Sequence[str]) -> None:
    """Record the clock and chance of these modules and all below them, from their first line on."""
    if MAIN in names:
        vars(sys.modules[MAIN])["__builtins__"] = _Builtins()
    sys.meta_path.insert(0, _Finder(names))
