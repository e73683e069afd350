"""Optional dependencies: one door, one message."""

from __future__ import annotations

import importlib
from types import ModuleType

from .errors import MissingExtra


def need(module: str, *, extra: str | None) -> ModuleType:
    """Return the imported module, or raise MissingExtra naming the install command."""
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        raise MissingExtra(module, extra) from exc


def have(module: str) -> ModuleType | None:
    """Return the imported module, or None when it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError:
        return None
