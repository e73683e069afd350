"""Where an SDK's client keeps its HTTP client: a bounded walk through what it holds.

Used by ``tap.wrap``. Every SDK has another name for it; all of them hold it somewhere near.
"""

from __future__ import annotations

import sys

from . import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MAX_OBJECTS, MAX_DEPTH = 2_000, 5
_PLAIN = (str, bytes, int, float, bool, type(None), type)


def http_clients(client: Any) -> list[Any]:
    """Return the HTTP clients inside an SDK's client, a model of a framework, or an SDK's module."""
    kinds = _client_types()
    if isinstance(client, kinds):
        return [client]
    found: list[Any] = []
    seen: set[int] = set()
    queue: list[tuple[Any, int]] = [(_of_module(client), 0)]
    while queue and len(seen) < MAX_OBJECTS:
        held, depth = queue.pop(0)
        if id(held) in seen:
            continue
        seen.add(id(held))
        if isinstance(held, kinds):
            found.append(held)
        elif depth < MAX_DEPTH:
            queue += [(value, depth + 1) for value in _held_by(held)]
    return found


def _client_types() -> tuple[type, ...]:
    from .seams.httpx_like import MODULES

    modules = [sys.modules[name] for name in MODULES if name in sys.modules]
    return tuple(kind for module in modules for kind in (module.Client, module.AsyncClient))


def _of_module(client: Any) -> Any:
    """Return what a module-level API works with: ``openai.chat…`` has a client made on first use."""
    if isinstance(client, type(sys)):
        load = getattr(client, "_load_client", None)
        if callable(load):
            return load()
    return client


def _held_by(value: Any) -> Iterator[Any]:
    if isinstance(value, (*_PLAIN, type(sys))):
        return
    if isinstance(value, dict):
        yield from list(value.values())
    elif isinstance(value, (list, tuple)):
        yield from value
    else:
        yield from list(getattr(value, "__dict__", {}).values())
        for name in ("__pydantic_private__",):
            yield getattr(value, name, None)
        yield from _slots(value)


def _slots(value: Any) -> Iterator[Any]:
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()) or ():
            try:
                yield getattr(value, name, None)
            except Exception as exc:
                guard.pass_on(exc)
