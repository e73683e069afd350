"""Trace: the first article's recorder. ``Trace(path).step(kind, **fields)``."""

from __future__ import annotations

from ... import schema
from ..recorder.encode import CAP
from .base import FrontEnd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TOOL_OUTPUT_CAP = 4 << 10
"""The article's cap. The line keeps the head, the whole output goes to a blob."""
_TOOL_KINDS = frozenset((schema.TOOL_CALL, schema.OLD_TOOL_RESULT, schema.TOOL_RESULT))


class Trace(FrontEnd):
    """Write steps of any kind to a trace file, one line each, on disk when ``step`` returns.

    >>> trace = Trace("traces/run.jsonl")                                  # doctest: +SKIP
    >>> trace.step("tool_call", name="search", args={"q": "hotels"})       # doctest: +SKIP
    >>> trace.close()                                                      # doctest: +SKIP

    Without a path it joins the current run. Options: see docs/reference.md.
    """

    def __init__(self, path: Any = None, **options: Any) -> None:
        super().__init__(path, options)

    def step(self, *args: Any, **fields: Any) -> None:
        """Record one step: its kind, and any fields. Never raises."""
        try:
            kind = args[0] if args else fields.pop("kind", schema.NOTE)
            if type(kind) is not str or kind.startswith(("run.", "proc.")):
                kind = schema.user_kind(str.__str__(kind) if isinstance(kind, str) else str(kind))
            if not schema.RESERVED.isdisjoint(fields):
                fields = apart(fields)
            recorder = self._own or self.recorder()
            recorder.emit(kind, fields, TOOL_OUTPUT_CAP if kind in _TOOL_KINDS else CAP)
        except Exception as exc:
            self._swallow("record a step", exc)


def apart(fields: dict[str, Any]) -> dict[str, Any]:
    """Return a user's fields with those that bear one of our own names set apart under ``fields``."""
    flat = {name: value for name, value in fields.items() if name not in schema.RESERVED}
    ours = {name: value for name, value in fields.items() if name in schema.RESERVED}
    return {**flat, "fields": ours} if ours else flat
