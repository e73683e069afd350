"""The context window of a model call, part by part: who said it, how large it is, where it came from.

Also what is new in it since the lane's previous request. Shares are estimates by length, which is all one
can say without the provider's tokenizer; the sum is what the provider counted, where it told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import lines, schema
from ..totals import number, used
from ..tracefile.event import Event
from ..tracefile.line_heads import base_kind, links_of
from ..wire import reading
from ..wire.messages import tool_results
from ..wire.reading import SYSTEM, TOOLS, system_text, tool_names
from .origins import Origin, Origins, common_prefix
from .recording import Recording

_NEAR = 2000
"""Events after a request among which its answer is sought."""


class Part(NamedTuple):
    """A message, the system prompt, or the tools of a request."""

    number: int | None
    """Of a message, from 0; None for what stands beside the messages."""
    role: str
    value: Any
    text: str
    size: int
    """Characters as JSON."""
    origin: Origin | None


class Context(NamedTuple):
    """What the model saw."""

    request: Event
    parts: list[Part]
    tokens: int | None
    """Input tokens as the provider counted them; None if it did not tell."""

    size: int
    """Of all parts together."""

    @property
    def messages(self) -> list[Part]:
        return [part for part in self.parts if part.number is not None]

    def share(self, part: Part) -> float:
        """Return the part's estimated share of the whole, 0 to 1."""
        return part.size / max(1, self.size)


class Delta(NamedTuple):
    """What is new in a request."""

    context: Context
    previous: Event | None
    kept: int
    """Messages that stand as they did."""
    gone: int
    """Messages of the previous request that are no longer there, or not as they were."""
    changed: list[str]
    """Other parts of the request that differ."""
    parts: list[Part]


def context_of(recording: Recording, event: Event) -> Context | None:
    """Return the context of the request that led to an event; None if there is none."""
    request = recording.request_before(event)
    if request is None:
        return None
    body = request.body
    body = body if type(body) is dict else {}
    beside = [
        Part(None, role, value, text(value), _size(value), None)
        for role, keys, text in (("system", SYSTEM, system_text), ("tools", TOOLS, _tools_text))
        for key in keys
        if (value := body.get(key))
    ]
    origins = Origins(recording).of(request)
    said = [
        Part(number, role_of(message), message, reading.text(message), _size(message), origins[number])
        for number, message in enumerate(recording.context_at(request))
    ]
    parts = beside + said
    return Context(request, parts, _tokens(recording, request), sum(part.size for part in parts))


def delta_of(recording: Recording, event: Event) -> Delta | None:
    """Return what is new in the request that led to an event, compared with the lane's previous one."""
    context = context_of(recording, event)
    if context is None:
        return None
    previous = Origins(recording).previous(context.request)
    if previous is None:
        return Delta(context, None, 0, 0, [], context.messages)
    before, now = recording.context_at(previous), recording.context_at(context.request)
    kept = common_prefix(before, now)
    old, new = (body if type(body) is dict else {} for body in (previous.body, context.request.body))
    keys = [key for key in {**old, **new} if key not in schema.LISTS]
    changed = [key for key in keys if old.get(key) != new.get(key)]
    return Delta(context, previous, kept, len(before) - kept, changed, context.messages[kept:])


def role_of(message: Any) -> str:
    """Return who a message is from; ``tool`` for one of only tool results, whatever its provider calls it."""
    if type(message) is not dict:
        return "?"
    kind, role = message.get("type"), message.get("role")
    if type(kind) is str and kind.endswith("_output"):
        return "tool"
    if kind in ("function_call", "reasoning"):
        return "assistant"
    parts = message.get("content")
    if type(parts) is list and parts and all(tool_results(part) for part in parts):
        return "tool"
    if type(message.get("parts")) is list and any(tool_results(part) for part in message["parts"]):
        return "tool"
    return role if type(role) is str else str(kind or "?")


def _tools_text(value: Any) -> str:
    return ", ".join(tool_names(value))


def _size(value: Any) -> int:
    try:
        return len(lines.dumps(value))
    except (ValueError, TypeError, RecursionError):
        return len(repr(value))


def _tokens(recording: Recording, request: Event) -> int | None:
    call, start = request.call, request.index
    if call is None or start is None:
        return None
    for event in recording.events[start + 1 : start + _NEAR]:
        if base_kind(event) == schema.MODEL_RESPONSE and links_of(event).get("call") == call:
            usage = used(event.stored_fields)
            keys = ("input", "cache_read", "cache_write")
            known = [number(usage[key]) for key in keys if usage.get(key) is not None]
            return sum(known) if known else None
    return None
