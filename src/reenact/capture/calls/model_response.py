"""A model's answer as an event: what every way of capturing it writes alike.

Used by Tap's manual calls and by the seams.
"""

from __future__ import annotations

import sys
from typing import Any

from ... import schema
from ...lines import is_plain
from ...wire.neutral import ToolUse
from ...wire.reading import Reading, model_of
from ..recorder.encode import RawStream
from ..recorder.jsonable import frozen, jsonable
from ..recorder.recorder import Recorder
from . import open_calls
from .error_fields import MAX_FRAMES, caller_frames, failure
from .open_calls import Calls, OpenCall


def write_answer(
    recorder: Recorder,
    calls: Calls,
    body: Any,
    call: str | None,
    opened: OpenCall | None,
    *,
    error: Any = None,
    status: int | None = None,
    first: dict[str, Any] | None = None,
    last: dict[str, Any] | None = None,
    names_caller: bool = False,
    stream: RawStream | None = None,
    abandoned: bool = False,
    is_fresh: bool = False,
) -> list[ToolUse]:
    """Record a model.response; returns the tool uses it asks for.

    ``first`` and ``last`` are further fields, ``stream`` is the response as it came. An error
    ``names_caller``, the agent's code that sent the request, where the call is captured. A response that was
    ``abandoned`` is not read to its end. A body that ``is_fresh`` is ours.
    """
    described = failure(error)
    # Looked at through a copy: objects may do anything when read, other threads may change a dict.
    plain = is_plain(body)
    original, body = body, (body if is_fresh else frozen(body)) if plain else jsonable(body)
    reading = Reading(body, opened.provider if opened is not None else None)
    if described is None:
        described = _refusal(body, reading, status, names_caller)
    elif names_caller and error is sys.exc_info()[1]:
        _name_caller(described["frames"])
    fields = {
        "call": call,
        "status": status,
        "duration_ms": opened.duration_ms() if opened is not None else None,
        **(first or {}),
        "model": model_of(body),
        "stop_reason": reading.stop_reason(),
        "usage": reading.usage(),
    }
    fields = {name: value for name, value in fields.items() if value is not None}
    fields["error"] = described
    if original is not None:
        fields["body"] = body if plain else original
    fields.update(last or {})
    if call is None:
        recorder.emit(schema.MODEL_RESPONSE, fields)
        return []
    recorder.emit_answer(fields, reading.answers() if described is None and plain else [], stream)
    uses = reading.tool_uses()
    calls.answered(call, opened, uses, abandoned)
    if uses and open_calls.opened_uses is not None:
        open_calls.opened_uses(recorder, calls.wanted.get(call, []))
    return uses


def _name_caller(frames: list[str]) -> None:
    """An exception on its way out has met no frame of the agent's yet: the caller comes first."""
    callers = caller_frames()
    if callers and callers[0] not in frames:
        frames[:] = [callers[0], *frames[: MAX_FRAMES - 1]]


def _refusal(body: Any, reading: Reading, status: int | None, names_caller: bool) -> dict[str, Any] | None:
    """Return the error that an answer or its status is, None for a good one."""
    found = reading.error()
    bad = isinstance(status, int) and status >= 400
    if found is None and not bad:
        return None
    kind, message = found or (None, body[:300] if isinstance(body, str) else "")
    return {
        "type": kind or (f"http_{status}" if status else None),
        "message": message,
        "frames": caller_frames() if names_caller else [],
    }
