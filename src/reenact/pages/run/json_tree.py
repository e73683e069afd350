"""A recorded value as a tree that folds, so far as a page can hold it."""

from __future__ import annotations

from typing import Any

from ...tracefile.events.text import count, short_json
from ..html import Html, join, line, tag

_MOST_NODES = 2_000
_MOST_TEXT = 4_000
_DEEPEST = 40
_OPEN = 2
"""Levels that are open at first."""


def json_tree(value: Any) -> Html:
    """Return a value as nested lists; what is too much is counted."""
    return tag("div", _Tree().node("", value, 0), class_="tree")


class _Tree:
    def __init__(self) -> None:
        self._left = _MOST_NODES

    def node(self, name: str, value: Any, depth: int) -> Html:
        self._left -= 1
        label = tag("span", line(name), ": ", class_="key") if name else None
        if not isinstance(value, dict | list) or not value or depth >= _DEEPEST:
            return tag("div", label, _leaf(value))
        is_object = isinstance(value, dict)
        items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        size = count(len(items), "key" if is_object else "item")
        shown: list[Html] = []
        for key, item in items:
            if self._left <= 0:
                shown.append(tag("div", f"… {len(items) - len(shown):,} more", class_="soft"))
                break
            shown.append(self.node(str(key), item, depth + 1))
        summary = tag(
            "summary", label, tag("span", f"{{{size}}}" if is_object else f"[{size}]", class_="soft")
        )
        return tag("details", summary, *shown, open=depth < _OPEN)


def _leaf(value: Any) -> Html:
    if not isinstance(value, str):
        return tag("span", short_json(value, 200), class_="value")
    more = len(value) - _MOST_TEXT
    rest = tag("span", f" … {more:,} more characters", class_="soft") if more > 0 else None
    return join(tag("span", value[:_MOST_TEXT], class_="value text"), rest)
