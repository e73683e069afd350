"""Imports point one way, importing does nothing, and capture stays as light as promised."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import reenact
from support.source_tree import Tree

ROOT = Path(reenact.__file__).parent
ROOT_MODULES = {
    "schema", "lines", "errors", "totals", "extras", "shown", "_version", "__init__", "__main__"
}  # fmt: skip
READING = {"recording", "tracefile", "wire", *ROOT_MODULES}
MAY_IMPORT = {
    "wire": {"wire", *ROOT_MODULES},
    "capture": {"capture", "wire", *ROOT_MODULES},
    "supervise": {"supervise", "capture", "playback", "tracefile", "wire", *ROOT_MODULES},
    "tracefile": {"tracefile", "wire", *ROOT_MODULES},
    "money": {"money", "settings", *READING},
    "prices": {"money"},  # the public door of money
    "recording": READING,
    "compare": {"compare", "settings", *READING},
    "pages": {"pages", "compare", "debugger", "money", *READING},
    "viewer": {"viewer", "pages", "debugger", "compare", "stats", "money", *READING},
    "stats": {"stats", "money", *READING},
    "explain": {"explain", *READING},
    "debugger": {"debugger", "compare", "explain", "stats", "money", *READING},
    "messages": {"messages", *READING},
    "playback": {"playback", "messages", "money", "settings", "capture", "supervise", *READING},
    "testing": {"testing", "debugger", "money", "playback", "messages", "capture", "supervise", "stats", *READING},
    "pytest_plugin": {"testing", "playback", *ROOT_MODULES},
    "testgen": {"testgen", "money", "testing", "debugger", "playback", "messages", "capture", *READING},
    "demo": {"demo", *ROOT_MODULES},
    "cli": {
        "cli", "demo", "testgen", "testing", "playback", "messages", "debugger", "compare", "explain", "stats",
        "capture", "supervise", "pages", "viewer",
        "money", "settings", *READING,
    },
    "totals": {"wire", *ROOT_MODULES},  # for usage objects in a provider's own spelling, on demand
    "root": ROOT_MODULES,
}  # fmt: skip
"""What each room may import, at the top of a file or inside a function."""
LOADED_BEFORE = {
    "pytest_plugin": {"pytest"},
    "cli.tui": {"rich", "textual"},
    "viewer": {"starlette", "uvicorn"},
}
"""Rooms that are imported only where these libraries are installed."""
ROOT_ORDER = {
    "schema": set(),
    "errors": set(),
    "lines": {"schema"},
    "totals": {"schema", "lines", "wire"},
    "extras": {"errors"},
    "shown": set(),
}


@functools.cache
def tree() -> Tree:
    return Tree(ROOT)


def room(module: str) -> str:
    first = module.split(".")[0]
    return first if first in MAY_IMPORT else "root"


def wrong_layers(tree: Tree) -> dict[str, set[str]]:
    """Modules that import a room above theirs, or public names from the package root."""
    found = {}
    for name, imports in tree.imports.items():
        if name in ("", "__main__"):
            continue  # the list of exports names every room, on first use only
        allowed = MAY_IMPORT[room(name)]
        bad = {module for module in imports if module and module.split(".")[0] not in allowed}
        bad |= {f"reenact.{each}" for each in imports.get("", set()) - {"__version__"}}
        if bad:
            found[name] = bad
    return found


def root_modules_beyond_their_order(tree: Tree) -> dict[str, set[str]]:
    """The root modules have an order, too: the bytes of a line know nothing of totals."""
    return {
        name: bad
        for name, allowed in ROOT_ORDER.items()
        if (bad := {module.split(".")[0] for module in tree.imports[name]} - allowed)
    }


def imports_by_string(tree: Tree) -> dict[str, set[str]]:
    """``import_module("reenact…")`` and its like, which no other rule would see."""
    found: dict[str, set[str]] = {}
    for name, nodes in tree.nodes.items():
        if name in ("", "cli.main"):
            continue  # the root's lazy names, and the table of commands
        for node in nodes:
            if (
                isinstance(node, ast.Call)
                and node.args
                and call_name(node) in ("import_module", "__import__")
            ):
                text = ast.unparse(node.args[0]).lstrip("frb").strip("'\"")
                if text.startswith((".", "reenact")):
                    found.setdefault(name, set()).add(ast.unparse(node))
    return found


def call_name(node: ast.Call) -> str:
    return getattr(node.func, "id", "") or getattr(node.func, "attr", "")


def prints(tree: Tree) -> dict[str, set[str]]:
    """Only commands print; an entry that is called again prints its result, as the agent did."""
    found: dict[str, set[str]] = {}
    for name, nodes in tree.nodes.items():
        if room(name) in ("cli", "demo") or name == "playback.replay.entry":
            continue
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
                found.setdefault(name, set()).add(f"line {node.lineno}")
    return found


def modules_in_cycles(tree: Tree) -> dict[str, set[str]]:
    """Modules that import each other, be it inside functions; what only types need is left out."""
    return {group[0]: set(group) for group in tree.cycles()}


OWNERS = {
    '"ts": ': {"lines"},
    ', "kind": ': {"lines"},
    '"kind": "': {"lines"},
    '"tot": ': {"lines"},
    "$same": {"capture.recorder.deltas", "tracefile.events.rebuilt_requests"},
    "$answer": {"capture.recorder.deltas", "tracefile.events.rebuilt_requests"},
}
"""Spellings of the trace format, and the modules that may know them."""


def strangers_who_spell_the_format(tree: Tree) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, nodes in tree.nodes.items():
        documented = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            if not isinstance(node, ast.Constant) or id(node) in documented:
                continue
            text = node.value.decode("latin-1") if isinstance(node.value, bytes) else str(node.value)
            for spelling, owners in OWNERS.items():
                if spelling in text and name not in owners:
                    found.setdefault(name, set()).add(spelling)
    return found


def private_reads(tree: Tree) -> dict[str, set[str]]:
    """``x._name`` of another module's object."""
    return tree.private_reads()


RULES = [
    wrong_layers,
    root_modules_beyond_their_order,
    prints,
    imports_by_string,
    modules_in_cycles,
    strangers_who_spell_the_format,
    private_reads,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_to_the_rule(rule: Callable[[Tree], dict[str, set[str]]]) -> None:
    assert rule(tree()) == {}


MUTATIONS = {
    "a reader inside the recorder": (
        "capture.recorder.file",
        "def f():\n    from ...tracefile.events.event import Event",
        wrong_layers,
    ),
    "a root module that knows a provider": ("schema", "from .wire import routes", wrong_layers),
    "a public name of the reader in capture": (
        "capture.recorder.encode",
        "from ... import Recording",
        wrong_layers,
    ),
    "public names in wire": ("wire.routes", "def f():\n    from .. import Debugger, Tap", wrong_layers),
    "an import by string": (
        "tracefile.reader",
        "import_module('reenact.capture.front.tap')",
        imports_by_string,
    ),
    "a relative import by string": (
        "playback.replay.start",
        "__import__(f'.{name}', __package__)",
        imports_by_string,
    ),
    "a cycle inside a room": ("wire.sse", "def f():\n    from .streams import assemble", modules_in_cycles),
    "lines that count totals": ("lines", "from .totals import Totals", root_modules_beyond_their_order),
    "a reader that spells a line": (
        "recording.index",
        """HEAD = b'{"ts": '""",
        strangers_who_spell_the_format,
    ),
    "a search that knows deltas": ("debugger.search", "SAME = '$same'", strangers_who_spell_the_format),
    "a library that prints": ("playback.fork.cut", "print('hello')", prints),
    "a private attribute of another module": (
        "debugger.step_session",
        "def f(x): return x._gap_that_nobody_reads",
        None,
    ),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_breach_of_the_rules_is_seen(mutation: str) -> None:
    name, line, rule = MUTATIONS[mutation]
    changes = {name: tree().files[name].read_text() + "\n" + line + "\n"}
    if rule is None:
        changes["debugger.stepper"] = (
            tree().files["debugger.stepper"].read_text() + "\n_gap_that_nobody_reads = 1\n"
        )
        assert tree().changed(changes).private_reads()[name] == {"_gap_that_nobody_reads"}
    else:
        assert rule(tree().changed(changes))  # nothing else breaks it, see above


def test_no_third_party_import_at_the_top_of_a_file() -> None:
    def third_party(name: str) -> set[str]:
        found = set()
        for node in tree().trees[name].body:
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
        return (
            found
            - sys.stdlib_module_names
            - {"reenact"}
            - LOADED_BEFORE.get(name.rpartition(".")[0] or name, set())
        )

    assert {name: found for name in tree().files if (found := third_party(name))} == {}
    for door, rooms in {"cli.commands.debug": "cli.tui", "cli.commands.view": "viewer"}.items():
        opened_by = {
            name for name, loads in tree().imports.items() if any(each.startswith(rooms) for each in loads)
        }
        assert {name for name in opened_by if not name.startswith(rooms)} == {door}


def test_nothing_below_the_commands_starts_a_command_to_read_its_output() -> None:
    def starts_us(nodes: list[ast.AST]) -> bool:
        lists = (node for node in nodes if isinstance(node, ast.List))
        words = ([item.value for item in each.elts if isinstance(item, ast.Constant)] for each in lists)
        return any("-m" in each and "reenact" in each for each in words)

    below = {name: nodes for name, nodes in tree().nodes.items() if room(name) != "cli"}
    assert [name for name, nodes in below.items() if starts_us(nodes)] == []


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


@pytest.mark.parametrize("name", ["Tap", "install"])
def test_tap_and_install_load_neither_asyncio_nor_logging_nor_third_parties(
    name: str, tmp_path: Path
) -> None:
    use = {"Tap": f"Tap({str(tmp_path / 'run.jsonl')!r})", "install": "install()"}[name]
    new = isolated(f"from reenact import {name}; {use}; print(*(set(sys.modules) - before))")
    assert not set(new) & {"asyncio", "logging"}
    assert {each.split(".")[0] for each in new} - sys.stdlib_module_names <= {"reenact"}


def test_importing_starts_nothing(tmp_path: Path) -> None:
    names = ", ".join(reenact.__all__)
    code = (
        "import sys, os, threading, atexit; hooks = (sys.excepthook, sys.unraisablehook, threading.excepthook);"
        f"from reenact import {names};"
        "assert threading.active_count() == 1; assert os.listdir('.') == [];"
        "assert hooks == (sys.excepthook, sys.unraisablehook, threading.excepthook)"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
