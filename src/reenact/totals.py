"""Totals of a run: one arithmetic for the recorder, ``ls``, the debugger and every report.

Fed one event at a time as ``add(kind, fields)``; constant memory, never raises on odd values.
On the recorder's hot path, so it imports nothing until a usage object in a rarer spelling comes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_MAX_OPEN = 4096
"""Model calls remembered while unanswered; a run that leaks more forgets their lanes."""


class Totals:
    """Running sums of one run or writer; ``tokens_in`` includes what the cache read and wrote."""

    __slots__ = (
        "_failed_lanes", "_failures", "_open", "cache_read", "cache_write", "errors", "llm_calls",
        "reasoning", "steps", "tokens_in", "tokens_out", "tool_calls", "turns", "writer",
    )  # fmt: skip

    def __init__(self) -> None:
        self.turns = self.steps = self.llm_calls = self.tool_calls = self.errors = 0
        self.tokens_in = self.tokens_out = self.cache_read = self.cache_write = self.reasoning = 0
        self._open: dict[object, str] = {}
        self._failed_lanes: dict[str, int] = {}
        self._failures = Failures()
        self.writer = ""
        """Whose events are added, where several writers are summed: each has lanes of its own."""

    def add(self, kind: str, fields: Mapping[str, Any]) -> None:
        """Count one event."""
        count = _COUNTERS.get(kind)
        if count is not None:
            self.steps += 1
            count(self, fields)
        elif not kind.startswith(("run.", "proc.")):
            self.steps += 1
            self._ended(fields)

    @property
    def total_tokens(self) -> int:
        """Everything in (cached or not) and out."""
        return self.tokens_in + self.tokens_out

    @property
    def uncached_in(self) -> int:
        """Input tokens without those the cache read or wrote."""
        return self.tokens_in - self.cache_read - self.cache_write

    def as_tot(self) -> dict[str, int]:
        """Return the ``tot`` object of a line."""
        return {"turns": self.turns, "in": self.tokens_in, "out": self.tokens_out, "err": self.errors}

    def resume(self, kind: str, fields: Mapping[str, Any], tot: Mapping[str, Any]) -> None:
        """Go on from a line that carries its writer's sums, instead of from the beginning."""
        self.add(kind, fields)  # for what a retry in the next line takes back
        self.turns, self.errors = number(tot.get("turns")), number(tot.get("err"))
        self.tokens_in, self.tokens_out = number(tot.get("in")), number(tot.get("out"))

    def __iadd__(self, other: Totals) -> Totals:
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Totals):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _SUMS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Totals({', '.join(f'{name}={getattr(self, name)}' for name in _SUMS)})"

    def _tokens(self, usage: Mapping[str, object]) -> None:
        get = usage.get
        read, write = number(get("cache_read")), number(get("cache_write"))
        self.cache_read += read
        self.cache_write += write
        self.tokens_in += number(get("input")) + read + write
        self.tokens_out += number(get("output"))
        self.reasoning += number(get("reasoning"))

    def _model_request(self, fields: Mapping[str, Any]) -> None:
        lane = fields.get("lane")
        lane = self.writer + (lane if type(lane) is str else "main")
        attempt = fields.get("attempt")
        if attempt is None or attempt == 1:
            self.turns += 1
            self._failed_lanes.pop(lane, None)
        else:  # a retry: the attempt before it did not fail the turn after all
            self.errors -= self._failed_lanes.pop(lane, 0)
        call = fields.get("call")
        if type(call) is str and len(self._open) < _MAX_OPEN:
            self._open[call] = lane

    def _model_response(self, fields: Mapping[str, Any]) -> None:
        self.llm_calls += 1
        call = fields.get("call")
        lane = self._open.pop(call, "") if type(call) is str else ""
        lane = lane or self.writer + "main"
        if self._ended(fields):
            if len(self._failed_lanes) < _MAX_OPEN:
                self._failed_lanes[lane] = 1
        self._tokens(used(fields))

    def _llm_call(self, fields: Mapping[str, Any]) -> None:
        self.turns += 1
        self.llm_calls += 1
        self._ended(fields)
        self._tokens(used(fields))

    def _tool_begin(self, fields: Mapping[str, Any]) -> None:
        self.tool_calls += 1
        self._ended(fields)

    def _ended(self, fields: Mapping[str, Any]) -> bool:
        """Count a call that failed; False for one that did not."""
        if fields.get("error") is None:
            return False
        self.errors += 1
        self._failures.add(self.writer, fields)
        return True

    def _error(self, fields: Mapping[str, Any]) -> None:
        if not self._failures.explain(self.writer, fields):
            self.errors += 1


class Failures:
    """Failed calls whose exception has not come up as an ``error`` event: one failure is one error."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: list[tuple[str, str, str, str]] = []
        """Writer, type and message of the error, and the HTTP status."""

    def add(self, writer: str, fields: Mapping[str, Any]) -> None:
        """Remember the error of a call."""
        if len(self._known) >= _MAX_FAILURES:
            del self._known[0]
        status = fields.get("status")
        status = str(status) if type(status) is int and status >= 400 else ""
        self._known.append((writer, *_type_and_message(fields.get("error")), status))

    def explain(self, writer: str, fields: Mapping[str, Any]) -> bool:
        """True if an ``error`` event is the exception of a failed call, or came of it; once for each call."""
        for at in range(len(self._known) - 1, -1, -1):
            if self._known[at][0] == writer and _came_of(fields.get("error"), *self._known[at][1:]):
                del self._known[at]
                return True
        return False


_MAX_FAILURES, _MAX_CAUSES = 64, 8


def _type_and_message(error: object) -> tuple[str, str]:
    """Return the type of an error without its module, and its message.

    Exact types only: an object of the agent may pretend to be a text.
    """
    if type(error) is not dict:
        return "", error[:_MAX_MESSAGE] if type(error) is str else ""
    kind, message = error.get("type"), error.get("message")
    kind = kind.rpartition(".")[2] if type(kind) is str else ""
    return kind, message[:_MAX_MESSAGE] if type(message) is str else ""


def _came_of(error: object, kind: str, message: str, status: str) -> bool:
    """True if an exception, one of its causes or of its group is the error of a call.

    An SDK raises another exception for the error of a provider: it has the provider's words, or the status.
    """
    waiting: list[object] = [error]
    for _ in range(_MAX_CAUSES):
        if not waiting:
            return False
        error = waiting.pop(0)
        own_kind, text = _type_and_message(error)
        if text == message and (kind == own_kind or (message and not (kind and own_kind))):
            return True
        if status and any(each and each in text for each in (message, kind)):
            return True
        if status and any(word.strip("'\"():,.") == status for word in text[:200].split()):
            return True
        if type(error) is dict:
            group = error.get("group")
            waiting += [error["cause"]] if error.get("cause") is not None else []
            waiting += group[:_MAX_CAUSES] if type(group) is list else []
    return False


def used(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tokens of an ended model call: input (without the cached part), output, cache_read,
    cache_write, reasoning, as far as its line has them.

    Read from the counts a StepLog writes beside each other, from ``usage`` in any spelling, and where there
    is neither from the provider's own answer.
    """
    get = fields.get
    recorded = get("usage")
    usage: dict[str, Any] = recorded if isinstance(recorded, dict) else {}
    if usage.get("input") is not None or usage.get("output") is not None:  # as the recorder writes it
        return usage
    if get("input_tokens") is not None or get("output_tokens") is not None:
        return {
            "input": get("input_tokens"),
            "output": get("output_tokens"),
            "cache_read": get("cache_read_tokens"),
            "cache_write": get("cache_write_tokens"),
            "reasoning": get("reasoning_tokens"),
        }
    if "input_tokens" in usage and _COUNTED_INSIDE.isdisjoint(usage):  # Anthropic's plain one
        return {
            "input": usage["input_tokens"],
            "output": usage.get("output_tokens"),
            "cache_read": usage.get("cache_read_input_tokens"),
            "cache_write": usage.get("cache_creation_input_tokens"),
        }
    body = get("body")
    if not usage and not isinstance(body, dict):
        return {}
    from .wire import reading

    found = reading.usage_from_raw(usage) if usage else None
    if found is None and isinstance(body, dict):
        provider = get("provider")
        found = reading.usage(body, provider if isinstance(provider, str) else None)
    return found or {}


def number(value: object) -> int:
    """Return a count as it is, 0 for anything that is not a count."""
    if type(value) is int and 0 <= value < _MAX_COUNT:
        return value
    if value is None:
        return 0
    try:
        count: int = int(value)  # type: ignore[call-overload]
        return count if 0 <= count < _MAX_COUNT else 0
    except Exception:  # a trace may hold anything here, and so may an agent's call
        return 0


_MAX_MESSAGE = 10_000
_MAX_COUNT = 1 << 62
"""No count of tokens is larger; a sum must stay a number that can be written."""


_COUNTED_INSIDE = frozenset({
    "input", "output", "prompt_tokens", "input_tokens_details", "output_tokens_details",
    "cached_input_tokens",
})  # fmt: skip
"""Names that say a usage object is another's than Anthropic's, or has more to count."""

_SUMS = (
    "turns", "steps", "llm_calls", "tool_calls", "tokens_in", "tokens_out",
    "cache_read", "cache_write", "reasoning", "errors",
)  # fmt: skip

_COUNTERS: dict[str, Callable[[Totals, Mapping[str, Any]], object]] = {
    "model.request": Totals._model_request,
    "model.response": Totals._model_response,
    "llm_call": Totals._llm_call,
    "tool.called": Totals._tool_begin,
    "tool_call": Totals._tool_begin,
    "tool.result": Totals._ended,
    "tool_result": Totals._ended,
    "error": Totals._error,
}
