"""Whose fault it is that a run failed, as far as its recording tells: it decides what a test can prove."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...tracefile import status as states
from ...tracefile.calls import MODEL, Call
from ...tracefile.recording import Recording
from ...wire.reading import tool_uses
from ..matching.answers import CUT, EXCEPTION, STATUS, outcome_of
from ..rebuild.asked import read_request

CODE, PROVIDER, MODELS_OWN, OUTSIDE = "code", "provider", "model", "outside"
_ENDS = {
    "max_tokens": "the model's answer was cut by the token limit",
    "refusal": "the model refused",
    "content_filter": "the provider's filter withheld the answer",
}


class Blame(NamedTuple):
    """Whose fault, and why."""

    who: str
    why: str


def blame(recording: Recording) -> Blame | None:
    """Return whose fault a failure was, None of a run that did not fail."""
    status, error = recording.status, recording.error
    if status in (states.KILLED, states.CANCELLED, states.RUNNING):
        words = {states.KILLED: "it was killed", states.CANCELLED: "it was cancelled"}
        return Blame(OUTSIDE, words.get(status, "it has not ended yet"))
    if status != states.ERROR:
        return None
    last = next((call for call in reversed(recording.calls()) if call.kind == MODEL), None)
    if last is not None:
        found = _of_provider(last) or _of_model(last)
        if found is not None:
            return found
    return Blame(CODE, what_happened(recording) if error is None else failure_text(recording))


def failure_text(recording: Recording) -> str:
    """Return the exception a run ended with, and where: ``KeyError: 'price' at shop.py:31 in order``."""
    error = recording.error
    if error is None:
        return what_happened(recording)
    said = str(error).strip().partition("\n")[0][:120]
    where = f" at {error.frames[0]}" if error.frames else ""
    return f"{error.type or 'an error'}{': ' + said if said and said != error.type else ''}{where}"


def what_happened(recording: Recording) -> str:
    """Return how a run failed that raised nothing."""
    end = recording.end
    told = end._raw() if end is not None else {}
    if type(told.get("http_status")) is int:
        return f"it answered with status {told['http_status']}"
    return f"it ended with exit code {told['exit']}" if "exit" in told else "it failed"


def _of_provider(last: Call) -> Blame | None:
    outcome = outcome_of(last)
    if last.end is None or outcome not in (STATUS, EXCEPTION, CUT):
        return None
    status = last.end.status
    said = f"status {status}" if outcome == STATUS else str(last.error or "the connection broke")[:120]
    return Blame(PROVIDER, f"the last call to the model failed: {said}")


def _of_model(last: Call) -> Blame | None:
    if last.end is None:
        return None
    ended = _ENDS.get(str(last.end.stop_reason))
    if ended is not None:
        return Blame(MODELS_OWN, ended)
    offered = _offered(read_request(last).tools) if last.begin is not None else []
    asked = [use.name for use in tool_uses(last.end.body, _text(last.end.provider))]
    unknown = [name for name in asked if offered and name not in offered]
    return (
        Blame(MODELS_OWN, f"the model asked for a tool {unknown[0]!r}, which there is not")
        if unknown
        else None
    )


def _text(value: Any) -> str | None:
    return value if type(value) is str else None


def _offered(tools: list[Any]) -> list[str]:
    """Return the names of the tools in a request, in any provider's shape."""
    found = []
    for tool in tools:
        if type(tool) is not dict:
            continue
        inner = [tool, tool.get("function"), tool.get("toolSpec"), *(tool.get("functionDeclarations") or ())]
        found += [each["name"] for each in inner if type(each) is dict and type(each.get("name")) is str]
    return found
