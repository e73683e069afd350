"""A small language over events: what filters, breakpoints, watches and ``print`` are written in.

The syntax is Python's, read by ``ast`` and built from a short list of operations; there is nothing in it
that could call, import or loop without end, and text from a trace is only ever a value. What is missing
is None, and comparing what cannot be compared is False, so that one expression fits all kinds of events.
"""

from __future__ import annotations

import ast
import difflib
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import schema
from ..errors import UsageError
from ..tracefile.events.event import ErrorText, Event
from ..wire.json_values import as_json
from .search import regex

# What the expression language computes with: total operations on the values of a trace.
#
# Every function takes any decoded JSON value; what cannot be done gives None or False.

_MAX_JOINED = 1 << 20
_MAX_BITS = 13_500
"""Of a number; those of much more than 4,000 digits cannot be printed."""
_NOT_VALUES = frozenset(("restore_value", "stored_head", "stored_in"))
"""Attributes of an event that are not values of a trace."""
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
        return None if name.startswith("_") or name in _NOT_VALUES else getattr(value, name)
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, ErrorText) and name in ("type", "frames", "message"):
        return getattr(value, name)
    return None


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
        value = combine(a, b)
    except (ArithmeticError, ValueError):
        return None
    if type(value) is int and value.bit_length() > _MAX_BITS:
        raise UsageError("the result of the expression has more than 4,000 digits")
    return value


MAX_TEXT, MAX_NODES, MAX_DEPTH = 2000, 300, 40

Scope = tuple[Event, Mapping[str, Any]]
Step = Callable[[Scope], Any]

_WORDS = {"true": True, "false": False, "null": None, "none": None}
_EVENT = ("e", "event")


class Expr:
    """One checked expression; ``expr(event)`` gives its value."""

    __slots__ = ("_step", "names", "text")

    def __init__(self, text: str) -> None:
        self.text = text.strip()
        builder = _Builder(self.text)
        self._step = builder.built()
        self.names = builder.fields
        """The fields of an event that it names."""

    def __call__(self, event: Event) -> Any:
        return self._step((event, {}))

    def matches(self, event: Event) -> bool:
        """True if the value counts as true; an error counts even if its text is empty."""
        return truth(self(event))

    def __repr__(self) -> str:
        return f"Expr({self.text!r})"


class _Builder:
    """Turns a syntax tree into nested functions, refusing all it does not know."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        self.fields: set[str] = set()
        self.nodes = 0
        self.depth = 0

    def built(self) -> Step:
        if not self.text:
            raise UsageError("the expression is empty", hint='for instance: kind == "tool.result" and error')
        if len(self.text) > MAX_TEXT:
            raise UsageError(f"the expression is longer than {MAX_TEXT:,} characters")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "\d" in a pattern is meant as it stands
                tree = ast.parse(self.text, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError) as why:
            what_fails = f"{_quoted(self.text)} is not an expression ({getattr(why, 'msg', None) or why})"
            raise UsageError(what_fails, hint=_syntax_hint(self.text)) from None
        return self.step(tree.body)

    def step(self, node: ast.AST) -> Step:
        self.nodes += 1
        self.depth += 1
        if self.nodes > MAX_NODES or self.depth > MAX_DEPTH:
            raise UsageError("the expression is too long or too deep")
        build = getattr(self, f"build_{type(node).__name__.lower()}", None)
        if build is None:
            raise self.refuse(node)
        step: Step = build(node)
        self.depth -= 1
        return step

    def refuse(self, node: ast.AST, what: str | None = None) -> UsageError:
        what_fails = what or _quoted(ast.get_source_segment(self.text, node) or self.text)
        return UsageError(
            f"{what_fails} cannot stand in an expression",
            hint="there are fields, comparisons, and or not in, + - * / %, len any all match(regex, text)",
        )

    def build_constant(self, node: ast.Constant) -> Step:
        value = node.value
        if not isinstance(value, str | int | float | None):
            raise self.refuse(node)
        return lambda scope: value

    def build_name(self, node: ast.Name) -> Step:
        name = node.id
        if name in self.names:
            return lambda scope: scope[1].get(name)
        if name in _WORDS:
            word = _WORDS[name]
            return lambda scope: word
        if name in _EVENT:
            return lambda scope: scope[0]
        self.check_name(node, name)
        self.fields.add(name)
        return lambda scope: field(scope[0], name)

    def build_attribute(self, node: ast.Attribute) -> Step:
        self.check_name(node, node.attr)
        inner, name = self.step(node.value), node.attr
        return lambda scope: field(inner(scope), name)

    def check_name(self, node: ast.AST, name: str) -> None:
        if name.startswith("_"):
            raise self.refuse(node, f"{name!r}, a name that begins with _,")

    def build_subscript(self, node: ast.Subscript) -> Step:
        inner = self.step(node.value)
        if isinstance(node.slice, ast.Slice):
            return self.sliced(inner, node.slice)
        key = self.step(node.slice)
        return lambda scope: item(inner(scope), key(scope))

    def sliced(self, inner: Step, part: ast.Slice) -> Step:
        if part.step is not None:
            raise self.refuse(part.step, "a slice with a step")
        low = self.step(part.lower) if part.lower else None
        high = self.step(part.upper) if part.upper else None

        def cut(scope: Scope) -> Any:
            value = inner(scope)
            bounds = [bound(scope) if bound else None for bound in (low, high)]
            if not isinstance(value, str | list) or any(type(b) not in (int, type(None)) for b in bounds):
                return None
            return value[bounds[0] : bounds[1]]

        return cut

    def build_boolop(self, node: ast.BoolOp) -> Step:
        steps = [self.step(value) for value in node.values]
        if isinstance(node.op, ast.And):
            return lambda scope: _last(steps, scope, stop_at=False)
        return lambda scope: _last(steps, scope, stop_at=True)

    def build_unaryop(self, node: ast.UnaryOp) -> Step:
        inner = self.step(node.operand)
        if isinstance(node.op, ast.Not):
            return lambda scope: not truth(inner(scope))
        if isinstance(node.op, ast.USub):
            return lambda scope: -value if is_number(value := inner(scope)) else None
        raise self.refuse(node)

    def build_compare(self, node: ast.Compare) -> Step:
        steps = [self.step(node.left), *(self.step(right) for right in node.comparators)]
        tests = [comparison(op) for op in node.ops]

        def compare(scope: Scope) -> bool:
            left = steps[0](scope)
            for test, step in zip(tests, steps[1:], strict=True):
                right = step(scope)
                if not test(left, right):
                    return False
                left = right
            return True

        return compare

    def build_binop(self, node: ast.BinOp) -> Step:
        combine = MATHS.get(type(node.op))
        if combine is None:
            raise self.refuse(node)
        left, right = self.step(node.left), self.step(node.right)
        return lambda scope: combined(combine, left(scope), right(scope))

    def build_ifexp(self, node: ast.IfExp) -> Step:
        test, then, other = self.step(node.test), self.step(node.body), self.step(node.orelse)
        return lambda scope: then(scope) if truth(test(scope)) else other(scope)

    def build_list(self, node: ast.List | ast.Tuple) -> Step:
        steps = [self.step(value) for value in node.elts]
        return lambda scope: [step(scope) for step in steps]

    build_tuple = build_list

    def build_call(self, node: ast.Call) -> Step:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        if name not in ("len", "any", "all", "match") or node.keywords:
            raise self.refuse(node)
        wanted = 2 if name == "match" else 1
        if len(node.args) != wanted:
            raise self.refuse(node, f"{name}() with {len(node.args)} arguments")
        if name == "match":
            return self.matched(node)
        if name == "len":
            inner = self.step(node.args[0])
            return lambda scope: len(value) if isinstance(value := inner(scope), str | list | dict) else None
        values = self.each(node.args[0])
        test = any if name == "any" else all
        return lambda scope: test(map(truth, values(scope)))

    def matched(self, node: ast.Call) -> Step:
        pattern, text = node.args[0], self.step(node.args[1])
        if not isinstance(pattern, ast.Constant) or not isinstance(pattern.value, str):
            raise self.refuse(pattern, "a pattern that is not plain text")
        found = regex(pattern.value)
        return lambda scope: found.search(as_text(text(scope))) is not None

    def each(self, node: ast.AST) -> Step:
        """Return what gives the values any() and all() look at: a list, or ``TEST for x in LIST``."""
        if not isinstance(node, ast.GeneratorExp):
            inner = self.step(node)
            return lambda scope: elements(inner(scope))
        loop = node.generators[0]
        if len(node.generators) > 1 or loop.is_async or not isinstance(loop.target, ast.Name):
            raise self.refuse(node)
        source, name = self.step(loop.iter), loop.target.id
        self.names.append(name)
        keep = [self.step(test) for test in loop.ifs]
        value = self.step(node.elt)
        self.names.pop()

        def values(scope: Scope) -> list[Any]:
            inner = [(scope[0], {**scope[1], name: each}) for each in elements(source(scope))]
            return [value(one) for one in inner if all(truth(test(one)) for test in keep)]

        return values


def check_names(expr: Expr, known: Callable[[], Iterable[str]]) -> None:
    """Raise UsageError if an expression names a field that no event has; ``known`` are those of the run."""
    missing = expr.names - _OWN
    if missing and (missing := missing - set(names := [*known()])):
        name = min(missing)
        raise UsageError(f"no event has a field {name!r}", hint=_did_you_mean(name, [*names, *_OWN]))


def check_path(expr: Expr, event: Event) -> None:
    """Raise UsageError if an expression is a path, and an object on the way has no such key."""
    path, node = [], ast.parse(expr.text, mode="eval").body
    while isinstance(node, ast.Attribute | ast.Subscript):
        key = node.attr if isinstance(node, ast.Attribute) else getattr(node.slice, "value", None)
        path.append(key)
        node = node.value
    if not isinstance(node, ast.Name):
        return
    value: Any = event if node.id in _EVENT else field(event, node.id)
    for key in reversed(path):
        if isinstance(value, dict) and isinstance(key, str) and key not in value:
            raise UsageError(f"there is no {key!r} in it", hint=_did_you_mean(key, list(value)))
        value = item(value, key)


_OWN = (
    frozenset(
        {*(name for name in dir(Event) if not name.startswith("_")), *_ALIASES, *schema.RESERVED}
        | set("args result error content body usage tool_id stop_reason duration_ms model status".split())
    )
    - _NOT_VALUES
)
"""The names that every event has."""


def _did_you_mean(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 1, 0.6)
    there = ", ".join(sorted(set(names) - _NOT_SHOWN)[:12])
    return f"did you mean {near[0]}?" if near else f"there is {there}" if there else "it is empty"


_NOT_SHOWN = frozenset(name for name in dir(Event) if not name.startswith("_"))


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:99] + "…")


def _syntax_hint(text: str) -> str | None:
    if re.search(r"[^=!<>]=[^=]", text):
        return "== compares, = does not"
    return 'for instance: tool == "search" and duration_ms > 1000'


def _last(steps: list[Step], scope: Scope, *, stop_at: bool) -> Any:
    value = None
    for step in steps:
        value = step(scope)
        if truth(value) is stop_at:
            break
    return value
