"""What ``why`` is asked about, as people type it: a text, an event's address, or the path of a value.

``12.args.city`` is a value of the event at 12, ``turn:3.messages[2]`` a message of a request, ``@error`` an
event. Anything else is a text, and so is what stands in quotes.
"""

from __future__ import annotations

import re
from typing import Any

from .. import schema
from ..errors import NoSuchEvent, UsageError
from ..explain.why import Explainer, Why
from ..tracefile.events.event import Event
from ..wire import reading
from .expressions import Expr, check_path

_STEP = r"(?:p[0-9a-f]{1,32}:)?\d{1,18}(?:\.\d{1,9})?"
_ADDRESS = re.compile(
    rf"({_STEP}|turn:\d{{1,18}}|call:[0-9a-f]{{1,16}}|@error)((?:\.[A-Za-z_]\w*|\[[^\]]*\])*)\Z"
)
_LIST = re.compile(rf"\.({'|'.join(schema.LISTS)})(?=[.\[]|\Z)")


def ask(explainer: Explainer, question: str | Event | None, *, is_text: bool = False) -> Why:
    """Answer a question; without one, what fed the error or the answer that the run ended with."""
    if isinstance(question, Event):
        return explainer.event(question)
    if question is None:
        found = explainer.ending()
        if found is None:
            raise UsageError(
                "the run has neither an error nor an answer to explain",
                hint="name a text, an event or a value: why 'text', why 12, why 12.args.city",
            )
        return found
    if type(question) is not str:
        raise UsageError(f"why takes a text, an event or a path, not {type(question).__name__}")
    if not question.strip():
        raise UsageError("an empty text comes from everywhere", hint="why 'text', why 12, why 12.args.city")
    text = question.strip()
    if is_text or (text[0] == text[-1] and text[0] in "\"'" and len(text) > 2):
        return explainer.text(text if is_text else text[1:-1])
    event, path = _address(explainer, text)
    if event is None:
        return explainer.text(question)
    if not path:
        return explainer.event(event)
    return explainer.value(event, path, _value(event, path))


def _address(explainer: Explainer, text: str) -> tuple[Event | None, str]:
    """Return the event that a text names, and the path behind it; None if it names none."""
    parts = _ADDRESS.match(text)
    if parts is None:
        return None, ""
    try:
        return explainer.recording.event(parts[1]), parts[2].lstrip(".")
    except NoSuchEvent:
        if parts[2] or not parts[1][0].isdigit():
            raise
        return None, ""  # a number that is no address is a text like any other


def _value(event: Event, path: str) -> Any:
    """Return the value at a path; ``messages`` of a request are its conversation, in any provider's shape."""
    whole = f".{path}"
    found = _LIST.match(whole)
    if found is not None and event.event_type == schema.MODEL_REQUEST:
        key = reading.conversation_key(event.body) or "messages"
        whole = f".body.{key}{whole[found.end() :]}"
    elif event.event_type == schema.MODEL_REQUEST and path.startswith(("system", "tools")):
        whole = f".body{whole}"
    expr = Expr(whole[1:])
    value = expr(event)
    if value is None:
        check_path(expr, event)
        raise UsageError(f"there is nothing at {path}", hint="`reenact cat --full` shows what an event has")
    return value
