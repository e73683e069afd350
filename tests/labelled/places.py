"""Where in a recording the cause of a failure lies.

A place is a line of words, independent of what looks for it:

| place | events |
|---|---|
| `call TOOL N` | the response that requests the Nth call of a tool, and the call itself |
| `result TOOL N` | what the Nth call returned, and the request that carries it to the model |
| `sent TOOL N` | the request that carries the result of the Nth call to the model |
| `request N`, `response N` | the Nth of the run |
| `end` | the end of the run, and the error it ended with |

Instead of a number, a word that the call's arguments, the request or the response contain selects the first such one.
"""

from __future__ import annotations

import json
from typing import Any

from reenact import Debugger


def events_at(dbg: Debugger, place: str) -> list[Any]:
    """The events of a place; none if the recording has no such place."""
    part, *words = place.split(" ", 2 if place.startswith(("call", "result", "sent")) else 1)
    if part == "end":
        return [*(event for event in dbg.all() if event.kind == "error"), dbg.recording.end]
    if part in ("request", "response"):
        return [_nth(dbg.all(), words[0], lambda event: event.kind == f"model.{part}", _event_text)]
    name, which = words
    call = _nth(dbg.calls("tool"), which, lambda call: call.tool == name, lambda call: _text(call.args))
    sent = [call.sent.request] if call.sent else [call.end] if call.derived and call.end else []
    if part == "call":
        return [_response(dbg, call), *([] if call.derived else [call.begin])]
    return sent if part == "sent" else [*([call.end] if call.end and not call.derived else []), *sent]


def _nth(items: Any, which: str, fits: Any, text: Any) -> Any:
    found = [item for item in items if fits(item)]
    if which.isdigit():
        return found[int(which) - 1]
    return next(item for item in found if which in text(item))


def _response(dbg: Debugger, call: Any) -> Any:
    if call.derived:
        return call.begin
    return next(model.end for model in dbg.calls("model") if model.id == call.parent)


def _event_text(event: Any) -> str:
    return _text(event.stored_body)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
