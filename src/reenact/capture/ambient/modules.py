"""``reenact run --ambient my_agent``: record the clock and the random numbers of some of the user's modules.

Such a module gets an ``__import__`` of its own, and by it stand-ins for five modules of Python's. No other
module is changed, and nothing of Python's is.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from .. import guard
from ..import_lock import import_lock
from ..seams.patching import AroundImport

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


def watch(names: Sequence[str]) -> None:
    """Record the clock and chance of these modules and all below them, from their first line on."""

    def is_named(module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in names)

    if MAIN in names:
        vars(sys.modules[MAIN])["__builtins__"] = _Builtins()
    sys.meta_path.insert(0, AroundImport(is_named, _load))


def _load(module: ModuleType, execute: Callable[[ModuleType], None]) -> None:
    vars(module)["__builtins__"] = _Builtins()
    execute(module)
