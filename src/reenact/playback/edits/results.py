"""``--tool-result`` where the wire alone tells of a tool: its result in the request that brought it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...errors import UsageError
from ...wire.json_values import decoded, mapping
from ...wire.messages import tool_results
from ...wire.pairing import pairs
from .cut import CutRequest
from .messages import REPLACE, Change

_WRAPPING = ("result", "output", "content")
"""Keys under which a text is given to Gemini, which wants an object."""


class Brought(NamedTuple):
    """A result that a request brings for the first time."""

    at: int
    """Which message."""
    order: int
    """Which of its results."""
    id: str | None
    name: str | None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.id))) or "a tool"


def brought(cut: CutRequest) -> list[Brought]:
    """Return the results at the end of a request's conversation."""
    paired = pairs(cut.messages)
    found: list[Brought] = []
    for at in reversed(range(len(cut.messages))):
        results = tool_results(cut.messages[at])
        if not results:
            break
        names = [pair.name for pair in paired if pair.result == at]
        found[:0] = [
            Brought(at, order, result.id, result.name or name)
            for order, (result, name) in enumerate(zip(results, names, strict=True))
        ]
    return found


def result_change(text: str, tool: str | None, cut: CutRequest) -> Change:
    """Return the change that replaces the one new result, or the one of the ``tool`` of that id or name."""
    all_new = brought(cut)
    if not all_new:
        raise UsageError(
            "--tool-result: the request at the cut brings no new result of a tool",
            hint="cut at the tool's call, or at the model call that follows it",
        )
    new = [each for each in all_new if tool in (None, each.id, each.name)]
    if len(new) != 1:
        listed = ", ".join(map(str, all_new))
        problem = f"it brings {len(new)} results" if tool is None or new else f"none of them is of {tool}"
        raise UsageError(
            f"--tool-result: {problem} at the cut: {listed}", hint="say which one is meant by its id"
        )
    [one] = new
    return Change(REPLACE, one.at, lambda message: with_result(message, one.order, text))


def with_result(message: Any, order: int, text: str) -> Any:
    """Return a message with another text as one of its results, which is no error any more."""
    kind = message.get("type")
    if type(kind) is str and kind.endswith("_output") and "role" not in message:
        kept = {key: value for key, value in message.items() if key != "status"}
        status = {"status": "completed"} if "status" in message else {}
        return {**kept, "output": _like(message.get("output"), text, "input_text"), **status}
    if message.get("role") in ("tool", "function"):
        return {**message, "content": _like(message.get("content"), text, "text")}
    key = "parts" if type(message.get("parts")) is list else "content"
    parts, count = [], 0
    for part in message[key]:
        is_result = bool(tool_results({"content": [part]}))
        parts.append(_part(part, text) if is_result and count == order else part)
        count += is_result
    return {**message, key: parts}


def _like(old: Any, text: str, kind: str) -> Any:
    """Return a text as a result: alone, or as the one part of a list where there was one."""
    return [{"type": kind, "text": text}] if type(old) is list else text


def _part(part: dict[str, Any], text: str) -> dict[str, Any]:
    if part.get("type") == "tool_result":
        kept = {key: value for key, value in part.items() if key != "is_error"}
        return {**kept, "content": _like(part.get("content"), text, "text")}
    value = decoded(text) if text.strip() else text
    if "toolResult" in part:
        old = part["toolResult"]
        status = {"status": "success"} if "status" in old else {}
        as_json = type(value) is dict and any("json" in mapping(block) for block in old.get("content") or ())
        return {
            **part,
            "toolResult": {**old, "content": [{"json": value} if as_json else {"text": text}], **status},
        }
    key = "functionResponse" if "functionResponse" in part else "function_response"
    old = part[key]
    wrapping = next((name for name in mapping(old.get("response")) if name in _WRAPPING), "result")
    return {**part, key: {**old, "response": value if type(value) is dict else {wrapping: text}}}
