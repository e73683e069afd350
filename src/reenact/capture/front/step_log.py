"""StepLog: the third article's per-step log. Model calls and tool calls, and a summary without rereading."""

from __future__ import annotations

import time
from typing import Any

from ... import schema
from ...totals import Totals
from ..calls.error_fields import failure
from .base import FrontEnd
from .trace import apart


class StepSummary:
    """Totals of a StepLog. The article's seven fields first; all are in ``__dict__``."""

    def __init__(self, run_id: str, totals: Totals, duration_ms: float) -> None:
        self.run_id = run_id
        self.total_steps = totals.steps
        self.llm_call_count = totals.llm_calls
        self.tool_call_count = totals.tool_calls
        self.total_tokens = totals.total_tokens
        """Everything the model read or wrote, cached tokens included, each once."""
        self.error_count = totals.errors
        self.duration_ms = duration_ms
        """From the making of the log to its last step."""
        self.input_tokens = totals.tokens_in - totals.cache_read - totals.cache_write
        self.output_tokens = totals.tokens_out
        self.cache_read_tokens = totals.cache_read
        self.cache_write_tokens = totals.cache_write
        self.reasoning_tokens = totals.reasoning

    def __repr__(self) -> str:
        return f"StepSummary({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class StepLog(FrontEnd):
    """Record what an agent did: one line per model call and per tool call."""

    def __init__(self, path: Any = None, run_id: str | None = None, **options: Any) -> None:
        super().__init__(path, options, run_id)
        self._totals = Totals()
        self._began = self._latest = time.monotonic()

    def record_llm_call(
        self,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        stop_reason: str | None = None,
        *,
        duration_ms: float | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        reasoning_tokens: int | None = None,
        error: Any = None,
        **fields: Any,
    ) -> None:
        """Record one model call. ``input_tokens`` are the uncached ones. Never raises."""
        try:
            values = {
                "model": model,
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
                "stop_reason": stop_reason,
                "duration_ms": rounded(duration_ms),
            }
            optional = {
                "cache_read_tokens": cache_read_tokens,
                "cache_write_tokens": cache_write_tokens,
                "reasoning_tokens": reasoning_tokens,
                "error": failure(error),
            }
            values.update({name: value for name, value in optional.items() if value is not None})
            self._record(schema.LLM_CALL, values, fields)
        except Exception as exc:
            self._swallow("record a model call", exc)

    def record_tool_call(
        self,
        tool: str,
        input: Any = None,
        output: Any = None,
        error: Any = None,
        duration_ms: float = 0,
        **fields: Any,
    ) -> None:
        """Record one finished tool call; ``error`` is text or the exception itself. Never raises."""
        try:
            values = {
                "tool": tool,
                "input": input,
                "output": output,
                "error": failure(error),
                "duration_ms": rounded(duration_ms),
            }
            self._record(schema.TOOL_CALL, values, fields)
        except Exception as exc:
            self._swallow("record a tool call", exc)

    def _record(self, kind: str, values: dict[str, Any], fields: dict[str, Any]) -> None:
        if fields:
            values = {**apart(fields), **values}
        recorder = self.recorder()
        if recorder.emit(kind, values):
            with recorder.lock:
                self._totals.add(kind, values)
                self._latest = time.monotonic()

    def summarize(self) -> StepSummary:
        """Return the totals so far, from memory; what could not be written is not counted."""
        duration = round((self._latest - self._began) * 1000, 3)
        return StepSummary(self.run_id, self._totals, duration)


def rounded(milliseconds: Any) -> Any:
    """Return a duration to the microsecond; anything else as it is."""
    return round(milliseconds, 3) if type(milliseconds) is float else milliseconds
