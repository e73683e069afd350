"""Calls -> the sums of their run: model calls under model and stop reason, tool calls under their tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import schema
from ..money.ledger import Ledger
from ..tracefile import dialects
from ..tracefile.calls import MODEL, TOOL
from ..tracefile.shelf import Shelf
from .rows import UNTOLD, CallStats, RunStats

if TYPE_CHECKING:
    from ..money.prices import Book

OTHERS = "(others)"
MAX_NAMES = 1000
"""Of tools, models or errors told apart in one run; a hostile file must not fill memory."""
MAX_NAME = 200


class Begun:
    """What is kept of a call that has not ended."""

    __slots__ = ("attempt", "kind", "lane", "request", "tool")

    def __init__(self, kind: str, fields: dict[str, Any], request: dict[str, Any] | None) -> None:
        self.kind = kind
        self.request = request
        """What of its request decides the price, of a model call."""
        self.tool = tool_name(fields) if kind == TOOL else None
        self.lane = lane_of(fields)
        self.attempt = fields.get("attempt")


class Sums:
    """Adds calls to the sums of a run, each where it belongs."""

    def __init__(self, row: RunStats, book: Book) -> None:
        self._row = row
        self._book = book
        self._ledger = Ledger(book)

    def request(self, fields: dict[str, Any], shelf: Shelf) -> dict[str, Any]:
        """Return what of a request decides the price of its call."""
        return self._ledger.request_facts(fields, shelf)

    def answered(self, begun: Begun | None, fields: dict[str, Any], kind: str) -> CallStats:
        """Count a model call that has ended."""
        request = begun.request if begun is not None else None
        stats = self._cell(self._ledger.model(fields, request), stop_reason(fields, kind))
        if begun is not None and kind != schema.LLM_CALL:
            stats.totals.add(schema.MODEL_REQUEST, {"attempt": begun.attempt})
        stats.totals.add(kind, fields)
        stats.cost.add(self._ledger.price(fields, request))
        return stats

    def tool(self, name: str | None, has_begun: bool) -> CallStats:
        """Count a tool call."""
        tools = self._row.tools
        name = known_name(name or "?", tools)
        stats = tools.get(name)
        if stats is None:
            stats = tools[name] = CallStats()
        if has_begun:
            stats.totals.add(schema.TOOL_CALLED, {})
        return stats

    def took(self, stats: CallStats, duration: object, failed: bool) -> None:
        """Count how a call ended."""
        stats.failed += failed
        if (type(duration) is float or type(duration) is int) and 0 <= duration < 1e13:
            stats.durations.append(duration)

    def left_open(self, begun: Begun, *, failed: bool = False) -> None:
        """Count a call that has no end."""
        if begun.kind == MODEL:
            stats = self._cell(self._ledger.model({}, begun.request), UNTOLD)
            stats.totals.add(schema.MODEL_REQUEST, {"attempt": begun.attempt})
        else:
            stats = self.tool(begun.tool, True)
        stats.open += 1
        stats.failed += failed

    def _cell(self, model: object, reason: str) -> CallStats:
        cells = self._row.by_model_and_stop
        key = (model[:MAX_NAME] if type(model) is str and model else UNTOLD, reason)
        stats = cells.get(key)
        if stats is None:
            if len(cells) >= MAX_NAMES:
                key = (OTHERS, OTHERS)
            stats = cells.get(key)
            if stats is None:
                stats = cells[key] = CallStats()
                stats.cost = self._book.bill()
        return stats


def tool_name(fields: dict[str, Any]) -> str | None:
    """Return the name of a tool, as an event's ``tool_name`` does."""
    name = fields.get("tool")
    if type(name) is str:
        return name
    return next((fields[key] for key in dialects.TOOL_KEYS if type(fields.get(key)) is str), None)


def stop_reason(fields: dict[str, Any], kind: str) -> str:
    """Return why a model call stopped, ``max_tokens`` also where a ``llm_call`` has OpenAI's ``length``."""
    reason = fields.get("stop_reason")
    if type(reason) is not str or not reason:
        return UNTOLD
    if kind == schema.LLM_CALL:  # as the agent's author spelled it
        from ..wire.providers import gemini, openai_chat

        reason = openai_chat.STOP.get(reason) or gemini.STOP.get(reason) or reason
    return reason[:MAX_NAME]


def known_name(name: str, names: dict[str, Any]) -> str:
    name = name[:MAX_NAME]
    return name if name in names or len(names) < MAX_NAMES else OTHERS


def lane_of(fields: dict[str, Any]) -> str:
    lane = fields.get("lane")
    return lane if type(lane) is str else "main"


def parent_of(fields: dict[str, Any]) -> str | None:
    parent = fields.get("parent")
    return parent if type(parent) is str else None


def has_error(fields: dict[str, Any]) -> bool:
    """True if the end of a call says that it failed."""
    return any(fields.get(key) is not None for key in dialects.ERROR_KEYS)
