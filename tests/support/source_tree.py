"""The source tree read as syntax: which module imports which, what is private, what is called from where.

Used by tests/test_architecture.py, which holds the tree to its rules, and by ``make house``, which counts.
"""

from __future__ import annotations

import ast
import collections
import copy
import re
import sys
from pathlib import Path

FAMILIES = ("wire/providers/", "capture/seams/", "cli/commands/", "playback/serve/", "cli/repl/")
"""Folders of things of one kind: there, one importer (a table) is what one wants."""
DIALECT = {"told", "said", "given", "asked", "whose", "made", "telling", "saying"}
NAMEDTUPLE = {"_replace", "_asdict", "_fields", "_make"}


class Tree:
    """All modules of a source tree, with what imports what."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = {self._name(path): path for path in sorted(root.rglob("*.py"))}
        self.trees = {name: ast.parse(path.read_text()) for name, path in self.files.items()}
        self.nodes = {name: list(ast.walk(tree)) for name, tree in self.trees.items()}
        """Module -> all its nodes: to walk a tree costs more than any rule does with a node."""
        self.imports = {name: self._imports(name, self.nodes[name]) for name in self.files}
        """Module -> the modules it imports, wherever in the file, with the names taken from each."""
        self._at_runtime: dict[str, set[str]] = {}

    def changed(self, texts: dict[str, str]) -> Tree:
        """The same tree with another text in some modules; only these are read again."""
        other = copy.copy(self)
        other.trees = self.trees | {name: ast.parse(text) for name, text in texts.items()}
        other.nodes = self.nodes | {name: list(ast.walk(other.trees[name])) for name in texts}
        other.imports = self.imports | {name: other._imports(name, other.nodes[name]) for name in texts}
        other._at_runtime = {name: found for name, found in self._at_runtime.items() if name not in texts}
        return other

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def _imports(self, name: str, nodes: list[ast.AST]) -> dict[str, set[str]]:
        package = name.split(".") if self.files[name].name == "__init__.py" else name.split(".")[:-1]
        found: dict[str, set[str]] = collections.defaultdict(set)
        for node in nodes:
            if not isinstance(node, ast.ImportFrom):
                continue
            module = node.module.split(".") if node.module else []
            if node.level:
                base = [*package[: len(package) - node.level + 1], *module]
            elif module[:1] == ["reenact"]:
                base = module[1:]
            else:
                continue
            for alias in node.names:
                deeper = ".".join([*base, alias.name])
                if deeper in self.files:
                    found[deeper].add("*")
                elif ".".join(base) in self.files:
                    found[".".join(base)].add(alias.name)
        return found

    def importers(self) -> dict[str, set[str]]:
        users: dict[str, set[str]] = collections.defaultdict(set)
        for name, imports in self.imports.items():
            for module in imports:
                if name:  # the root only names what it offers
                    users[module].add(name)
        return users

    def one_importer(self) -> list[str]:
        """Modules that exactly one other imports, families left out."""
        users = self.importers()
        return [
            name
            for name, path in self.files.items()
            if len(users[name]) == 1
            and path.name != "__init__.py"
            and not str(path.relative_to(self.root)).startswith(FAMILIES)
        ]

    def cycles(self) -> list[list[str]]:
        """Groups of modules that import each other, counting imports inside functions (Tarjan)."""
        index: dict[str, int] = {}
        low: dict[str, int] = {}
        stack: list[str] = []
        found = []

        def visit(name: str) -> None:
            index[name] = low[name] = len(index)
            stack.append(name)
            for other in self._runtime(name):
                if other not in index:
                    visit(other)
                    low[name] = min(low[name], low[other])
                elif other in stack:
                    low[name] = min(low[name], index[other])
            if low[name] == index[name]:
                group = []
                while not group or group[-1] != name:
                    group.append(stack.pop())
                if len(group) > 1:
                    found.append(sorted(group))

        sys.setrecursionlimit(5000)
        for name in self.files:
            if name and name not in index:
                visit(name)
        return found

    def _runtime(self, name: str) -> set[str]:
        """What a module imports when it runs: what stands under TYPE_CHECKING is left out."""
        if name in self._at_runtime:
            return self._at_runtime[name]
        only_types = {
            id(node)
            for block in self.nodes[name]
            if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
            for part in block.body
            for node in ast.walk(part)
        }
        run = [
            node
            for node in self.nodes[name]
            if isinstance(node, ast.ImportFrom) and id(node) not in only_types
        ]
        found = {*self._imports(name, run)} - {"", name}
        self._at_runtime[name] = found
        return found

    def lone_functions(self) -> int:
        """Public functions that are called from one place, and that in another module."""
        uses: collections.Counter[str] = collections.Counter()
        home: dict[str, str] = {}
        inside: set[str] = set()
        for name, tree in self.trees.items():
            for node in tree.body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                    home[node.name] = "" if node.name in home else name
            for node in self.nodes[name]:
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                    uses[node.id] += 1
                    if home.get(node.id) == name:
                        inside.add(node.id)
                elif isinstance(node, ast.Attribute):
                    uses[node.attr] += 1
        return sum(1 for each, where in home.items() if where and uses[each] == 1 and each not in inside)

    def private_reads(self) -> dict[str, set[str]]:
        """Module -> ``x._name`` where another module of ours, and not this one, defines ``_name``."""
        defines = {name: _private_names(nodes) for name, nodes in self.nodes.items()}
        everywhere = set().union(*defines.values())
        found: dict[str, set[str]] = collections.defaultdict(set)
        for name, nodes in self.nodes.items():
            strange = everywhere - defines[name] - NAMEDTUPLE
            for node in nodes:
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr in strange
                    and not (
                        isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "sys", "os")
                    )
                ):
                    found[name].add(node.attr)
        return dict(found)

    def late_imports(self) -> int:
        return sum(
            1
            for nodes in self.nodes.values()
            for function in nodes
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
            for node in ast.walk(function)
            if isinstance(node, ast.ImportFrom) and node.level
        )

    def dialect(self) -> int:
        """Identifiers with a word of our old dialect in them."""
        return sum(
            1
            for nodes in self.nodes.values()
            for node in nodes
            for key in ("id", "arg", "name")
            if isinstance(word := getattr(node, key, None), str) and DIALECT & set(word.lower().split("_"))
        )


def _private_names(nodes: list[ast.AST]) -> set[str]:
    """Private functions, classes, variables and attributes that a module defines."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
    return {name for name in found if re.match(r"_[a-z]", name)}
