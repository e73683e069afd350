"""What a socket's server says without being asked: a greeting, limits, what a session was changed to.

Each is an event of its own, told at once and kept nowhere, with what the agent had sent by then: so it can be
said again at the same place.
"""

from __future__ import annotations

from itertools import count

from ... import schema
from .. import guard
from ..import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..watch import Watch

MOST = 1_000
"""Messages of one connection: a server that speaks by itself, as after silence in what it hears, goes on."""
_AUDIO = "input_audio_buffer.append"
"""As many as time allows: nothing is told by their number."""
_HERE = ("localhost", "127.0.0.1", "::1")
_SO_FAR = "_reenact_so_far"
"""Attribute of a connection."""
_numbers = count(1)


class SoFar:
    """What has passed on one connection."""

    __slots__ = ("asked", "number", "sent", "told", "url")

    def __init__(self) -> None:
        self.asked = 0
        """Requests."""
        self.sent = 0
        """Other messages, but for audio."""
        self.told = 0
        self.number: int | None = None
        self.url: str | None = None
        """None if it is not to be told."""


def so_far(connection: Any) -> SoFar:
    """Return what has passed on a connection."""
    found: SoFar = vars(connection).get(_SO_FAR) or vars(connection).setdefault(_SO_FAR, SoFar())
    return found


def note_sent(connection: Any, message: Any, *, is_asked: bool) -> None:
    """Count a message that is about to be sent."""
    passed = so_far(connection)
    if is_asked:
        passed.asked += 1
    elif not is_audio(message):
        passed.sent += 1


def is_audio(message: Any) -> bool:
    """True for a piece of what is being listened to."""
    return isinstance(message, str) and _AUDIO in message[:200]


def record(watch: Watch, connection: Any, url: str, message: Any) -> None:
    """Record a message that nobody asked for. Never raises."""
    try:
        passed = so_far(connection)
        if passed.number is None:
            passed.number = next(_numbers)
            passed.url = url if is_models(watch, url) else None
        if passed.url is None or watch.is_off or passed.told > MOST:
            return
        with import_lock:
            import json

        text = message if isinstance(message, str) else bytes(message).decode()
        fields: dict[str, Any] = {"url": passed.url, "socket": passed.number}
        fields |= {"asked": passed.asked, "sent": passed.sent}
        fields |= {"body": json.loads(text)} if passed.told < MOST else {"cut": True}
        passed.told += 1
        watch.recorder().emit(schema.SOCKET_MESSAGE, fields)
    except ValueError:
        return  # no text, or none that is JSON: sound, for instance
    except Exception as exc:
        guard.swallow("record a message", exc)


def is_models(watch: Watch, url: Any) -> bool:
    """True if what is asked over a socket would be recorded; another server of this machine is none of it."""
    with import_lock:
        from ...wire.routes import route_of

    hosts = [host for host in watch.hosts if host not in _HERE]
    return isinstance(url, str) and route_of("POST", url, {"input": ""}, hosts) is not None
