"""What a comparison ignores: paths and patterns from the user's settings, and paths that it proposes.

``[diff] ignore`` in ``reenact.toml`` has paths such as ``tool.get_price.result.fetched_at``: the step, its
part, and the place in it. ``*`` stands for one name or number, ``**`` for any. ``patterns`` has regular
expressions whose matches are ignored in every text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from ..errors import UsageError
from ..settings import diff_settings

_MASK = re.compile(r"(tool|event|model|input)\.(?:(.+?)\.)?(args|result|fields|settings|value)(?:\.(.+))?\Z")
_HINT = (
    "write for instance tool.get_price.result.fetched_at, event.plan.fields.at, model.*.settings.seed"
    " or input.value.started"
)
IGNORED = "<ignored>"
_MOST_TEXT = 4 << 20
"""Characters of a text that is read as JSON to find what is masked in it."""

Path = tuple[str, ...]


class Masks:
    """What is ignored in the values of steps."""

    def __init__(self, ignore: Sequence[str] = (), patterns: Sequence[str] = ()) -> None:
        self._masks = [_parsed(text) for text in ignore]
        self._patterns = [_compiled(text) for text in patterns]
        self._known: dict[tuple[str, str, str], list[Path]] = {}

    @classmethod
    def of_settings(cls, folder: str | None = None) -> Masks:
        """Return the masks that the nearest settings name."""
        found = diff_settings(folder)
        return cls(found["ignore"], found["patterns"])

    def with_paths(self, ignore: Sequence[str]) -> Masks:
        """Return these masks and more paths."""
        found = Masks(ignore)
        found._masks, found._patterns = [*self._masks, *found._masks], self._patterns
        return found

    def __bool__(self) -> bool:
        """True if anything is ignored."""
        return bool(self._masks or self._patterns)

    @property
    def has_patterns(self) -> bool:
        return bool(self._patterns)

    def text(self, text: str) -> str:
        """Return a text without what the patterns match."""
        for pattern in self._patterns:
            text = pattern.sub(IGNORED, text)
        return text

    def paths(self, kind: str, name: str, part: str) -> list[Path]:
        """Return the paths that are ignored in a part of a step."""
        if not self._masks:
            return []
        key = kind, name, part
        if key not in self._known:
            self._known[key] = [
                path for a, b, c, path in self._masks if a == kind and c == part and fnmatchcase(name, b)
            ]
        return self._known[key]

    def masked(self, value: Any, kind: str, name: str, part: str) -> Any:
        """Return a value without what its paths lead to; JSON in a text is read for that."""
        paths = self.paths(kind, name, part)
        if not paths:
            return value
        if () in paths:
            return IGNORED
        return _masked(from_json(value), paths)


def from_json(value: Any) -> Any:
    """Return the object or list that a text holds as JSON; any other value as it is."""
    if type(value) is not str or value[:1] not in ("{", "[") or len(value) > _MOST_TEXT:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _masked(value: Any, paths: list[Path], depth: int = 0) -> Any:
    if depth > 100 or type(value) not in (dict, list):
        return value
    items = value.items() if type(value) is dict else enumerate(value)
    found = {}
    for key, item in items:
        rest = [after for path in paths for after in _after(path, str(key))]
        found[key] = IGNORED if () in rest else _masked(item, rest, depth + 1) if rest else item
    return found if type(value) is dict else list(found.values())


def _after(path: Path, key: str) -> Iterable[Path]:
    """Yield what is left of a path behind a key; nothing if it does not lead there."""
    if path[:1] == ("**",):
        yield path
        yield from _after(path[1:], key)
    elif path and (path[0] == key or path[0] == "*"):
        yield path[1:]


def _parsed(text: str) -> tuple[str, str, str, Path]:
    found = _MASK.match(text)
    if found is None:
        raise UsageError(f"{text[:100]!r} is not a path to ignore", hint=_HINT)
    kind, name, part, rest = found.groups()
    return kind, name or "*", part, tuple(re.sub(r"\[(\d+|\*)\]", r".\1", rest).split(".")) if rest else ()


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as why:
        raise UsageError(f"{text[:100]!r} is not a pattern: {why}") from None


class Proposals:
    """Which paths differ every time: candidates for ``ignore``, never applied by themselves."""

    _LEAST = 2
    """Pairs of equal calls before a path counts as one that always differs."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], int] = {}
        self._differs: dict[tuple[str, str], dict[str, int]] = {}

    def add(self, name: str, part: str, paths: Iterable[str]) -> None:
        """Take in one pair of calls of a tool with equal arguments, and the places in which they differ."""
        key = name, part
        self._pairs[key] = self._pairs.get(key, 0) + 1
        often = self._differs.setdefault(key, {})
        for path in {re.sub(r"\[\d+\]", "[*]", path) for path in paths}:
            often[path] = often.get(path, 0) + 1

    def found(self) -> list[str]:
        """Return the masks that would hide what differs in every pair."""
        return [
            f"tool.{name}.{part}.{path.replace('[*]', '.*').removeprefix('.')}"
            for (name, part), often in self._differs.items()
            for path, much in often.items()
            if path and much == self._pairs[name, part] >= self._LEAST
        ]
