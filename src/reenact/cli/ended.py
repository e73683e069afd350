"""How a run ended, beside how it had ended when it was recorded."""

from __future__ import annotations

from typing import Any

from ..tracefile.recording import Recording

_COMPARED = ("http_status", "exit", "error", "status")
_UNSURE = ("unclosed", "unknown", "running")
"""Statuses that say only that nobody knows."""


def both_ends(then: Recording, now: Recording) -> dict[str, str] | None:
    """Return how both ended, ``recorded`` and ``now``, where that can be compared; None where it cannot."""
    before, after = _end(then), _end(now)
    known = [name for name in _COMPARED if name in before and name in after]
    if not known:
        return None
    told = next((name for name in known if before[name] != after[name]), known[0])
    return {"recorded": _said(told, before), "now": _said(told, after)}


def _end(recording: Recording) -> dict[str, Any]:
    told = recording.end._raw() if recording.end is not None else {}
    found: dict[str, Any] = {
        name: told[name] for name in ("http_status", "exit") if type(told.get(name)) is int
    }
    if recording.error is not None and recording.error.type:
        found["error"] = recording.error.type
    if recording.status not in _UNSURE:
        found["status"] = recording.status
    return found


def _said(name: str, end: dict[str, Any]) -> str:
    if name == "http_status":
        return f"answered {end[name]}"
    if name == "exit":
        return f"exit {end[name]}" if end[name] >= 0 else f"signal {-end[name]}"
    return str(end.get("error") or end[name])
