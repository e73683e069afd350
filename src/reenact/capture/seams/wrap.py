"""``tap.wrap(client)``: tap the transports that carry a client's calls; the client stays the same object."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .. import guard
from ..http.watch import Watch
from . import aiohttp, httpx, urllib3, websockets

if TYPE_CHECKING:
    from ..front.tap import Tap


# Where an SDK's client keeps its transport: a bounded walk through its attributes.
#
# Every SDK has another name for it; all of them keep it within a few steps.

MAX_OBJECTS, MAX_DEPTH = 2_000, 5
_PLAIN = (str, bytes, int, float, bool, type(None), type)
_LAZY_PROPERTIES = ("_client", "_async_client")
"""Properties that make a client, or fetch it from elsewhere, on first access."""


def carriers(client: Any, kinds: tuple[type, ...], holders: tuple[type, ...] = ()) -> list[Any]:
    """Return the objects of these kinds inside an SDK's client, a model of a framework, or an SDK's module.

    ``holders`` are kinds that may hold others.
    """
    found: list[Any] = []
    seen: set[int] = set()
    queue: list[tuple[Any, int]] = [(_of_module(client), 0)]
    alive = []
    while queue and len(seen) < MAX_OBJECTS:
        held, depth = queue.pop(0)
        if id(held) in seen:
            continue
        seen.add(id(held))
        alive.append(held)  # else another object may get its id
        if isinstance(held, kinds):
            found.append(held)
            if not isinstance(held, holders):
                continue
        if depth < MAX_DEPTH:
            queue += [(value, depth + 1) for value in _held_by(held)]
    return found


def _of_module(client: Any) -> Any:
    """Return what a module-level API works with: ``openai.chat…`` has a client made on first use."""
    if isinstance(client, type(sys)):
        load = getattr(client, "_load_client", None)
        return load() if callable(load) else getattr(client, "_client", None)
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
        yield getattr(value, "__pydantic_private__", None)
        yield from _behind_slots_and_properties(value)


def _behind_slots_and_properties(value: Any) -> Iterator[Any]:
    """Yield values that are not plain attributes: slots, and clients behind a property."""
    kinds = type(value).__mro__
    names = [name for kind in kinds for name in getattr(kind, "__slots__", ()) or ()]
    for name in (*names, *[each for each in _LAZY_PROPERTIES if hasattr(type(value), each)]):
        try:
            yield getattr(value, name, None)
        except Exception as exc:
            guard.pass_on(exc)


_SEAMS: tuple[Any, ...] = (httpx, aiohttp, urllib3)
_LOOKED_FOR = "clients of httpx and httpx2, sessions of aiohttp, and connections of urllib3 and http.client"


def wrap(tap: Tap, client: Any) -> None:
    """Tap what carries a client's calls. Never raises; reports a client in which nothing is found."""
    if os.environ.get("REENACT_OFF") == "1":
        return
    with guard.Swallowing(f"wrap a {type(client).__name__}"):
        watch = Watch(tap.recorder, of_client=True)
        websockets.expect_openai()
        if not _each_carrier(client, lambda seam, held: seam.tap(held, watch)):
            _report_nothing_found(client)


def unwrap(client: Any) -> None:
    """Undo ``wrap``. Never raises."""
    with guard.Swallowing(f"unwrap a {type(client).__name__}"):
        _each_carrier(client, lambda seam, held: seam.untap(held))


def _each_carrier(client: Any, do: Callable[[Any, Any], object]) -> int:
    """Do something to whatever carries a client's calls; returns how many such parts it has."""
    known = [(seam, seam.kinds()) for seam in _SEAMS]
    found = carriers(client, tuple(kind for _, kinds in known for kind in kinds), aiohttp.holders())
    for held in found:
        for seam, kinds in known:
            if isinstance(held, kinds):
                do(seam, held)
    return len(found)


def _report_nothing_found(client: Any) -> None:
    kind = type(client)
    guard.tell(
        f"wrap:{kind.__module__}.{kind.__qualname__}",
        f"found nothing to listen to in a {kind.__module__}.{kind.__qualname__}: looked for {_LOOKED_FOR} "
        "inside it. Its calls are not recorded.",
    )
