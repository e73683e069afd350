"""Why a fork failed where it went live: no key, a key that is refused, nobody at the other end."""

from __future__ import annotations

import os
import re
from typing import Any

from ...playback.fork.sending import key_variables
from ...schema import ERROR
from ...tracefile.calls import MODEL
from ...tracefile.recording import Recording
from ...wire.routes import host_of

_WANTS_KEY = re.compile(r"api[ _-]?key|authenticat|credential|key inputs", re.IGNORECASE)
_REFUSED = (401, 403)


def why_failed(recording: Recording, provider: object) -> str | None:
    """Return a hint on why a run failed, None if it is not about reaching the model."""
    live = [call for call in recording.calls() if call.kind == MODEL and not _is_replayed(call)]
    ends = [call.end._whole() for call in live if call.end is not None]
    if any(type(end.get("status")) is int and end["status"] < 400 for end in ends):
        return None
    variables = " or ".join(key_variables(provider)) or "its key"
    if not live:
        is_set = any(os.environ.get(name) for name in key_variables(provider))
        needs = "so it needs a key" if is_set else f"and {variables} is not set"
        return f"a fork calls the model, {needs}" if _lacks_key(recording, provider) else None
    statuses = [end.get("status") for end in ends]
    host = host_of(live[-1].event.url or "") or "the provider"
    if any(status in _REFUSED for status in statuses):
        return f"{host} refuses the key: is {variables} the right one?"
    if statuses and all(status is None for status in statuses):
        return f"{host} does not answer: is it up, and reachable from here?"
    return None


def _lacks_key(recording: Recording, provider: object) -> bool:
    """True if it died for the lack of a key; before it did anything, it may have if there is none."""
    errors = _errors(recording)
    if errors or any(recording.calls()):
        return any(_WANTS_KEY.search(text) for text in errors)
    variables = key_variables(provider)
    return bool(variables) and not any(os.environ.get(name) for name in variables)


def unlike(told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was told, each once: of calls side by side many end for the same reason."""
    found: list[dict[str, Any]] = []
    for each in told:
        if each not in found:
            found.append(each)
    return found


def _is_replayed(call: Any) -> bool:
    return call.end is not None and call.end._whole().get("replayed") is not None


def _errors(recording: Recording) -> list[str]:
    return [str(event.error) for event in recording.events if event.kind == ERROR and event.error is not None]
