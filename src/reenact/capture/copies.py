"""Our own copies of JSON values: cheap to compare with the caller's, and exact.

Used by History. Containers are copied, strings shared. ``==`` of Python takes 1, 1.0 and True for equal,
JSON does not, so numbers are wrapped.
"""

from __future__ import annotations

from ..lines import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Copy: TypeAlias = Any
    Change: TypeAlias = tuple[list[str], dict[str, Any]]
else:
    Copy = object

MAX_CHANGES = 6
MAX_SET_BYTES = 400
"""A change larger than this is not small; the element is then written in full."""


class Exact:
    """A number that equals only the same number of the same type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        mine = self.value
        if type(other) is Exact:
            other = other.value
        return type(other) is type(mine) and (other is mine or str(other) == str(mine))

    __hash__ = None  # type: ignore[assignment]


def copy_of(plain: Any) -> Copy:
    """Copy a plain value; strings stay the caller's own objects, as they cannot change."""
    kind = type(plain)
    if kind is str or plain is None:
        return plain
    if kind is dict:
        return {key: item if type(item) is str else copy_of(item) for key, item in plain.items()}
    if kind is list:
        return [item if type(item) is str else copy_of(item) for item in plain]
    return Exact(plain)


def plain_of(copy: Any) -> Any:
    """Turn a copy back into the plain value."""
    kind = type(copy)
    if kind is dict:
        return {key: plain_of(item) for key, item in copy.items()}
    if kind is list:
        return [plain_of(item) for item in copy]
    return copy.value if kind is Exact else copy


def small_change(before: Copy, after: Any) -> Change | None:
    """Return ``(drop, set)`` by JSON pointer that turns a copy into a plain value, None if it is not small.

    Applied in that order they give the value's keys in the value's own order too, so that both have
    the same text.
    """
    drop: list[str] = []
    put: dict[str, Any] = {}
    if not _compare(before, after, "", drop, put) or not (drop or put):
        return None
    return (drop, put) if len(dumps(put)) <= MAX_SET_BYTES else None


def _compare(before: Any, after: Any, at: str, drop: list[str], put: dict[str, Any]) -> bool:
    if len(drop) + len(put) > MAX_CHANGES:
        return False
    if after == before:
        return True
    kind = type(before)
    if kind is dict and type(after) is dict:
        kept = [key for key in before if key in after]
        if [*kept, *(key for key in after if key not in before)] != list(after):
            return False  # the keys stand in another order
        drop += [f"{at}/{_escape(key)}" for key in before if key not in after]
        for key, item in after.items():
            here = f"{at}/{_escape(key)}"
            if key not in before:
                put[here] = item
            elif not _compare(before[key], item, here, drop, put):
                return False
        return True
    if kind is list and type(after) is list and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return all(_compare(old, new, f"{at}/{index}", drop, put) for index, (old, new) in pairs)
    if not at:
        return False
    put[at] = after
    return True


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
