"""The user's settings: ``reenact.toml``, or ``[tool.reenact]`` in ``pyproject.toml``.

The nearest one counts, looked for from the working directory upwards. Read at the desk and by
``reenact run``, never by what records inside a program.
"""

from __future__ import annotations

import os

from .errors import UsageError
from .schema import EFFECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_MAX_BYTES = 1 << 20
_PRICES = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cache_read": "cache_read_tokens",
    "cache_write": "cache_write_tokens",
    "cache_write_1h": "cache_write_1h_tokens",
    "reasoning": "output_reasoning_tokens",
}
_EXAMPLE = 'write for instance [prices."my-model*"] input = 0.5, output = 1.5 (US dollars per million tokens)'


_RUN = {
    "out": (str, "a folder"),
    "name": (str, "a name"),
    "tags": (dict, 'a table of texts, as { env = "dev" }'),
    "hosts": (list, 'a list of names, as ["llm.example.com"]'),
    "record_http": (str, '"models" or "all"'),
    "seams": (list, 'a list of what to leave out, as ["-aiohttp"]'),
    "content": (str, '"full", "hash" or "none"'),
    "workspace": (str, "a folder"),
    "ambient": (list, 'a list of modules, as ["my_agent", "__main__"]'),
    "strict_coverage": (bool, "true or false"),
}
"""What ``[run]`` may hold: its type, and what it is called."""
_FOLDERS = ("out", "workspace")
"""Told from where the settings stand."""
_CHOICES = {"record_http": ("models", "all"), "content": ("full", "hash", "none")}


class OwnPrice:
    """One ``[prices."pattern"]`` table."""

    __slots__ = ("pattern", "provider", "rates")

    def __init__(self, pattern: str, provider: str | None, rates: dict[str, str]) -> None:
        self.pattern = pattern.lower()
        self.provider = provider.lower() if provider else None
        self.rates = rates

    def fits(self, model: str, providers: tuple[str | None, ...]) -> bool:
        """True for a model of this name, at this provider if one is named."""
        from fnmatch import fnmatchcase

        return fnmatchcase(model.lower(), self.pattern) and self.provider in (None, *providers)


def own_prices(folder: str | None = None) -> list[OwnPrice]:
    """Return the prices the user wrote down, exact names first, then in the order of the file."""
    path, settings = _settings(folder)
    tables = settings.get("prices", {})
    if not isinstance(tables, dict):
        raise UsageError(f"{path}: prices is not a table", hint=_EXAMPLE)
    found = [_own_price(path, pattern, table) for pattern, table in tables.items()]
    return sorted(found, key=lambda own: any(sign in own.pattern for sign in "*?["))


def _own_price(path: str, pattern: str, table: Any) -> OwnPrice:
    where = f'{path}: prices."{pattern}"'
    if not isinstance(table, dict):
        raise UsageError(f"{where} is not a table", hint=_EXAMPLE)
    provider, rates = None, {}
    for key, value in table.items():
        if key == "provider":
            if not isinstance(value, str) or not value:
                raise UsageError(f"{where}.provider is {value!r}, not a name", hint=_EXAMPLE)
            provider = value
        elif key == "currency" and value == "USD":
            continue
        elif key == "currency":
            raise UsageError(f"{where}.currency is {value!r}; only USD is known", hint=_EXAMPLE)
        elif key in _PRICES:
            rates[_PRICES[key]] = _rate(f"{where}.{key}", value)
        else:
            known = ", ".join([*_PRICES, "provider", "currency"])
            raise UsageError(f"{where}.{key} is not a setting", hint=f"known are {known}")
    for key in ("input", "output"):
        if _PRICES[key] not in rates:
            raise UsageError(f"{where} has no {key} price", hint=_EXAMPLE)
    if "cache_write_1h_tokens" in rates:
        rates.setdefault("cache_write_tokens", rates["input_tokens"])
    return OwnPrice(pattern, provider, rates)


def _rate(where: str, value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not 0 <= value < 1e9:  # also no nan
        raise UsageError(f"{where} is {value!r}, not a price", hint=_EXAMPLE)
    return repr(value)


def run_settings(folder: str | None = None) -> dict[str, Any]:
    """Return what ``reenact run`` is to do unless it is told otherwise; folders as whole paths."""
    path, settings = _settings(folder)
    table = settings.get("run", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: run is not a table", hint='write for instance [run] name = "nightly"')
    for key, value in table.items():
        where = f"{path}: run.{key}"
        if key not in _RUN:
            raise UsageError(f"{where} is not a setting", hint=f"known are {', '.join(_RUN)}")
        kind, called = _RUN[key]
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        fits = isinstance(value, kind) and value != "" and all(isinstance(each, str) for each in inner)
        if fits and key == "seams":
            fits = all(each.startswith("-") for each in value)
        if not fits or (key in _CHOICES and value not in _CHOICES[key]):
            raise UsageError(f"{where} is {value!r}", hint=f"it is {called}")
    folders = {key: os.path.join(os.path.dirname(path), table[key]) for key in _FOLDERS if key in table}
    return {**table, **folders}


def tool_effects(folder: str | None = None) -> dict[str, str]:
    """Return what the user says of tools: ``[effects] search = "read"``; a name may be a pattern."""
    path, settings = _settings(folder)
    table = settings.get("effects", {})
    hint = 'write for instance [effects] search = "read"; the words are ' + ", ".join(EFFECTS)
    if not isinstance(table, dict):
        raise UsageError(f"{path}: effects is not a table", hint=hint)
    for name, effect in table.items():
        if effect not in EFFECTS:
            raise UsageError(f"{path}: effects.{name} is {effect!r}", hint=hint)
    return dict(table)


def _settings(folder: str | None) -> tuple[str, Mapping[str, Any]]:
    """Return the nearest settings and the file they stand in."""
    for each in _upwards(folder):
        path = os.path.join(each, "reenact.toml")
        if (data := _bytes(path)) is not None:
            return path, _parsed(path, data)
        path = os.path.join(each, "pyproject.toml")
        if (data := _bytes(path)) is not None and b"tool.reenact" in data:
            settings = _parsed(path, data).get("tool", {}).get("reenact")
            if isinstance(settings, dict):
                return path, settings
    return "", {}


def _upwards(folder: str | None) -> Iterator[str]:
    try:
        each = os.path.abspath(folder or os.getcwd())
    except OSError:  # the working directory is gone
        return
    while True:
        yield each
        above = os.path.dirname(each)
        if above == each:
            return
        each = above


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror or exc}") from exc


def _parsed(path: str, data: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as exc:
        raise UsageError(f"{path} is not TOML: {exc}") from exc
