"""Code with hooks does what it did: checked by CPython's own tests, on functions that are all changed."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from reenact.capture.tools import bytecode
from support.examples import long

pytestmark = pytest.mark.skipif(
    sys.version_info[:2] not in bytecode.VERSIONS, reason="instructions that are not known"
)


class Seen:
    """What hooks were called with."""

    def __init__(self, is_open: bool = True) -> None:
        self.begun: list[tuple[Any, ...]] = []
        self.ended: list[Any] = []
        self.raised: list[BaseException] = []
        self.items: list[Any] = []
        gate = [True] if is_open else []
        self.hooks = bytecode.Hooks(gate, self.begin, self._end, self._raise, gate, self.items.append)

    def begin(self, *values: Any) -> object:
        self.begun.append(values)
        return self

    def _end(self, token: object, value: Any) -> None:
        assert token is self
        self.ended.append(value)

    def _raise(self, token: object, exc: BaseException) -> None:
        assert token is self
        self.raised.append(exc)

    def on(self, function: Any) -> Any:
        function.__code__ = bytecode.with_hooks(function.__code__, self.hooks)
        return function


PROGRAM = """
import gc, importlib, io, sys, types, unittest
from reenact.capture.tools import bytecode

class Token: pass
count = {"begun": 0, "ended": 0}
def begin(*values): count["begun"] += 1; return Token()
def ended(token, value): count["ended"] += 1; assert type(token) is Token
def raised(token, exc): count["ended"] += 1; assert type(token) is Token and isinstance(exc, BaseException)
gate = [1] if sys.argv[2] == "recorded" else []
hooks = bytecode.Hooks(gate, begin, ended, raised, gate, lambda value: None)

def changed(code):
    code = bytecode.with_hooks(code, hooks)
    is_function = lambda each: isinstance(each, types.CodeType) and each.co_flags & 2 and each.co_name[0] != "<"
    return code.replace(co_consts=tuple(changed(each) if is_function(each) else each for each in code.co_consts))

module = importlib.import_module(sys.argv[1])
for each in gc.get_objects():
    if type(each) is types.FunctionType and each.__code__.co_filename == module.__file__:
        each.__code__ = changed(each.__code__)
suite = unittest.defaultTestLoader.loadTestsFromModule(module)
result = unittest.TextTestRunner(stream=io.StringIO()).run(suite)
print(result.testsRun, [str(test) for test, _ in result.failures + result.errors], count["begun"] - count["ended"])
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "how"),
    [
        ("test.test_generators", "recorded"),
        ("test.test_coroutines", "recorded"),
        ("test.test_asyncgen", "recorded"),
        ("test.test_sys_settrace", "not recorded"),
        long("test.test_traceback", "recorded"),
        long("test.test_exceptions", "not recorded"),
        long("test.test_pdb", "recorded"),
        long("test.test_contextlib", "recorded"),
    ],
)
def test_pythons_own_tests_pass_with_every_function_of_theirs_watched(module: str, how: str) -> None:
    pytest.importorskip("test.support")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module, how], capture_output=True, text=True, timeout=300
    )
    ran, _, rest = done.stdout.strip().splitlines()[-1].partition(" ")
    assert int(ran) > 10 and rest.startswith("[] "), done.stdout + done.stderr[-2_000:]
    if module in ("test.test_generators", "test.test_asyncgen"):
        assert rest == "[] 0", rest  # each call that began has ended


def test_every_kind_of_parameter_comes_to_the_hook() -> None:
    seen = Seen()

    @seen.on
    def function(a: Any, /, b: Any, *rest: Any, c: Any = 3, **more: Any) -> Any:
        def inner() -> Any:
            return a, c  # both are cells

        return (*inner(), b, rest, more)

    assert function(1, 2, 4, d=5) == (1, 3, 2, (4,), {"d": 5})
    assert seen.begun == [(1, 2, 3, (4,), {"d": 5})] and seen.ended == [(1, 3, 2, (4,), {"d": 5})]


def test_an_exception_is_seen_and_goes_on_unchanged() -> None:
    seen = Seen()

    def function() -> None:
        try:
            raise KeyError("inner")
        except KeyError as exc:
            raise ValueError("outer") from exc

    def text() -> str:
        try:
            function()
        except ValueError:
            return traceback.format_exc()
        return ""

    bare = text()
    seen.on(function)
    assert text() == bare and [type(exc) for exc in seen.raised] == [ValueError] and not seen.ended


def test_a_generator_that_is_closed_sees_it_and_ends() -> None:
    seen = Seen()

    @seen.on
    def generator() -> Iterator[int]:
        yield 1
        yield 2

    running = generator()
    assert next(running) == 1
    running.close()
    assert seen.items == [1] and [type(exc) for exc in seen.raised] == [GeneratorExit]


def test_a_cancelled_coroutine_ends() -> None:
    seen = Seen()

    @seen.on
    async def forever() -> None:
        await asyncio.sleep(100)

    async def main() -> None:
        task = asyncio.ensure_future(forever())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    assert [type(exc) for exc in seen.raised] == [asyncio.CancelledError]


def test_recursion_is_as_deep_as_without_hooks() -> None:
    def depth(n: int) -> int:
        try:
            return depth(n + 1)
        except RecursionError:
            return n

    bare = depth(0)
    calls = []
    hooks = bytecode.Hooks(
        [True], calls.append, None, None, [], None
    )  # begin returns None: nothing is recorded
    depth.__code__ = bytecode.with_hooks(depth.__code__, hooks)
    assert depth(0) == bare and len(calls) >= bare - 1


def test_no_hook_is_called_while_nothing_is_open() -> None:
    seen = Seen(is_open=False)
    function: Callable[[int], int] = seen.on(lambda n: n + 1)
    assert function(1) == 2 and not seen.begun and not seen.ended


def test_lines_that_a_tracer_sees_are_those_of_the_function() -> None:
    def function(n: int) -> int:
        total = 0
        for each in range(n):
            if each % 2:
                continue
            total += each
        return total

    def lines() -> list[int]:
        found: list[int] = []

        def trace(frame: Any, event: str, arg: Any) -> Any:
            if frame.f_code.co_name == "function" and event == "line":
                found.append(frame.f_lineno)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            function(4)
        finally:
            sys.settrace(before)
        return found

    bare = lines()
    Seen().on(function)
    assert lines() == bare


def test_a_long_function_with_jumps_beyond_a_byte_is_rewritten_whole() -> None:
    body = "\n".join(f"    if n == {number}: total += {number}; continue" for number in range(400))
    space: dict[str, Any] = {}
    exec(f"def function(limit):\n  total = 0\n  for n in range(limit):\n{body}\n  return total", space)
    seen, function = Seen(), space["function"]
    bare = function(400)
    seen.on(function)
    assert function(400) == bare == sum(range(400)) and seen.ended == [bare]


STANDARD = ("argparse", "asyncio", "dataclasses", "inspect", "typing", "unittest", "unittest.mock")


def test_every_function_of_the_standard_library_can_be_read_and_written_back() -> None:
    for name in STANDARD:
        importlib.import_module(name)
    checked = 0
    spaces = [
        vars(module) for name, module in list(sys.modules.items()) if name.partition(".")[0] in STANDARD
    ]
    spaces += [vars(each) for space in spaces for each in space.values() if isinstance(each, type)]
    for each in [each for space in spaces for each in list(space.values())]:
        if type(each) is types.FunctionType and checked < 3_000:
            code = each.__code__
            again = bytecode.encoded(code, bytecode.decoded(code), code.co_consts, 0)
            assert again.co_code == code.co_code, each
            assert list(again.co_positions()) == list(code.co_positions()), each
            assert bytecode._handlers(again.co_exceptiontable) == bytecode._handlers(code.co_exceptiontable)
            checked += 1
    assert checked > 500
