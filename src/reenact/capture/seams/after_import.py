"""An import hook: calls a function once a module has been imported, and imports nothing itself."""

from __future__ import annotations

from _thread import get_ident

from .. import guard
from ..import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any


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
