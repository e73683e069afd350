"""A value against a JSON schema: the part of the standard that tools and structured outputs use.

By hand, since the check must work where nothing is installed: types, required and unknown properties, enums,
numbers' bounds, items, ``anyOf`` and its like, references inside the schema. A keyword that is not known is
not checked. Pure; neither an odd schema nor an odd value raises.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import ge, gt, le, lt
from typing import Any

from .json_values import as_json, mapping

_MAX_DEPTH = 32
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def violations(value: Any, schema: Any) -> list[str]:
    """Return what is wrong with a value, in the order of its parts; empty if it fits the schema.

    >>> number = {"n": {"type": "integer"}}
    >>> violations({"n": "3"}, {"type": "object", "properties": number, "required": ["n", "q"]})
    ['q is missing', 'n is "3", not of type integer']
    """
    return list(_check(value, mapping(schema), mapping(schema), "", _MAX_DEPTH))


def _check(value: Any, schema: dict[str, Any], root: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    schema = _resolved(schema, root)
    if depth == 0 or not schema or (value is None and schema.get("nullable") is True):
        return
    kinds = _kinds(schema)
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        yield f"{path or 'the value'} is {_short(value)}, not of type {' or '.join(kinds)}"
        return
    options = schema.get("enum")
    if "const" in schema:
        options = [schema["const"]]
    if isinstance(options, list) and options and value not in options:
        yield f"{path or 'the value'} is {_short(value)}, not one of {_short(options)}"
    yield from _bounds(value, schema, path or "the value")
    if isinstance(value, dict):
        yield from _properties(value, schema, root, path, depth)
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        for number, each in enumerate(value[:1000]):
            yield from _check(each, items, root, f"{path}[{number}]", depth - 1)
    every = schema.get("allOf")
    for each in every if isinstance(every, list) else ():
        yield from _check(value, mapping(each), root, path, depth - 1)
    for name in ("anyOf", "oneOf"):
        choices = schema.get(name)
        if isinstance(choices, list) and choices:
            found = [list(_check(value, mapping(each), root, path, depth - 1)) for each in choices[:50]]
            if all(found):
                yield min(found, key=len)[0]


def _properties(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], path: str, depth: int
) -> Iterator[str]:
    known = mapping(schema.get("properties"))
    before = f"{path}." if path else ""
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in value:
            yield f"{before}{name} is missing"
    more = schema.get("additionalProperties")
    for name, each in list(value.items())[:1000]:
        if name in known:
            yield from _check(each, mapping(known[name]), root, f"{before}{name}", depth - 1)
        elif isinstance(more, dict):
            yield from _check(each, more, root, f"{before}{name}", depth - 1)
        elif known and more is not True and "patternProperties" not in schema:
            yield f"{before}{name} is not a property of it"


def _bounds(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for name, words, is_wrong in _LIMITS:
            bound = schema.get(name)
            if isinstance(bound, int | float) and not isinstance(bound, bool) and is_wrong(value, bound):
                yield f"{path} is {value}, {words} {bound}"
    size = len(value) if isinstance(value, str | list) else None
    least, most = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
    if size is not None and isinstance(schema.get(least), int) and size < schema[least]:
        yield f"{path} has a length of {size}, less than {schema[least]}"
    if size is not None and isinstance(schema.get(most), int) and size > schema[most]:
        yield f"{path} has a length of {size}, more than {schema[most]}"
    form = schema.get("format")
    shape = _FORMATS.get(form) if isinstance(form, str) else None
    if shape is not None and isinstance(value, str) and shape.match(value) is None:
        yield f"{path} is {_short(value)}, not of the format {form}"


_LIMITS: tuple[tuple[str, str, Callable[[Any, Any], bool]], ...] = (
    ("minimum", "less than", lt),
    ("maximum", "more than", gt),
    ("exclusiveMinimum", "not more than", le),
    ("exclusiveMaximum", "not less than", ge),
)
_FORMATS = {
    "date": re.compile(r"\d{4}-\d\d-\d\d\Z"),
    "date-time": re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d"),
    "email": re.compile(r"[^@\s]+@[^@\s]+\Z"),
    "uuid": re.compile(r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}\Z"),
}
"""Patterns of a schema are not tried: a regular expression from a trace may take for ever."""


def _resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Follow a reference to a definition in the same schema; one that leads nowhere fits everything."""
    for _ in range(_MAX_DEPTH):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found: Any = root
        for name in (
            reference.removeprefix("#").strip("/").split("/") if reference.startswith("#/") else ("?",)
        ):
            found = mapping(found).get(name)
        schema = mapping(found)
    return {}


def _kinds(schema: dict[str, Any]) -> list[str]:
    """Return the types that a schema allows; Gemini writes them in capitals."""
    kind = schema.get("type")
    named = kind if isinstance(kind, list) else [kind]
    kinds = [each.lower() for each in named if isinstance(each, str)]
    return kinds if all(each in _TYPES for each in kinds) else []


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _short(value: Any) -> str:
    text = as_json(value)
    return text if len(text) <= 60 else text[:59] + "…"
