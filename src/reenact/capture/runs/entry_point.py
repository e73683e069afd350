"""How a function or a web application is found again: ``entry`` and ``entry_from`` of ``run.start``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ..calls.error_fields import is_agents
from .location import current_folder

MAIN = "__main__"
ASGI = "asgi:"
"""What the entry of a web application begins with."""


def entry_of(function: Any) -> dict[str, str]:
    """Return the entry of a function: ``module:qualified.name``, and where that module comes from."""
    name = str(getattr(function, "__qualname__", "?"))
    return _entry("", str(getattr(function, "__module__", "?")), name)


def entry_of_app(app: Any) -> dict[str, str]:
    """Return the entry of a web application: the name under which a loaded module has it; {} if none has."""
    found = _place_of(app) or _factory()
    return _entry(ASGI, *found) if found is not None else {}


def _entry(sort: str, module: str, name: str) -> dict[str, str]:
    loaded = sys.modules.get(module)
    spec = getattr(loaded, "__spec__", None)
    if module == MAIN and spec is not None:  # python -m: the module's own name finds it
        module = str(spec.name)
    fields = {"entry": f"{sort}{module}:{name}"}
    source = _source(loaded, module)
    if source is not None:
        fields["entry_from"] = source
    return fields


def _source(loaded: ModuleType | None, name: str) -> str | None:
    """Return the script that was started, or the folder a module was found in if that is not the current."""
    file = getattr(loaded, "__file__", None)
    if type(file) is not str or not is_agents(file):
        return None
    file = os.path.abspath(file)
    if name == MAIN:
        return file
    folder = file
    ups = name.count(".") + 1 + (os.path.basename(file) == "__init__.py")
    for _ in range(ups):
        folder = os.path.dirname(folder)
    return None if folder == current_folder() else folder


def _place_of(app: Any) -> tuple[str, str] | None:
    """Return module and name of an application, or of what the agent has put around it."""
    ours = [(name, module) for name, module in _modules() if is_agents(str(getattr(module, "__file__", "")))]
    named = [(name, key, value) for name, module in ours for key, value in _members(module)]
    places = [(name, key) for name, key, value in named if value is app]
    places = places or [(name, key) for name, key, value in named if _holds(value, app)]
    if not places:
        return None
    return min(places, key=lambda place: (place[0] == MAIN, place[1].startswith("_")))


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for name, module in list(sys.modules.items()):
        if module is not None and name != "__mp_main__":
            yield name, module


def _members(module: ModuleType) -> list[tuple[str, Any]]:
    return list(getattr(module, "__dict__", {}).items())


def _holds(value: Any, app: Any, deeper: int = 10) -> bool:
    """True if a middleware leads to the application; looked up without running any code of its own."""
    for _ in range(deeper):
        try:
            value = object.__getattribute__(value, "__dict__").get("app")
        except (AttributeError, TypeError):
            return False
        if value is app or value is None:
            return value is app
    return False


def _factory() -> tuple[str, str] | None:
    """Return what a server's command line calls: ``--factory shop:make``, ``shop:make()``."""
    is_factory = "--factory" in sys.argv
    for word in sys.argv[1:]:
        module, colon, name = word.partition(":")
        if colon and module in sys.modules and (is_factory or name.endswith("()")):
            bare = name.removesuffix("()")
            if callable(getattr(sys.modules[module], bare, None)):
                return module, f"{bare}()"
    return None
