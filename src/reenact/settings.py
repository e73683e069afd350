"""The user's settings: ``reenact.toml``, or ``[tool.reenact]`` in ``pyproject.toml``.

The nearest one counts, looked for from the working directory upwards. Read at the desk and by
``reenact run``, never by what records inside a program.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any

from .errors import UsageError
from .schema import EFFECTS

_MAX_BYTES = 1 << 20
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


def run_settings() -> dict[str, Any]:
    """Return the defaults of ``reenact run``; folders as whole paths."""
    path, settings = nearest_settings()
    table = settings.get("run", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: run is not a table", hint='write for instance [run] name = "nightly"')
    for key, value in table.items():
        where = f"{path}: run.{key:.100}"
        if key not in _RUN:
            raise UsageError(f"{where} is not a setting", hint=f"known are {', '.join(_RUN)}")
        kind, called = _RUN[key]
        inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
        texts = [*inner, value] if isinstance(value, str) else inner
        fits = isinstance(value, kind) and value != "" and all(isinstance(each, str) for each in texts)
        fits = fits and not any("\0" in each for each in texts)  # no path, and no variable, holds one
        if fits and key == "seams":
            fits = all(each.startswith("-") for each in value)
        if not fits or (key in _CHOICES and value not in _CHOICES[key]):
            raise UsageError(f"{where} is {_short(value)}", hint=f"it is {called}")
    folders = {key: os.path.join(os.path.dirname(path), table[key]) for key in _FOLDERS if key in table}
    return {**table, **folders}


_TOOL_HINT = 'write for instance [tools] search = "read"; the words are ' + ", ".join(EFFECTS)


def tool_effects(folder: str | None = None) -> dict[str, str]:
    """Return what the user says that tools do: ``[tools] search = "read"``; a name may be a pattern.

    ``[effects]`` is the older name of the table.
    """
    path, settings = nearest_settings(folder)
    effects = {name: str(each["effect"]) for name, each in _tools(path, settings).items() if "effect" in each}
    table = settings.get("effects", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: effects is not a table", hint=_TOOL_HINT)
    for name, effect in table.items():
        if effect not in EFFECTS:
            raise UsageError(f"{path}: effects.{name:.100} is {_short(effect)}", hint=_TOOL_HINT)
    return {**table, **effects}


def tool_functions(folder: str | None = None) -> dict[str, str]:
    """Return the functions that the user names for tools, each ``module:qualname``:
    ``[tools] search = { function = "agent:find", effect = "read" }``."""
    tools = _tools(*nearest_settings(folder))
    return {name: str(each["function"]) for name, each in tools.items() if "function" in each}


def _tools(path: str, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return ``[tools]``, each tool as a table of ``effect`` and ``function``."""
    table = settings.get("tools", {})
    if not isinstance(table, dict):
        raise UsageError(f"{path}: tools is not a table", hint=_TOOL_HINT)
    tools = {}
    for name, value in table.items():
        tool = value if isinstance(value, dict) else {"effect": value}
        where, function = f"{path}: tools.{name:.100}", tool.get("function", "module:name")
        if not tool or tool.keys() - {"effect", "function"}:
            raise UsageError(f"{where} is {_short(value)}", hint=_TOOL_HINT)
        if tool.get("effect", EFFECTS[0]) not in EFFECTS:
            raise UsageError(f"{where} is {_short(tool['effect'])}", hint=_TOOL_HINT)
        if not isinstance(function, str) or not all(function.partition(":")):
            raise UsageError(f"{where}.function is {_short(function)}", hint='it is "module:function"')
        tools[name] = tool
    return tools


def diff_settings(folder: str | None = None) -> dict[str, list[str]]:
    """Return what comparisons ignore: ``[diff] ignore = ["tool.now.result"]`` and ``patterns``."""
    path, settings = nearest_settings(folder)
    table = settings.get("diff", {})
    hint = (
        'write for instance [diff] ignore = ["tool.get_price.result.fetched_at"]; the other key is patterns'
    )
    if not isinstance(table, dict):
        raise UsageError(f"{path}: diff is not a table", hint=hint)
    found: dict[str, list[str]] = {"ignore": [], "patterns": []}
    for key, value in table.items():
        if key not in found:
            raise UsageError(f"{path}: diff.{key:.100} is not a setting", hint=hint)
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise UsageError(f"{path}: diff.{key} is {_short(value)}", hint=hint)
        found[key] = value
    return found


def nearest_settings(folder: str | None = None) -> tuple[str, Mapping[str, Any]]:
    """Return the nearest settings and the file they stand in."""
    for each in _upwards(folder):
        path = os.path.join(each, "reenact.toml")
        if (data := _bytes(path)) is not None:
            return path, _parsed(path, data)
        path = os.path.join(each, "pyproject.toml")
        if (data := _bytes(path)) is not None and b"tool.reenact" in data:
            tools = _parsed(path, data).get("tool")
            settings = tools.get("reenact") if isinstance(tools, dict) else None
            if isinstance(settings, dict):
                return path, settings
    return "", {}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else text[:200] + "…"


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
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UsageError(f"{path} is a pipe or device, not a plain file")
            return file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as exc:
        raise UsageError(f"{path}: {exc.strerror or exc}") from exc


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe that came with a repository must not hold us up."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _parsed(path: str, data: bytes) -> dict[str, Any]:
    import tomllib

    if len(data) > _MAX_BYTES:
        raise UsageError(f"{path} is larger than {_MAX_BYTES:,} bytes")
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as exc:  # also a number of thousands of digits
        raise UsageError(f"{path} is not TOML: {exc}") from exc
