"""In the place of what a recording holds only in part."""

from __future__ import annotations

from typing import Any

from ..rebuild.whole import is_mark

_MAX_DEPTH = 200


class StandIn:
    """In the place of a value that is not recorded whole; its text is what is known of it."""

    def __init__(self, mark: dict[str, Any]) -> None:
        self.mark = mark
        """As it stands in the recording (docs/format.md)."""

    def __repr__(self) -> str:
        told = self.mark.get("$repr")
        return told if type(told) is str else f"<not recorded: {self.mark}>"


def stood_in(value: Any, depth: int = 0) -> Any:
    """Return a value with a StandIn for every part that is not recorded."""
    if type(value) is dict:
        if any(is_mark(str(key)) for key in value):
            return StandIn(value)
        return (
            {key: stood_in(item, depth + 1) for key, item in value.items()} if depth < _MAX_DEPTH else value
        )
    if type(value) is list and depth < _MAX_DEPTH:
        return [stood_in(item, depth + 1) for item in value]
    return value
