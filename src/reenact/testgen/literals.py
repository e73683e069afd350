"""Recorded values as readable Python source."""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from typing import Any

WIDTH = 100
_DEEPEST = 160
"""Columns of indent beyond which nothing is wrapped."""


class Source(str):
    """A text that is source already."""

    __slots__ = ()


def literal(value: Any, indent: int = 0, used: int = 0, width: int = WIDTH) -> str:
    """Return the source of a plain value, wrapped if it does not fit on its line.

    ``indent`` is the indent of its line, ``used`` the columns used before it.
    """
    flat = _flat(value)
    is_short = len(flat) + max(indent, used) <= width
    if is_short or type(value) not in (dict, list, tuple) or not value or indent > _DEEPEST:
        return flat
    if type(value) is dict:
        items = [
            f"{_flat(key)}: {literal(item, indent + 4, indent + 8 + len(_flat(key)), width)}"
            for key, item in value.items()
        ]
        return _broken("{", items, "}", indent)
    begin, end = "[]" if type(value) is list else "()"
    return _broken(begin, [literal(item, indent + 4, 0, width) for item in value], end, indent)


def call(
    function: str, args: Iterable[Any], kwargs: dict[str, Any], *, outer: int = 4, before: str = ""
) -> str:
    """Return the source of a call, indented by ``outer`` columns, after ``before``.

    Names that cannot be parameters are passed in a dict.
    """
    width = WIDTH - outer
    named = {name: value for name, value in kwargs.items() if is_name(name)}
    rest = {name: value for name, value in kwargs.items() if name not in named}
    parts = [("", value) for value in args] + [(f"{name}=", value) for name, value in named.items()]
    parts += [("**", rest)] if rest else []
    flat = f"{function}({', '.join(name + _flat(value) for name, value in parts)})"
    if len(before) + len(flat) <= width:
        return flat
    items = [name + literal(value, 4, 4 + len(name), width) for name, value in parts]
    return _broken(f"{function}(", items, ")", 0)


def quoted(text: str) -> str:
    """Return a text in double quotes where that needs no escapes."""
    found = repr(text)
    return f'"{found[1:-1]}"' if found.startswith("'") and '"' not in found else found


def is_name(text: str) -> bool:
    """True if a text can be the name of a parameter."""
    return text.isidentifier() and not keyword.iskeyword(text)


def _flat(value: Any) -> str:
    kind = type(value)
    if kind is Source:
        return str(value)
    if kind is str:
        return quoted(value)
    if kind is dict:
        return "{" + ", ".join(f"{_flat(key)}: {_flat(item)}" for key, item in value.items()) + "}"
    if kind is list:
        return "[" + ", ".join(map(_flat, value)) + "]"
    if kind is tuple:
        return "(" + ", ".join(map(_flat, value)) + ("," if len(value) == 1 else "") + ")"
    if kind is float and value - value != 0:  # inf or nan
        return f'float("{value}")'
    return repr(value) if value is None or kind in (int, float, bool, bytes) else quoted(repr(value))


def is_plain(value: Any) -> bool:
    """True if a value is plain JSON, so its source is exact."""
    if type(value) is dict:
        return all(type(key) is str and is_plain(item) for key, item in value.items())
    if type(value) is list:
        return all(map(is_plain, value))
    return value is None or type(value) in (str, int, float, bool)


def _broken(begin: str, items: list[str], end: str, indent: int) -> str:
    pad = " " * (indent + 4)
    return begin + "\n" + "".join(f"{pad}{item},\n" for item in items) + " " * indent + end
