"""Finds and watches the functions of the tools that responses call; one per process, made by ``install()``.

``REENACT_TOOLS`` (``--tools``) names functions that are not found by themselves, or is ``off``. A function is
behind a name if that is its own name, or its key in a dict; if it stands beside the name in a row of a table;
or if it is a method of an object of that name. It must be able to take the arguments. The search calls,
imports and changes nothing.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import sys
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from inspect import CO_OPTIMIZED
from math import inf
from time import thread_time
from types import BuiltinFunctionType, CellType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

from .. import guard, replay_hook
from ..calls import open_calls
from ..calls.error_fields import is_agents
from ..calls.open_calls import OpenUse, close_uses, open_uses
from ..recorder.recorder import Recorder
from . import watching
from .places import places_of

_MOST_NAMES = 1_000
NOT_FOUND = "no function of yours has this name; name it with --tools {}=module:function"
TOO_MANY = "the program has too many objects to search; name its function with --tools {}=module:function"


class Finder:
    """Looks for the function of each tool use whose function is not known yet."""

    def __init__(self, places: dict[str, tuple[str, str]]) -> None:
        self._places = places
        """Tools whose function the user names: module and qualified name."""
        self._known: dict[str, list[Any]] = {}
        """References to the functions of each tool."""
        self._searched: set[str] = set()
        """Names that the collector was searched for."""
        self._next = ""
        """The module that the next search begins with: one response waits for a part of them."""
        self.missing: dict[str, str] = {}
        """Tools that were called and have no watched function, and why."""

    def opened(self, recorder: Recorder, uses: list[OpenUse]) -> None:
        """Watch the functions of tool uses, which are open from now on. Raises only in a replay."""
        with guard.Swallowing("find the functions of tools"):
            for use in uses:
                use.recorder = recorder
            unknown = {use.name: _argument_names(use) for use in uses if not self._is_known(use.name)}
            if unknown:
                self._look_for(unknown)
            open_uses.extend(uses)
        if replay_hook.responder is not None:
            names = [use.name for use in uses]
            replay_hook.responder.unwatched([n for n in names if n in self.missing or n not in self._known])

    def _is_known(self, name: str) -> bool:
        alive = [function for each in self._known.get(name, ()) if (function := each()) is not None]
        return any(watching.is_watched(function) for function in alive)

    def _look_for(self, wanted: dict[str, frozenset[str]]) -> None:
        for name in [name for name in wanted if name in self._places]:
            self._watch_named(name)
            del wanted[name]
        is_answered = replay_hook.adapter("tools") is not None  # then nothing may run, and time matters less
        patience = inf if is_answered else _PATIENCE_S
        found, self._next = _in_modules(wanted, self._next, patience)
        left = {name: names for name, names in wanted.items() if not found.get(name)}
        found |= _on_the_stack(left, patience) if left else {}
        left = {name: names for name, names in left.items() if not found.get(name)}
        new = {name: names for name, names in left.items() if is_answered or name not in self._searched}
        why = TOO_MANY if self._next else NOT_FOUND
        if new:
            more = _by_collector(new, most=inf if is_answered else _MOST_BLOCKS)
            if more is None:
                why = TOO_MANY
            else:
                self._searched.update(list(new)[: _MOST_NAMES - len(self._searched)])
                found.update(more)
        for name in wanted:
            self._watch(name, found.get(name, []), why)

    def _watch_named(self, name: str) -> None:
        module_name, qualname = self._places[name]
        module = sys.modules.get(module_name)
        if module is None:
            self.missing[name] = f"{module_name} is not imported"
            return
        function = _function_at(module, qualname)
        if isinstance(function, str):
            self.missing[name] = function
        else:
            self._watch(name, [function], "")

    def _watch(self, name: str, functions: list[Any], why: str) -> None:
        watched = []
        for function in functions:
            why = watching.watch(function, name)
            if not why:
                watched.append(ref(function))
        if watched:
            self._known[name] = watched
            self.missing.pop(name, None)
        elif len(self.missing) < _MOST_NAMES:
            self.missing[name] = why.format(name)


def _argument_names(use: OpenUse) -> frozenset[str]:
    args = json.loads(use.args)
    return frozenset(args) if type(args) is dict else frozenset()


finder: Finder | None = None
_is_hooked = False


def start(named: str) -> Finder:
    """Watch the functions of all tools that responses call from now on; the user names some."""
    global finder, _is_hooked
    if not _is_hooked:
        _is_hooked = True
        os.register_at_fork(after_in_child=open_uses.clear)  # the parent's, who knows when they close
    finder = Finder(places_of(named))
    open_calls.opened_uses = finder.opened
    return finder


def stop() -> None:
    """Give all functions back as they were."""
    global finder
    finder = None
    close_uses(list(open_uses))
    watching.unwatch_all()


def missing() -> dict[str, str]:
    """Return the tools that were called and have no watched function, and why."""
    if finder is None:
        return {}
    return {name: why for name, why in finder.missing.items() if name not in open_calls.recorded_tools}


# The search: in the user's modules, then on the stack, then by the collector in a small program.

_PATIENCE_S = 0.0005
"""CPU seconds after which modules, and after as many the running functions, are left for the next response:
none waits for more than 5 ms. In a replay all are looked at."""

_LEAST_OBJECTS, _LEAST_VARIABLES = 150, 800
"""Looked at in any case, so that in most programs a busy machine changes nothing in what is found."""

_MOST_NEW_MODULES = 300
"""Of which one search finds out whether they are the user's."""

_MOST_OBJECTS = 1_000
"""Looked at for one module, and for all running functions."""

_MOST_BLOCKS = 300_000
"""Blocks of memory beyond which the collector is not used: 60,000 to 120,000 objects, a few milliseconds. To
count the objects themselves takes as long as the search. In a replay it is used in any case."""

_MOST_FUNCTIONS = 8
"""Watched for one name."""

_LONGEST_ROW = 32
"""Values of one entry in a table of tools. A longer dict or tuple is not such an entry."""

_CONTEXTS = ("self", "cls", "ctx", "context", "run_context", "wrapper", "state", "runtime")
"""First parameters that a framework fills in."""

_DOING = {"call", "run", "arun", "invoke", "ainvoke", "execute", "aexecute", "handle", "perform", "forward"}
"""Usual names of the method that runs a tool, without underscores."""

_MOST_HELD = 250
"""Values of a container that are looked at. A larger one holds data."""

_CONTAINERS = (list, tuple, dict, set, frozenset, deque)
_PLAIN = {str, bytes, int, float, complex, bool, type(None), ModuleType, BuiltinFunctionType}

Wanted = Mapping[str, frozenset[str]]
"""Names of tools, each with the names of its arguments."""


def _in_modules(wanted: Wanted, first: str, patience: float) -> tuple[dict[str, list[FunctionType]], str]:
    """Return the functions behind the names that the user's modules lead to, and where to go on next time.

    What has such a name comes first, in all of them; then what they hold, as far as there is time.
    """
    search = _Search(wanted)
    # Two lists, because tuples would have the collector run. There may be thousands.
    names = [name for name in list(sys.modules) if name not in _others_modules]
    modules = list(map(sys.modules.get, names))
    for at in [at for at, name in enumerate(names) if name not in _users_modules][:_MOST_NEW_MODULES]:
        if type(modules[at]) is ModuleType:
            _is_users_module(names[at], modules[at])  # most are libraries, and not looked at again
    for wanted_name in wanted:
        # A lazy module would be imported by a look.
        holding = [
            at
            for at, module in enumerate(modules)
            if type(module) is ModuleType and wanted_name in module.__dict__
        ]
        for at in holding:
            if _is_users_module(names[at], modules[at]):
                search.add(vars(modules[at]).get(wanted_name), wanted_name)
    search.go(thread_time())
    until = thread_time() + patience
    begin = names.index(first) if first in names else 0
    variables = 0
    for at in (*range(begin, len(names)), *range(begin)):
        is_enough = len(search.values) >= _LEAST_OBJECTS or variables >= _LEAST_VARIABLES
        if is_enough and thread_time() > until:
            return search.found, names[at]
        if type(modules[at]) is ModuleType and _is_users_module(names[at], modules[at]):
            variables += len(vars(modules[at]))
            search.add_contents(vars(modules[at]))
            search.go(until)
    return search.found, ""


_READS_LOCALS = frozenset({"locals", "vars", "f_locals", "eval", "exec"})
_ONLY_OURS = 3
"""References to the variables of a frame: the frame's, ours, and the one that counts them."""


def _on_the_stack(wanted: Wanted, patience: float) -> dict[str, list[FunctionType]]:
    """Return the functions behind the names that variables of the running functions of the user lead to.

    Before Python 3.13 a look refreshes what ``locals()`` has returned there. So functions that may hold that,
    and those that are debugged, are left out, and nothing is kept alive by the look.
    """
    search = _Search(wanted)
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        is_function = code.co_flags & CO_OPTIMIZED and is_agents(code.co_filename)
        if is_function and frame.f_trace is None and _READS_LOCALS.isdisjoint(code.co_names):
            variables = frame.f_locals
            search.add_all((value, name) for name, value in list(variables.items()))
            if type(variables) is dict and sys.getrefcount(variables) <= _ONLY_OURS:
                variables.clear()
        frame = frame.f_back
    search.go(thread_time() + patience)
    return search.found


def _by_collector(wanted: Wanted, *, most: float) -> dict[str, list[FunctionType]] | None:
    """Return the functions behind the names among all objects; None if there are too many objects."""
    if sys.getallocatedblocks() > most:
        return None
    search = _Search(wanted)
    names = [sys.intern(name) for name in wanted]
    for holder in gc.get_referrers(*names):  # one pass in C: who has such a name as an attribute or a key
        if _is_a(holder, FunctionType):
            search.add(holder, holder.__name__)
        elif type(holder) is dict:
            search.add_all((holder[name], name) for name in names if name in holder)
            if "__name__" not in holder and len(holder) <= _LONGEST_ROW:  # no module
                search.consider_held(list(holder.values()), "")
        elif type(holder) is tuple:
            search.consider_held(holder, "")
        elif not _is_a(holder, (type, list, tuple, ModuleType)):
            search.add(holder, "")
    search.go(inf)
    return search.found


def _function_at(module: ModuleType, qualname: str) -> FunctionType | str:
    """Return the function of a module that the user names, or why there is none."""
    value: Any = module
    for part in qualname.split("."):
        try:
            value = vars(value)[part] if isinstance(value, type) else getattr(value, part)
        except (AttributeError, KeyError) as exc:
            guard.pass_on(exc)
            return f"{module.__name__} has no {qualname}"
    functions = list(functions_of(value))
    return functions[0] if functions else f"{qualname} of {module.__name__} is not a function of Python's"


def _is_users_module(name: str, module: Any) -> bool:
    if name == "__main__":  # ours before it is the user's
        return is_agents(file) if (file := getattr(module, "__file__", None)) else True
    if name not in _users_modules:
        file = getattr(module, "__file__", None)
        (_users_modules if file and is_agents(file) else _others_modules).add(name)
    return name in _users_modules


_users_modules: set[str] = set()
_others_modules: set[str] = set()
"""By name; there may be thousands."""


class _Search:
    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.found: dict[str, list[FunctionType]] = {}
        self.values: list[Any] = []
        """To be looked at. They stay here, so that no id is used twice."""
        self._keys: list[str] = []
        """The key or the name of each value; two lists, because tuples would have the collector run."""
        self._at = 0
        """The first one that was not looked at."""
        self._seen: set[int] = set()

    def add(self, value: Any, key: str) -> None:
        if type(value) in _PLAIN or (id(value) in self._seen and key not in self.wanted):
            return
        self._seen.add(id(value))
        self.values.append(value)
        self._keys.append(key)

    def add_all(self, pairs: Iterable[tuple[Any, str]]) -> None:
        for value, key in pairs:
            self.add(value, key)

    def add_contents(self, module: dict[str, Any]) -> None:
        """Add what a module holds; classes and functions with a closure come last."""
        code: list[Any] = []
        for value in list(module.values()):
            kind = type(value)
            if kind is FunctionType:
                if value.__closure__ is not None or value.__name__ in self.wanted:
                    code.append(value)
            elif kind is type:
                code.append(value)
            elif kind not in _PLAIN:
                self.add(value, "")
        self.add_all((value, "") for value in code)

    def go(self, until: float) -> None:
        """Look at what was added, and at what it leads to, as long as there is time."""
        at = self._at
        most = at + _MOST_OBJECTS
        while at < min(len(self.values), most) and (at < _LEAST_OBJECTS or thread_time() < until):
            try:
                self._look(self.values[at], self._keys[at])
            except Exception as exc:  # another thread changes what is looked at, for instance
                guard.pass_on(exc)
            at += 1
        self._at = len(self.values)

    def _look(self, value: Any, key: str) -> None:
        for function in functions_of(value):
            for name in {key, function.__name__} & self.wanted.keys():
                self._consider(name, function)
            self.add_all((cell.cell_contents, "") for cell in function.__closure__ or () if _is_full(cell))
            self.add_all((each, key) for each in function.__dict__.values())
        kind = type(value)
        if kind is dict:
            self.add_all((value[name], name) for name in self.wanted if name in value)
            if len(value) <= _MOST_HELD:
                values = list(value.values())
                self.consider_held(values, key)
                self.add_all((each, "") for each in values)
        elif _is_a(value, type):
            if _is_users(value):
                self.add_all((each, name) for name, each in list(vars(value).items()))
        elif not _is_a(value, (FunctionType, CellType)) and _size(value) <= _MOST_HELD:
            self._look_into(value, key)

    def _look_into(self, value: Any, key: str) -> None:
        """Look at what an object holds; one with the name or the key of a tool does its work by a method."""
        held = gc.get_referents(value)
        dicts = [one for one in held if type(one) is dict and len(one) <= _MOST_HELD]
        attributes = [*held, *(each for one in dicts[:_LONGEST_ROW] for each in list(one.values()))]
        own_kind = type(value)
        kinds = [kind for kind in own_kind.__mro__ if kind is own_kind or _is_users(kind)]
        kinds = kinds if own_kind not in _CONTAINERS else []
        of_class = [each for kind in kinds for each in vars(kind).values()]
        texts = {each for each in (*attributes, *of_class, key) if type(each) is str}
        for name in texts & self.wanted.keys():
            for function in self._methods(name, kinds):
                self._consider(name, function)
            if not _is_users(own_kind):  # a class that a framework made for the tool: its functions wrap ours
                own = list(vars(own_kind).values())
                self.add_all((function, "") for each in own for function in functions_of(each))
        if type(value) is not list or key in self.wanted:
            self.consider_held(attributes, key)
        self.add_all((each, "") for each in attributes if not _is_a(each, type))

    def _methods(self, name: str, kinds: list[type]) -> list[FunctionType]:
        """Return the methods that may run the tool: those with a usual name that take the arguments by name.

        Else those of the object's own class, and all with a usual name. Other inherited methods are left out,
        because most of them describe the tool.
        """
        by_kind = [
            [
                function
                for each in vars(kind).values()
                for function in functions_of(each)
                if is_agents(function.__code__.co_filename)  # also in a class that a framework made
                and (function.__name__ == "__call__" or not function.__name__.startswith("__"))
                and _takes(function, self.wanted[name])
            ]
            for kind in kinds
        ]
        usual = [each for methods in by_kind for each in methods if each.__name__.strip("_") in _DOING]
        by_name = [each for each in usual if _takes_by_name(each, self.wanted[name])]
        return by_name or [*next((methods for methods in by_kind if methods), []), *usual]

    def consider_held(self, values: Collection[Any], key: str) -> None:
        """Consider the only function beside the name of a tool, or under its key: a row of a table.

        Of several functions that take the arguments, none is considered: any of them could be the tool.
        """
        if len(values) > _LONGEST_ROW:
            return
        texts = {each for each in values if type(each) is str}
        names = {key} if key in self.wanted else texts & self.wanted.keys()
        for name in names if len(names) == 1 else ():
            held = {function for each in values for function in functions_of(each)}
            fitting = [each for each in held if _takes(each, self.wanted[name])]
            if len(fitting) == 1:
                self._consider(name, fitting[0])

    def _consider(self, name: str, function: FunctionType) -> None:
        found = self.found.setdefault(name, [])
        if function in found or len(found) >= _MOST_FUNCTIONS or not is_agents(function.__code__.co_filename):
            return
        if _takes(function, self.wanted[name]):
            found.append(function)


def functions_of(value: Any) -> Iterable[FunctionType]:
    """Yield the function that a callable leads to."""
    if _is_a(value, FunctionType):
        yield value
    elif _is_a(value, (MethodType, staticmethod, classmethod)):
        yield from functions_of(value.__func__)
    elif _is_a(value, functools.partial):
        yield from functions_of(value.func)
    elif type(value).__name__ == "_lru_cache_wrapper":
        yield from functions_of(value.__wrapped__)


def _is_a(value: Any, kinds: type | tuple[type, ...]) -> bool:
    """``isinstance`` without ``value.__class__``: a proxy would load what it stands for, or raise."""
    return issubclass(type(value), kinds)


def _size(value: Any) -> int:
    """Return how much a container holds, without its own methods; 0 for anything else."""
    return next((kind.__len__(value) for kind in _CONTAINERS if _is_a(value, kind)), 0)


def _is_full(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError as exc:
        guard.pass_on(exc)
        return False


def _is_users(kind: type) -> bool:
    module = sys.modules.get(getattr(kind, "__module__", None) or "")
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    return is_agents(file) if file else kind.__module__ == "__main__"


def _takes(function: FunctionType, arguments: frozenset[str]) -> bool:
    """True if a function can take these arguments: by name, as ``*args`` or ``**kwargs``, or all in one."""
    return (
        _takes_by_name(function, arguments) or len([n for n in _names(function) if n not in _CONTEXTS]) == 1
    )


def _takes_by_name(function: FunctionType, arguments: frozenset[str]) -> bool:
    return bool(function.__code__.co_flags & 0x0C) or arguments <= set(_names(function))


def _names(function: FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
