"""vcrpy's stand-ins: while a cassette is used, ``http.client.HTTPConnection`` is a class of its own.

A connection of that class has a real one inside, which sends what the cassette has no answer to. It is that
one that we listen to: what is played from a cassette goes nowhere.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def genuine(kind: Any) -> Any:
    """Return the class that a stand-in stands for; any other class as it is."""
    return getattr(kind, "_baseclass", kind)


def real(held: Any) -> Any:
    """Return the connection inside a stand-in; anything else as it is."""
    return getattr(held, "__dict__", {}).get("real_connection", held)
