"""The table of frameworks: each row is tested when its module is patched, and everything is given back."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

from reenact import schema
from reenact.capture.seams.libraries import FRAMEWORKS, SEAMS
from reenact.capture.seams.patching import LibraryChanged
from reenact.capture.tools import frameworks
from support.examples import long

LANGCHAIN = "langchain_core.tools.base"
HERE = [LANGCHAIN, long("anthropic.lib.tools._beta_runner")]
CHANGED = {
    "": "has no BaseTool",
    "class BaseTool: run = 1": "BaseTool has no method run",
    "class BaseTool:\n def run(self, tool_call_id): 1": "BaseTool has no method arun",
    "class BaseTool:\n def run(self): 1": "BaseTool.run takes other arguments",
}


def test_the_rows_are_those_that_are_waited_for() -> None:
    assert {module for module, seam in SEAMS.items() if seam == FRAMEWORKS} == set(frameworks.ROWS)
    assert {row.framework for row in frameworks.ROWS.values()} == set(schema.FRAMEWORKS)


@pytest.mark.parametrize("source", CHANGED)
def test_a_changed_framework_is_left_alone(source: str) -> None:
    module = ModuleType(LANGCHAIN)
    module.__file__ = "/lib/site-packages/langchain_core/tools/base.py"
    exec(source, vars(module))
    before = dict(vars(getattr(module, "BaseTool", object)))
    with pytest.raises(LibraryChanged, match=CHANGED[source]):
        frameworks.patch(module, None)
    assert dict(vars(getattr(module, "BaseTool", object))) == before
    assert "langchain" not in frameworks.in_force


def test_a_module_of_the_users_with_the_same_name_is_left_alone() -> None:
    module = ModuleType("agents.tool")
    module.__file__ = "/home/me/agents/tool.py"
    frameworks.patch(module, None)()
    assert "openai-agents" not in frameworks.in_force


PROGRAM = """
import importlib, sys
import reenact
from reenact.capture.tools.frameworks import ROWS

reenact.install()
module = importlib.import_module(sys.argv[1])
def codes():
    methods = [name.split(".") for name in ROWS[sys.argv[1]].methods]
    return [vars(getattr(module, kind))[method].__code__ for kind, method in methods]
during = codes()
reenact.uninstall()
print(sum(a is not b for a, b in zip(during, codes())), len(during))
"""


@pytest.mark.parametrize(("tools", "changed"), [("", 2), long("off", 0)])
@pytest.mark.parametrize("name", HERE)
def test_methods_are_changed_at_import_and_given_back(name: str, tools: str, changed: int) -> None:
    env = {"REENACT_TOOLS": tools, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, name], env=env, capture_output=True, text=True)
    assert (done.stdout.split(), done.stderr) == ([str(changed), "2"], "")


def test_what_is_around_a_method_is_not_replaced() -> None:
    module = importlib.import_module(LANGCHAIN)
    original = module.BaseTool.run

    def around(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        return original(self, *args, **kwargs)

    around.__wrapped__ = original  # type: ignore[attr-defined]
    code = original.__code__
    module.BaseTool.run = around
    try:
        undo = frameworks.patch(module, None)
        assert module.BaseTool.run is around and original.__code__ is not code
        undo()
        assert original.__code__ is code
    finally:
        module.BaseTool.run = original
