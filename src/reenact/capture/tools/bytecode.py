"""A function's code with calls to a hook at its beginning, at its returns, its yields and its exceptions.

The function runs in its own frame, and no other frame stays on the stack while it does: ``sys._getframe(1)``,
``inspect.stack()``, tracebacks, the locations of warnings and the depth of recursion are as without us.
``function.__code__`` is what every reference to a function leads to, so nothing escapes.

The instructions of CPython differ from version to version; a version that is not listed here is not changed.
"""

from __future__ import annotations

import sys
from opcode import hasjrel, opmap, opname
from types import CodeType
from typing import Any, NamedTuple

VERSIONS = ((3, 11), (3, 12), (3, 13))
"""Of CPython, whose instructions are known here."""

_IS_COROUTINE, _IS_GENERATOR, _IS_ASYNC_GENERATOR = 0x80, 0x20, 0x200
_HAS_ARGS, _HAS_KWARGS = 0x04, 0x08
_CACHE, _EXTENDED = 0, opmap["EXTENDED_ARG"]
_JUMPS = frozenset(hasjrel)
_RECURSION_DEPTH_1 = 4
"""Flag of RESUME from 3.13 on: no handler of the generator's own is around this ``yield``."""

Place = tuple[int | None, int | None, int | None, int | None]
_NOWHERE: Place = (None, None, None, None)


class Step:
    """One instruction."""

    __slots__ = ("arg", "caches", "handler", "op", "place", "to")

    def __init__(self, op: int, arg: int = 0, place: Place = _NOWHERE, caches: int | None = None) -> None:
        self.op = op
        self.arg = arg
        self.place = place
        self.caches = _caches().get(op, 0) if caches is None else caches
        """Units after it that belong to it."""
        self.to: Step | None = None
        """Where it jumps to."""
        self.handler: tuple[Step, int, bool] | None = None
        """Where an exception of it goes, with which depth of the stack, and whether with its offset."""

    def size(self) -> int:
        return 1 + self.caches + (self.arg > 0xFF) + (self.arg > 0xFFFF) + (self.arg > 0xFF_FFFF)


def can_change(code: CodeType) -> str:
    """Return why the code cannot be changed, "" if it can."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in VERSIONS:
        return f"the instructions of {sys.implementation.name} {sys.version.split()[0]} are not known"
    if all(step.op != opmap["RESUME"] for step in decoded(code)):
        return "its code was not made by Python's compiler"
    return ""


# Reading.


def decoded(code: CodeType) -> list[Step]:
    """Return the instructions of a code, with their jumps and handlers."""
    raw = code.co_code
    places = list(code.co_positions())
    steps: list[Step] = []
    at: dict[int, Step] = {}
    begins: list[tuple[int, int]] = []
    arg = unit = 0
    first: int | None = None
    while unit < len(raw) // 2:
        op = raw[2 * unit]
        arg = arg << 8 | raw[2 * unit + 1]
        first = unit if first is None else first
        unit += 1
        if op == _EXTENDED:
            continue
        caches = 0
        while 2 * unit < len(raw) and raw[2 * unit] == _CACHE:
            caches, unit = caches + 1, unit + 1
        step = Step(op, arg, places[first], caches)
        steps.append(step)
        at[first] = step
        begins.append((first, unit))
        arg, first = 0, None
    for step, (_, end) in zip(steps, begins, strict=True):
        if step.op in _JUMPS:
            step.to = at[end - step.arg if "BACKWARD" in opname[step.op] else end + step.arg]
    for start, end, target, depth, lasti in _handlers(code.co_exceptiontable):
        for step, (begin, _) in zip(steps, begins, strict=True):
            if start <= begin < end:
                step.handler = at[target], depth, lasti
    return steps


def _handlers(table: bytes) -> list[tuple[int, int, int, int, bool]]:
    """Return start, end and target in units, depth and whether the offset is kept."""
    found, numbers, value = [], [], 0
    for byte in table:
        value = value << 6 | byte & 0x3F
        if not byte & 0x40:
            numbers.append(value)
            value = 0
    for start, length, target, how in zip(*[iter(numbers)] * 4, strict=True):
        found.append((start, start + length, target, how >> 1, bool(how & 1)))
    return found


_known_caches: dict[int, int] = {}


def _caches() -> dict[int, int]:
    """Return how many units follow the instructions that we add: as Python's own compiler has them."""
    if not _known_caches:
        samples = "while x(1):\n if y: z\n 0 if x is None else 1\n 0 if x is not None else 1\n"
        for step in decoded(compile(samples, "", "exec")):
            _known_caches[step.op] = step.caches
    return _known_caches


# Writing.


def encoded(code: CodeType, steps: list[Step], consts: tuple[Any, ...], deeper: int) -> CodeType:
    """Return the code with other instructions and constants."""
    offsets = _laid_out(steps)
    raw = bytearray()
    for step in steps:
        for shift in (24, 16, 8):
            if step.arg >> shift:
                raw += bytes((_EXTENDED, step.arg >> shift & 0xFF))
        raw += bytes((step.op, step.arg & 0xFF)) + bytes(2 * step.caches)
    return code.replace(
        co_code=bytes(raw),
        co_consts=consts,
        co_stacksize=code.co_stacksize + deeper,
        co_linetable=_line_table(steps, code.co_firstlineno),
        co_exceptiontable=_exception_table(steps, offsets, len(raw) // 2),
    )


def _laid_out(steps: list[Step]) -> dict[Step, int]:
    """Return where each instruction begins, in units, once all jumps have the arguments for it."""
    while True:
        offsets, unit = {}, 0
        for step in steps:
            offsets[step] = unit
            unit += step.size()
        is_stable = True
        for step in steps:
            if step.to is not None:
                arg = abs(offsets[step.to] - offsets[step] - step.size())
                is_stable = is_stable and arg == step.arg
                step.arg = arg
        if is_stable:
            return offsets


def _line_table(steps: list[Step], line: int) -> bytes:
    table = bytearray()
    for step in steps:
        left = step.size()
        while left:
            units = min(left, 8)
            left -= units
            start, end, column, end_column = step.place
            if start is None:
                table.append(0x80 | 15 << 3 | units - 1)
            elif column is None or end_column is None or end is None:
                table.append(0x80 | 13 << 3 | units - 1)
                table += _signed(start - line)
                line = start
            else:
                table.append(0x80 | 14 << 3 | units - 1)
                table += _signed(start - line)
                for number in (end - start, column + 1, end_column + 1):
                    table += _varint(number)
                line = start
    return bytes(table)


def _signed(number: int) -> bytes:
    return _varint(-number << 1 | 1 if number < 0 else number << 1)


def _varint(number: int) -> bytes:
    """Six bits a byte, the lowest first."""
    written = bytearray()
    while number > 0x3F:
        written.append(0x40 | number & 0x3F)
        number >>= 6
    written.append(number)
    return bytes(written)


def _exception_table(steps: list[Step], offsets: dict[Step, int], total: int) -> bytes:
    table = bytearray()
    ends = [*[offsets[step] for step in steps[1:]], total]
    begin = 0
    for number, (step, end) in enumerate(zip(steps, ends, strict=True)):
        after = steps[number + 1].handler if number + 1 < len(steps) else None
        if step.handler == after and number + 1 < len(steps):
            continue
        if step.handler is not None:
            target, depth, lasti = step.handler
            row = [offsets[steps[begin]], end - offsets[steps[begin]], offsets[target], depth << 1 | lasti]
            for place, value in enumerate(row):
                table += _table_number(value, is_first=place == 0)
        begin = number + 1
    return bytes(table)


def _table_number(number: int, is_first: bool) -> bytes:
    """Six bits a byte, the highest first; the first number of a row is marked."""
    parts = [number & 0x3F]
    while number := number >> 6:
        parts.append(number & 0x3F | 0x40)
    parts.reverse()
    parts[0] |= 0x80 if is_first else 0
    return bytes(parts)


# What is added.


def parameter_count(code: CodeType) -> int:
    """Return how many parameters a code has, with ``*args`` and ``**kwargs``; they are its first names."""
    stars = bool(code.co_flags & _HAS_ARGS) + bool(code.co_flags & _HAS_KWARGS)
    return code.co_argcount + code.co_kwonlyargcount + stars


class Hooks(NamedTuple):
    """The constants of a changed code: what its instructions test and call."""

    is_open: Any
    """Nothing is called while this is empty."""
    begin: Any
    """Called with the values of all parameters, in the order of the code; returns a token or None."""
    ended: Any
    """Called with the token and what the function returns."""
    raised: Any
    """Called with the token and the exception that the function ends with."""
    generators: Any
    """Nothing is called at a ``yield`` while this is empty."""
    item: Any
    """Called with what a generator yields."""


def with_hooks(code: CodeType, hooks: Hooks) -> CodeType:
    """Return code that does the same and calls hooks, of the same kind, with the same names and places."""
    writer = _Writer(code)
    steps = decoded(code)
    first = next(number for number, step in enumerate(steps) if step.op == opmap["RESUME"])
    steps[first].handler = None  # the token is not there yet
    body = steps[first + 1 :]
    for step in body:
        if step.handler is not None:
            target, depth, lasti = step.handler
            step.handler = target, depth + 1, lasti
    rewritten = [new for step in body for new in writer.rewritten(step, hooks)]
    outer = writer.on_exception(hooks.raised)
    for step in rewritten:
        if step.handler is None and step not in writer.bare:
            step.handler = outer[0], 1, True
    begin, at_limit = writer.beginning(hooks, rewritten[0])
    return encoded(code, [*steps[: first + 1], *begin, *rewritten, *outer, *at_limit], writer.consts(), 8)


def with_front(code: CodeType, front: Any, run: Any) -> CodeType:
    """Return code that first calls ``front`` with the values of all parameters.

    If that returns None, it goes on as before; anything else goes to ``run``, whose value is the function's.
    Before its first RESUME a function is no generator or coroutine yet, and tracebacks leave it out.
    """
    writer = _Writer(code)
    go_on = Step(opmap["POP_TOP"])
    place = (code.co_firstlineno, code.co_firstlineno, 0, 0)
    return encoded(code, [*writer.front(front, run, go_on, place), go_on, *decoded(code)], writer.consts(), 8)


class _Writer:
    """Adds instructions to one code. A token lies at the bottom of the stack while the body runs."""

    def __init__(self, code: CodeType) -> None:
        self._code = code
        self._consts = list(code.co_consts)
        kind = code.co_flags
        self._is_generator = bool(kind & _IS_GENERATOR)
        self._is_async_generator = bool(kind & _IS_ASYNC_GENERATOR)
        self.bare: set[Step] = set()
        """What no handler is around: an exception in there is none of the function's."""

    def consts(self) -> tuple[Any, ...]:
        return tuple(self._consts)

    def _const(self, value: Any) -> Step:
        for number, known in enumerate(self._consts[len(self._code.co_consts) :], len(self._code.co_consts)):
            if known is value:
                return Step(opmap["LOAD_CONST"], number)
        self._consts.append(value)
        return Step(opmap["LOAD_CONST"], len(self._consts) - 1)

    def _callee(self, value: Any) -> list[Step]:
        pair = [Step(opmap["PUSH_NULL"]), self._const(value)]
        return pair if sys.version_info < (3, 13) else pair[::-1]

    @staticmethod
    def _call(count: int) -> list[Step]:
        before = [Step(opmap["PRECALL"], count)] if "PRECALL" in opmap else []
        return [*before, Step(opmap["CALL"], count)]

    @staticmethod
    def _jump(name: str, to: Step) -> Step:
        step = Step(opmap.get(name, opmap.get(name.replace("POP_JUMP_", "POP_JUMP_FORWARD_"), -1)))
        step.to = to
        return step

    def _test(self, value: Any, otherwise: Step) -> list[Step]:
        to_bool = [Step(opmap["TO_BOOL"])] if "TO_BOOL" in opmap else []
        return [self._const(value), *to_bool, self._jump("POP_JUMP_IF_FALSE", otherwise)]

    def beginning(self, hooks: Hooks, body: Step) -> tuple[list[Step], list[Step]]:
        """Return what comes before the body, and a handler for a call of ``begin`` that is one too deep."""
        count = parameter_count(self._code)
        cells = self._code.co_cellvars
        loads = [
            Step(opmap["LOAD_DEREF" if name in cells else "LOAD_FAST"], number)
            for number, name in enumerate(self._code.co_varnames[:count])
        ]
        none = self._const(None)
        test = self._test(hooks.is_open, none)
        call = [*self._callee(hooks.begin), *loads, *self._call(count)]
        other = Step(opmap["RERAISE"], 0)
        at_limit = [
            self._const(RecursionError),
            Step(opmap["CHECK_EXC_MATCH"]),
            self._jump("POP_JUMP_IF_FALSE", other),
            Step(opmap["POP_TOP"]),
            self._jump("JUMP_BACKWARD", none),
            other,
        ]
        for step in call:
            step.handler = at_limit[0], 0, False
        return [*test, *call, self._jump("JUMP_FORWARD", body), none], at_limit

    def front(self, front: Any, run: Any, go_on: Step, place: Place) -> list[Step]:
        """Return ``x = front(…)``; unless it is None: ``return run(x)``."""
        count = parameter_count(self._code)
        steps = [
            *self._callee(front),
            *[Step(opmap["LOAD_FAST"], number) for number in range(count)],
            *self._call(count),
            Step(opmap["COPY"], 1),
            self._jump("POP_JUMP_IF_NONE", go_on),
            *self._callee(run),
            Step(opmap["COPY"], 3),
            *self._call(1),
            Step(opmap["SWAP"], 2),
            Step(opmap["POP_TOP"]),
            Step(opmap["RETURN_VALUE"]),
        ]
        for step in steps:
            step.place = place
        return steps

    def rewritten(self, step: Step, hooks: Hooks) -> list[Step]:
        """Return an instruction with what is added to it; jumps to it lead to the first of them."""
        name = opname[step.op]
        if name in ("RETURN_VALUE", "RETURN_CONST"):
            return self._returning(step, hooks.ended)
        is_yield = name == "YIELD_VALUE" and (self._is_generator or self._is_async_generator)
        if is_yield and sys.version_info[:2] == (3, 12):
            step.arg = max(2, step.arg)  # 1: closed without a GeneratorExit, as nobody would see it
        is_wrap = name == "ASYNC_GEN_WRAP" or (name, step.arg) == ("CALL_INTRINSIC_1", 4)
        if (self._is_generator and is_yield) or (self._is_async_generator and is_wrap):
            return self._yielding(step, hooks)
        if name == "RESUME":
            step.arg &= ~_RECURSION_DEPTH_1
        return [step]

    def _returning(self, step: Step, ended: Any) -> list[Step]:
        """Before ``return``: the token goes off the stack, after ``ended(token, value)`` if there is one."""
        value = [Step(opmap["LOAD_CONST"], step.arg, step.place)] if opname[step.op] == "RETURN_CONST" else []
        skip = Step(opmap["SWAP"], 2)
        added = [
            *value,
            Step(opmap["COPY"], 2),
            self._jump("POP_JUMP_IF_NONE", skip),
            *self._callee(ended),
            Step(opmap["COPY"], 4),
            Step(opmap["COPY"], 4),
            *self._call(2),
            Step(opmap["POP_TOP"]),
            skip,
            Step(opmap["POP_TOP"]),
            Step(opmap["RETURN_VALUE"], 0),
        ]
        new = self._in_place_of(step, added, None)
        self.bare.update(new)
        return new

    def _yielding(self, step: Step, hooks: Hooks) -> list[Step]:
        """Before ``yield``: ``item(value)``, if a generator is recorded at all."""
        copied = Step(step.op, step.arg, step.place, step.caches)
        added = [
            *self._test(hooks.generators, copied),
            *self._callee(hooks.item),
            Step(opmap["COPY"], 3),
            *self._call(1),
            Step(opmap["POP_TOP"]),
            copied,
        ]
        return self._in_place_of(step, added, step.handler)

    @staticmethod
    def _in_place_of(step: Step, added: list[Step], handler: tuple[Step, int, bool] | None) -> list[Step]:
        """Have the instruction be the first of others; all have its place, so that no line begins there."""
        head = added[0]
        step.op, step.arg, step.caches, step.to = head.op, head.arg, head.caches, head.to
        new = [step, *added[1:]]
        for each in new:
            each.place, each.handler = step.place, handler
        return new

    def on_exception(self, raised: Any) -> list[Step]:
        """Return the handler of what leaves the function: ``raised(token, exception)``, and on it goes."""
        again = Step(opmap["RERAISE"], 1)
        return [
            Step(opmap["COPY"], 3),
            self._jump("POP_JUMP_IF_NONE", again),
            *self._callee(raised),
            Step(opmap["COPY"], 5),
            Step(opmap["COPY"], 4),
            *self._call(2),
            Step(opmap["POP_TOP"]),
            again,
        ]
