"""Tools that say what they see of the stack: all of it must read as if nobody watched."""

import asyncio
import inspect
import json
import sys
import traceback
import warnings

from agent_loop import conversation

SELF = __file__


def seen():
    frames = [f"{frame.function}:{frame.lineno}" for frame in inspect.stack()[1:] if frame.filename == SELF]
    return [*frames, sys._getframe(2).f_code.co_name, len(inspect.stack())]


def stack(n):
    local = n
    return [*seen(), sorted(locals()), inspect.currentframe().f_lineno, local]


def depth(n):
    try:
        return depth(n + 1)
    except RecursionError:
        return n


def warn(n):
    warnings.warn(f"warned {n}", stacklevel=1)
    warnings.warn(f"warned the caller of {n}", stacklevel=2)
    return "ok"


def fail(n):
    try:
        return {}[n]
    except KeyError as exc:
        raise ValueError("a long way", n) from exc


def many_returns(n):
    for each in range(3):
        with open(SELF) as file:
            try:
                if each == n:
                    return file.readline().strip()
            finally:
                each += 1
    return None


async def fail_later(n):
    await asyncio.sleep(0)
    raise ValueError(n)


async def stack_later(n):
    await asyncio.sleep(0)
    frames = [f"{task.get_name()} {task.get_coro().cr_code.co_name}" for task in asyncio.all_tasks()]
    return [*seen(), *frames]


def stack_of_generator(n):
    yield from seen()
    got = yield n
    yield str(got)


async def items(n):
    for each in range(n):
        await asyncio.sleep(0)
        yield [each, *seen()]


async def collected(name, args):
    return [item async for item in globals()[name](**args)]


def run(name, args):
    function = globals()[name]
    try:
        if inspect.isasyncgenfunction(function):
            return asyncio.run(collected(name, args))
        if inspect.iscoroutinefunction(function):
            return asyncio.run(function(**args))
        result = function(**args)
        if inspect.isgenerator(result):
            return [*[next(result), result.gi_frame.f_lineno], *result]
        return result
    except ValueError as exc:
        print("while it is handled:", sys.exc_info()[1] is exc, repr(exc.__context__), repr(exc.__cause__))
        return traceback.format_exc()


NAMES = ["stack", "depth", "warn", "fail", "many_returns", "fail_later", "stack_later", "stack_of_generator"]
PLAN = [[[name, {"n": 1}]] for name in [*NAMES, "items"]]
before = {
    name: (str(inspect.signature(globals()[name])), inspect.getsource(globals()[name])) for name in NAMES
}
conversation(run, PLAN)
conversation(run, [[[name, {"n": 2}] for name in NAMES]])
after = {
    name: (str(inspect.signature(globals()[name])), inspect.getsource(globals()[name])) for name in NAMES
}
print(before == after, json.dumps(run("stack", {"n": 3})), sys.getrecursionlimit())
