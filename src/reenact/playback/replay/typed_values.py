"""Convert recorded JSON values to the types that the agent's code declares.

A recording holds JSON: a tuple is a list there, a dataclass an object, a date a text. The annotation of the
parameter or of the function that returned it gives the type. Only annotations of loaded code are used;
nothing is imported or created because a recording names it.
"""

from __future__ import annotations

import binascii
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
import sys
import types
import typing
import uuid
from collections import abc
from collections.abc import Callable, Iterable
from typing import Any

from ...lines import is_mark

# Stand-ins for values that a recording holds only in part.

_MAX_DEPTH = 200


class StandIn:
    """Stands for a value that is not recorded completely; its ``repr`` shows what is known."""

    def __init__(self, mark: dict[str, Any]) -> None:
        self.mark = mark
        """The mark in the recording (docs/format.md)."""

    def __repr__(self) -> str:
        text = self.mark.get("$repr")
        return text if type(text) is str else f"<not recorded: {self.mark}>"


def with_stand_ins(value: Any, depth: int = 0) -> Any:
    """Return a value with a StandIn for every part that is not recorded."""
    if type(value) is dict:
        if any(is_mark(str(key)) for key in value):
            return StandIn(value)
        return (
            {key: with_stand_ins(item, depth + 1) for key, item in value.items()}
            if depth < _MAX_DEPTH
            else value
        )
    if type(value) is list and depth < _MAX_DEPTH:
        return [with_stand_ins(item, depth + 1) for item in value]
    return value


_FROM_TEXT: tuple[type, ...] = (
    uuid.UUID, decimal.Decimal, fractions.Fraction, pathlib.PurePath,
    ipaddress.IPv4Address, ipaddress.IPv4Network, ipaddress.IPv4Interface,
    ipaddress.IPv6Address, ipaddress.IPv6Network, ipaddress.IPv6Interface,
)  # fmt: skip
_MOMENTS = (datetime.datetime, datetime.date, datetime.time)
_LISTS = (list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable, abc.Reversible)
_SETS = {set: set, frozenset: frozenset, abc.Set: set, abc.MutableSet: set}
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping, collections.OrderedDict)
_YIELDING = (
    abc.Iterator,
    abc.Iterable,
    abc.AsyncIterator,
    abc.AsyncIterable,
    abc.Generator,
    abc.AsyncGenerator,
)
_ANYTHING = (Any, object, None)


class _Unfit(Exception):
    """A value is not what the annotation says."""


def as_annotated(value: Any, hint: Any) -> tuple[Any, bool]:
    """Return the value converted to an annotation and True, or the value as it was and False."""
    try:
        return _converted(value, hint), True
    except Exception:  # a constructor of the agent may raise anything
        return value, False


def hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a function, without those that only a type checker can resolve."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception:
        return _hints_one_by_one(
            getattr(function, "__annotations__", {}), getattr(function, "__globals__", {})
        )


def yielded(hint: Any) -> tuple[Any, Any]:
    """Return the annotations of the items and of the return value of a generator."""
    parameters = typing.get_args(hint)
    if typing.get_origin(hint) not in _YIELDING or not parameters:
        return Any, Any
    return parameters[0], parameters[2] if len(parameters) == 3 else Any


def _hints_one_by_one(annotations: Any, known: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, annotation in dict(annotations).items():
        try:
            holder = type("holder", (), {"__annotations__": {name: annotation}})
            found[name] = typing.get_type_hints(holder, globalns=known, include_extras=True)[name]
        except Exception:
            continue
    return found


def _converted(value: Any, hint: Any) -> Any:
    """Return the value converted to an annotation; raise if it does not fit."""
    hint = _plain(hint)
    if isinstance(value, StandIn):
        return value
    if hint is None or hint is types.NoneType:
        return _if(value is None, value)
    if hint in _ANYTHING or isinstance(hint, typing.TypeVar | str | typing.ForwardRef):
        return value
    origin, parameters = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _one_of(value, parameters)
    if origin is typing.Literal:
        return _literal(value, parameters)
    if not isinstance(origin, type):
        raise _Unfit(hint)
    if origin is bytes or origin is bytearray:
        return origin(_bytes(value))
    container = _container(value, origin, parameters)
    if container is not None:
        return container[0]
    return _object(value, origin)


def _plain(hint: Any) -> Any:
    """Return an annotation without wrappers such as Annotated or NewType."""
    while True:
        if typing.get_origin(hint) in (typing.Annotated, typing.Required, typing.NotRequired, typing.Final):
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):  # typing.NewType
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        else:
            return hint


def _if(fits: bool, value: Any) -> Any:
    if not fits:
        raise _Unfit
    return value


def _one_of(value: Any, hints: tuple[Any, ...]) -> Any:
    """Return the value as the union member of its exact type, else as the first that fits."""
    hints = tuple(_plain(hint) for hint in hints)
    exact = [hint for hint in hints if type(value) is (types.NoneType if hint is None else hint)]
    named = sorted((hint for hint in hints if hint not in exact), key=lambda hint: not _has_keys(hint, value))
    for hint in [*exact, *named]:
        try:
            return _converted(value, hint)
        except Exception:
            continue
    raise _Unfit


def _has_keys(hint: Any, value: Any) -> bool:
    """True if the fields of a class are exactly the keys of the value."""
    fields = getattr(hint, "__dataclass_fields__", None) or getattr(hint, "model_fields", None)
    return type(value) is dict and isinstance(fields, dict) and fields.keys() == value.keys()


def _literal(value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        plain = choice.value if isinstance(choice, enum.Enum) else choice
        if type(plain) is type(value) and plain == value:
            return choice
    raise _Unfit


def _bytes(value: Any) -> bytes:
    if type(value) is dict and type(value.get("$bytes")) is str:
        return binascii.a2b_base64(value["$bytes"])
    return bytes(_if(type(value) is bytes, value))


def _container(value: Any, origin: type, parameters: tuple[Any, ...]) -> tuple[Any] | None:
    """Return a list, tuple, set or mapping in a tuple of one; None for any other annotation."""
    if origin is tuple:
        return (_tuple(_list(value), parameters),)
    if origin in _LISTS:
        return ([_converted(item, parameters[0] if parameters else Any) for item in _list(value)],)
    if origin in _SETS:
        return (
            _SETS[origin](_converted(item, parameters[0] if parameters else Any) for item in _list(value)),
        )
    if origin in _MAPPINGS:
        key, item = parameters if len(parameters) == 2 else (Any, Any)
        items = {_key(name, key): _converted(each, item) for name, each in _dict(value).items()}
        return (collections.OrderedDict(items) if origin is collections.OrderedDict else items,)
    if typing.is_typeddict(origin):
        hints = typing.get_type_hints(origin, include_extras=True)
        return ({name: _converted(each, hints.get(name, Any)) for name, each in _dict(value).items()},)
    return None


def _list(value: Any) -> Iterable[Any]:
    items: Iterable[Any] = _if(type(value) is list, value)
    return items


def _dict(value: Any) -> dict[str, Any]:
    items: dict[str, Any] = _if(type(value) is dict and not any(map(is_mark, map(str, value))), value)
    return items


def _tuple(items: Iterable[Any], parameters: tuple[Any, ...]) -> tuple[Any, ...]:
    if not parameters:
        return tuple(items)
    if len(parameters) == 2 and parameters[1] is Ellipsis:
        return tuple(_converted(item, parameters[0]) for item in items)
    return tuple(_converted(item, hint) for item, hint in zip(items, parameters, strict=True))


def _key(name: str, hint: Any) -> Any:
    """Return a key of a mapping: a number is recorded as its text."""
    hint = _plain(hint)
    if hint is int or hint is float:
        return hint(name)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return next(member for member in hint if name in (str(member.value), repr(member)))
    return _converted(name, hint)


def _object(value: Any, kind: Any) -> Any:
    """Return an instance of a class that is not a container."""
    if issubclass(kind, enum.Enum):
        return next(member for member in kind if _same(member.value, value))
    if kind in (str, int, bool):
        return _if(type(value) is kind, value)
    if kind is float:
        return _if(type(value) in (int, float), value)
    if issubclass(kind, _MOMENTS):
        return kind.fromisoformat(_if(type(value) is str, value))
    if issubclass(kind, _FROM_TEXT):
        return kind(_if(type(value) is str, value))
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind, include_extras=True)
        items = zip(kind._fields, _list(value), strict=True)
        return kind(*[_converted(item, hints.get(name, Any)) for name, item in items])
    if dataclasses.is_dataclass(kind):
        return _dataclass(_dict(value), kind)
    if "pydantic" in sys.modules and hasattr(kind, "__pydantic_validator__"):
        return _model(value, kind)
    if issubclass(kind, str | int | float):
        return kind(_if(isinstance(value, str | int | float), value))
    if callable(getattr(kind, "from_dict", None)):
        return kind.from_dict(_dict(value))
    raise _Unfit


def _same(own: Any, recorded: Any) -> bool:
    if isinstance(own, tuple):
        own = list(own)
    return type(own) is type(recorded) and bool(own == recorded)


def _dataclass(value: dict[str, Any], kind: Any) -> Any:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {each.name: each for each in dataclasses.fields(kind)}
    _if(value.keys() <= fields.keys(), value)
    values = {name: _converted(item, hints.get(name, Any)) for name, item in value.items()}
    instance = kind(**{name: item for name, item in values.items() if fields[name].init})
    for name, item in values.items():
        if not fields[name].init:
            object.__setattr__(instance, name, item)
    return instance


def _model(value: Any, kind: Any) -> Any:
    """Return a pydantic model; the recording has field names, which the model may accept only as aliases."""
    try:
        return kind.model_validate(value)
    except Exception:
        return kind.model_validate(value, by_name=True)
