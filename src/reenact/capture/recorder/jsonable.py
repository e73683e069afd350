"""Turn any Python value into something JSON can hold.

Used by the recorder for every field of every event, so it must always answer: it never raises
(a real Ctrl-C aside), never loops, never consumes an iterator, and never returns more than a bounded size.
"""

from __future__ import annotations

import sys

from ...lines import MAX_DEPTH, MAX_NODES, accelerate, dumps, dumps_if_plain, escape_key
from .. import guard
from ..import_lock import import_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_REPR = 4_000
"""Characters of a foreign object's repr that are kept."""
LARGE = 4_096
"""Characters of JSON from which the optional accelerator pays for its import."""
_SAFE_INT_BITS = 2_000
MAX_INT_DIGITS = 4_000
"""Below the interpreter's own limit for turning an int into text."""


def to_json(value: Any) -> str:
    """Return the compact JSON text of any value at all."""
    try:
        text = dumps_if_plain(value)
        if text is not None:
            if not _tried_accelerator and len(text) > LARGE:
                _try_accelerator()
            return text
    except (ValueError, TypeError, RecursionError, RuntimeError, MemoryError) as exc:
        guard.pass_on(exc)  # else NaN, a huge int, a dict resized by another thread: the careful way round
    return dumps(jsonable(value))


_tried_accelerator = False


def _try_accelerator() -> None:
    """Load orjson, if it is installed, once there is something large enough to be worth the import."""
    global _tried_accelerator
    _tried_accelerator = True
    with import_lock:
        accelerate()


def jsonable(value: Any) -> Any:
    """Return a fresh plain copy: dict, list, str, int, float, bool, None, with ``$`` keys doubled."""
    return _Copy().of(value, 0)


def frozen(plain: Any) -> Any:
    """Return our own containers around the same strings and numbers: what another thread does to the
    caller's from now on does not matter."""
    try:
        return _frozen(plain)
    except (RuntimeError, RecursionError) as exc:  # resized while we copied it
        guard.pass_on(exc)
        return jsonable(plain)


def _frozen(plain: Any) -> Any:
    if type(plain) is dict:
        return {key: item if type(item) is str else _frozen(item) for key, item in plain.items()}
    if type(plain) is list:
        return [item if type(item) is str else _frozen(item) for item in plain]
    return plain


class _Plain(dict[str, Any] if TYPE_CHECKING else dict):  # type: ignore[misc]
    """A dict that is jsonable already: made so once more, its ``$`` keys stay as they are."""


def snapshot(value: Any) -> Any:
    """Return a jsonable copy of a value that is recorded later, or as a part of another one."""
    return _as_plain(jsonable(value))


def _as_plain(plain: Any) -> Any:
    if type(plain) is dict:
        return _Plain({key: _as_plain(item) for key, item in plain.items()})
    return [_as_plain(item) for item in plain] if type(plain) is list else plain


class _Copy:
    """One walk over one value, with its budget of nodes and the containers it is inside of."""

    __slots__ = ("inside", "left")

    def __init__(self) -> None:
        self.left = MAX_NODES
        self.inside: set[int] = set()

    def of(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind is str or value is None or kind is bool:
            return value
        if kind is float:
            return _float(value)
        if kind is int:
            return _int(value)
        if self.left <= 0:
            return {"$cut": "size"}
        if depth >= MAX_DEPTH:
            return {"$cut": "depth"}
        mark = id(value)
        if mark in self.inside:
            return {"$cut": "cycle"}
        self.inside.add(mark)
        try:
            return self.container(value, depth)
        except KeyboardInterrupt:
            raise  # the user's own Ctrl-C must reach the agent
        except BaseException as exc:
            guard.pass_on(exc)
            return _foreign(value)
        finally:
            self.inside.discard(mark)

    def container(self, value: Any, depth: int) -> Any:
        """Copy a container or a subclass; what is neither is described."""
        # By the base type's own methods: a subclass may answer with anything, without end too.
        if isinstance(value, dict):
            return self.mapping(value, depth)
        if isinstance(value, list):
            return self.sequence(list.__getitem__(value, slice(None)), depth)
        if isinstance(value, tuple):
            return self.sequence(list(tuple.__iter__(value)), depth)
        if isinstance(value, set):
            return self.sequence(sorted(set.__iter__(value), key=_order), depth)
        if isinstance(value, frozenset):
            return self.sequence(sorted(frozenset.__iter__(value), key=_order), depth)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            return _int(int.__add__(value, 0))
        if isinstance(value, float):
            return _float(float.__add__(value, 0.0))
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _bytes(value)
        return self.known(value, depth)

    def mapping(self, value: dict[Any, Any], depth: int) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        # list() first: another thread may be adding keys.
        for key, item in self.within_budget(list(dict.items(value))):
            name = key if type(value) is _Plain else _key(key)
            while name in copy:
                name += f"'{len(copy)}"
            copy[name] = self.of(item, depth + 1)
        if len(copy) < dict.__len__(value):
            copy["$cut"] = "size"
        return copy

    def sequence(self, items: list[Any], depth: int) -> list[Any]:
        copy = [self.of(item, depth + 1) for item in self.within_budget(items)]
        if len(copy) < len(items):
            copy.append({"$cut": "size", "items": len(items)})
        return copy

    def within_budget(self, items: list[Any]) -> list[Any]:
        """Return as many items as may still be copied, and take them off the budget."""
        kept = items if len(items) <= self.left else items[: max(self.left, 0)]
        self.left -= len(kept)
        return kept

    def known(self, value: Any, depth: int) -> Any:
        """Objects whose own kind says how to write them; looked up on the type, as mocks claim everything."""
        kind = type(value)
        module = kind.__module__
        if module == "datetime" and hasattr(kind, "isoformat"):
            return value.isoformat()
        if module in ("uuid", "decimal", "fractions", "ipaddress"):
            return str(value)
        if hasattr(kind, "__fspath__"):
            return _text(value.__fspath__())
        if hasattr(kind, "__members__") or any(base.__name__ == "Enum" for base in kind.__mro__):
            return self.of(value.value, depth + 1)
        if hasattr(kind, "__array__"):  # a table or a tensor may be of any size; its repr is short
            return _foreign(value)
        for method in ("model_dump", "to_dict", "_asdict"):
            if callable(getattr(kind, method, None)):
                return self.of(getattr(value, method)(), depth + 1)
        if isinstance(getattr(kind, "__dataclass_fields__", None), dict):
            fields = sys.modules["dataclasses"].fields(value)  # not class variables, which that dict has too
            return self.mapping({each.name: getattr(value, each.name, None) for each in fields}, depth)
        if hasattr(kind, "keys") and hasattr(kind, "__getitem__") and module.startswith("collections"):
            return self.mapping({key: value[key] for key in list(value.keys())}, depth)
        return _foreign(value)


def _order(item: Any) -> tuple[str, str]:
    return (type(item).__name__, repr(item))


def _key(key: Any) -> str:
    """Spell a key as the json module would; anything else by its repr."""
    if isinstance(key, str):
        return escape_key(str.__str__(key))
    if key is True:
        return "true"
    if key is False:
        return "false"
    if key is None:
        return "null"
    if type(key) is int:
        text = _int(key)
        return int.__repr__(text) if type(text) is int else hex(key)
    if type(key) is float:
        return float.__repr__(key)
    return escape_key(_repr(key))


def _float(value: float) -> Any:
    if value != value:
        return {"$float": "nan"}
    if value in (float("inf"), float("-inf")):
        return {"$float": "inf" if value > 0 else "-inf"}
    return value


def _int(value: int) -> Any:
    bits = value.bit_length()
    if bits > _SAFE_INT_BITS:
        try:  # the interpreter's own limit may have been lowered
            if bits <= MAX_INT_DIGITS * 3 and int.__repr__(value):
                return value
        except ValueError as exc:
            guard.pass_on(exc)
        return {"$repr": hex(value)[:MAX_REPR], "type": "int"}
    return value


def _bytes(value: Any) -> dict[str, Any]:
    with import_lock:
        from binascii import b2a_base64

    data = bytes(value)
    return {"$bytes": b2a_base64(data, newline=False).decode("ascii"), "bytes": len(data)}


def _text(value: Any) -> str:
    return str.__str__(value) if isinstance(value, str) else repr(value)


def _repr(value: Any) -> str:
    try:
        text = repr(value)
        return str.__str__(text)[:MAX_REPR]
    except KeyboardInterrupt:
        raise
    except BaseException as exc:
        guard.pass_on(exc)
        return f"<{type(value).__name__} whose repr raised {type(exc).__name__}>"


def _foreign(value: Any) -> dict[str, Any]:
    """Describe an object we know nothing of."""
    kind = type(value)
    try:
        module = kind.__module__
        name = kind.__qualname__ if module == "builtins" else f"{module}.{kind.__qualname__}"
    except KeyboardInterrupt:
        raise
    except BaseException as exc:  # a metaclass may do anything
        guard.pass_on(exc)
        name = type.__dict__["__name__"].__get__(kind)
    return {"$repr": _repr(value), "type": str.__str__(name)}


def text_if_utf8(data: bytes | bytearray) -> Any:
    """Return bytes as text where they are text, as those of an error page; else the bytes."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data
