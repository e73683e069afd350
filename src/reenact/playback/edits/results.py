"""``--tool-result`` where the wire alone tells of a tool: its result in the request that brought it."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import UsageError
from ...wire.messages import tool_results, with_result
from ...wire.pairing import pairs
from .cut import CutRequest
from .messages import REPLACE, Change


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
