"""What the expression language computes with: total operations on the values of a trace.

Every function takes any decoded JSON value; what cannot be done gives None or False.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from ..errors import UsageError
from ..tracefile.event import ErrorText, Event
from ..wire.json_values import as_json

_MAX_JOINED = 1 << 20
_ALIASES = {"tool": "tool_name", "type": "event_type"}
_ORDER: dict[type, Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
MATHS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def field(value: Any, name: str) -> Any:
    """Return one named part of an event or JSON value, None if it has none of that name."""
    if isinstance(value, Event):
        name = _ALIASES.get(name, name)
        if name == "summary":
            return value.summary()
        return None if name.startswith("_") else getattr(value, name)
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, ErrorText) and name in ("type", "frames", "message"):
        return getattr(value, name)
    return None


def regex(pattern: str) -> re.Pattern[str]:
    """Compile a pattern the user typed, or say what is wrong with it."""
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as why:
        raise UsageError(f"{pattern!r} is not a regular expression ({why})") from None


def as_text(value: Any) -> str:
    """Return a value as the text a pattern is sought in: itself, or its JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None or isinstance(value, Event) else as_json(value)


def truth(value: Any) -> bool:
    return True if isinstance(value, ErrorText) else bool(value)


def is_number(value: Any) -> bool:
    return type(value) in (int, float)


def item(value: Any, key: Any) -> Any:
    if isinstance(value, list | str):
        return value[key] if type(key) is int and -len(value) <= key < len(value) else None
    return field(value, key) if type(key) is str else None


def elements(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value)
    return value if isinstance(value, list) else []


def comparison(op: ast.cmpop) -> Callable[[Any, Any], bool]:
    if isinstance(op, ast.Eq):
        return lambda a, b: bool(a == b)
    if isinstance(op, ast.NotEq):
        return lambda a, b: bool(a != b)
    if isinstance(op, ast.Is):
        return lambda a, b: a is b
    if isinstance(op, ast.IsNot):
        return lambda a, b: a is not b
    if isinstance(op, ast.In):
        return _contains
    if isinstance(op, ast.NotIn):
        return lambda a, b: not _contains(a, b)
    order = _ORDER[type(op)]
    return lambda a, b: _comparable(a, b) and order(a, b)


def _comparable(a: Any, b: Any) -> bool:
    return (is_number(a) and is_number(b)) or (isinstance(a, str) and isinstance(b, str))


def _contains(item: Any, within: Any) -> bool:
    if isinstance(within, str):
        return isinstance(item, str) and item in within
    if isinstance(within, dict):
        return isinstance(item, str) and item in within
    return isinstance(within, list) and item in within


def combined(combine: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    if combine is operator.add and isinstance(a, str) and isinstance(b, str):
        return a + b if len(a) + len(b) < _MAX_JOINED else None
    if not is_number(a) or not is_number(b):
        return None
    try:
        return combine(a, b)
    except (ArithmeticError, ValueError):
        return None
