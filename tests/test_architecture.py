"""Imports point one way, importing does nothing, and capture stays as light as promised."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact

ROOT = Path(reenact.__file__).parent
ROOT_MODULES = {
    "schema", "lines", "errors", "totals", "protocols", "extras", "_version", "__init__", "__main__"
}  # fmt: skip
READING = {"recording", "tracefile", "wire", *ROOT_MODULES}
MAY_IMPORT = {
    "wire": {"wire", *ROOT_MODULES},
    "capture": {"capture", "wire", *ROOT_MODULES},
    "supervise": {"supervise", "capture", "playback", *ROOT_MODULES},
    "tracefile": {"tracefile", "wire", *ROOT_MODULES},
    "money": {"money", "settings", *READING},
    "prices": {"money"},  # the public door of money
    "recording": READING,
    "stats": {"stats", "money", *READING},
    "debugger": {"debugger", "stats", "money", *READING},
    "messages": {"messages", *READING},
    "playback": {"playback", "messages", "money", "capture", "supervise", *READING},
    "testing": {"testing", "debugger", "money", "playback", "messages", "capture", "supervise", "stats", *READING},
    "pytest_plugin": {"testing", "playback", *ROOT_MODULES},
    "testgen": {"testgen", "money", "testing", "debugger", "playback", "messages", "capture", *READING},
    "demo": {"demo", *ROOT_MODULES},
    "cli": {
        "cli", "demo", "testgen", "testing", "playback", "messages", "debugger", "stats", "capture", "supervise",
        "money", "settings", *READING,
    },
    "totals": {"wire", *ROOT_MODULES},  # for usage objects in a provider's own spelling, on demand
    "root": ROOT_MODULES,
}  # fmt: skip
"""What each room may import, at the top of a file or inside a function."""
LAZY_EXPORTS = "__init__.py"
FILES = sorted(path for path in ROOT.rglob("*.py"))


def room(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    if len(parts) > 1:
        return parts[0]
    return path.stem if path.stem in MAY_IMPORT else "root"


def imported_rooms(path: Path) -> set[str]:
    """The rooms of reenact a file imports from, wherever in the file."""
    package = ("reenact", *path.relative_to(ROOT).parts[:-1])
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            names = [*base, *(node.module or "").split(".")] if node.module else list(base)
            if names[:1] == ["reenact"]:
                found |= {names[1]} if len(names) > 1 and names[1] else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("reenact.")}
    return found


def offenders(wrong: Callable[[Path], set[str]]) -> dict[str, set[str]]:
    """Return what is wrong with each file, for the files with something wrong."""
    return {str(path.relative_to(ROOT)): found for path in FILES if (found := wrong(path))}


def test_imports_point_down_the_layers() -> None:
    public = set(reenact.__all__) | {"__version__"}

    def forbidden(path: Path) -> set[str]:
        if path.name == LAZY_EXPORTS and room(path) == "root":
            return set()  # the export list names every room, on first use only
        if path.name == "__main__.py":
            return set()
        return imported_rooms(path) - MAY_IMPORT[room(path)] - public

    assert offenders(forbidden) == {}


def test_no_third_party_import_at_the_top_of_a_file() -> None:
    def third_party(path: Path) -> set[str]:
        found = set()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
        pytest_is_there = {"pytest"} if path.name == "pytest_plugin.py" else set()
        return found - sys.stdlib_module_names - {"reenact"} - pytest_is_there

    assert offenders(third_party) == {}


def test_no_module_bears_the_name_of_an_exported_function() -> None:
    modules = {path.stem for path in ROOT.glob("*.py")} | {
        path.name for path in ROOT.iterdir() if path.is_dir()
    }
    assert modules & set(reenact.__all__) == set()


def test_the_export_list_is_complete_and_resolves() -> None:
    assert sorted(reenact.__all__) == sorted(set(reenact._HOME) - {"__version__"})
    hints = ast.parse((ROOT / "__init__.py").read_text())
    typed = {
        alias.asname
        for block in hints.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == set(reenact._HOME)
    for name in reenact.__all__:
        assert getattr(reenact, name).__name__ == name
    assert set(reenact.__all__) <= set(dir(reenact))
    with pytest.raises(AttributeError, match="nonsense"):
        reenact.nonsense  # noqa: B018


def isolated(code: str) -> list[str]:
    """Run code in a bare interpreter and return what it prints."""
    start = f"import sys; sys.path.insert(0, {str(ROOT.parent)!r}); before = set(sys.modules); "
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", start + code], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_importing_the_package_loads_one_module() -> None:
    assert isolated("import reenact; print(*(set(sys.modules) - before))") == ["reenact"]


def test_capture_loads_ten_stdlib_modules_at_most_and_no_heavy_one() -> None:
    new = isolated("from reenact import Trace; print(*(set(sys.modules) - before))")
    stdlib = {name for name in new if not name.startswith("reenact")}
    assert len(stdlib) <= 10, stdlib
    assert not stdlib & {"re", "json", "threading", "pathlib", "dataclasses", "typing", "asyncio", "logging"}
    assert not {name for name in new if name.startswith(("reenact.tracefile", "reenact.cli"))}


def test_a_first_event_loads_no_heavy_module_either(tmp_path: Path) -> None:
    path = str(tmp_path / "run.jsonl")
    new = isolated(
        f"from reenact import Trace; t = Trace({path!r}); t.step('note', a=1); print(*(set(sys.modules) - before))"
    )
    assert not set(new) & {
        "re",
        "json",
        "threading",
        "pathlib",
        "dataclasses",
        "typing",
        "asyncio",
        "logging",
    }


def test_importing_starts_nothing(tmp_path: Path) -> None:
    names = ", ".join(reenact.__all__)
    code = (
        "import sys, os, threading, atexit; hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook);"
        f"from reenact import {names};"
        "assert threading.active_count() == 1; assert os.listdir('.') == [];"
        "assert hooks == (sys.excepthook, sys.unraisablehook, threading.excepthook)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
