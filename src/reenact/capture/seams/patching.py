"""Replace methods of a class or an object, now or once their module is imported.

They are restored without removing what another tool put on top.
"""

from __future__ import annotations

import sys
from _thread import get_ident
from weakref import ref

from .. import guard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_IS_COROUTINE = 0x80
"""``inspect.CO_COROUTINE``, without ``inspect``."""


def replace(owner: Any, methods: dict[str, Any]) -> Callable[[], None]:
    """Put methods into a class; returns what undoes it.

    A tool that came after us has ours inside its own. Then ours stays where it is, and passes everything on
    since the watch is off.
    """
    before = {name: vars(owner)[name] for name in methods if name in vars(owner)}
    for name, method in methods.items():
        setattr(owner, name, method)

    def undo() -> None:
        for name, method in methods.items():
            if vars(owner).get(name) is not method:
                continue
            if name in before:
                setattr(owner, name, before[name])
            else:
                delattr(owner, name)

    return undo


def listen(owner: Any, taps: dict[str, Callable[..., Any]]) -> Callable[[], None]:
    """Call ``tap(self, original, …)`` in place of methods of a class; returns what undoes it."""
    return replace(owner, {name: _as_method(tap, getattr(owner, name)) for name, tap in taps.items()})


def _as_method(tap: Any, original: Any) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return tap(self, original, *args, **kwargs)

    async def coroutine(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await tap(self, original, *args, **kwargs)

    found: Any = coroutine if tap.__code__.co_flags & _IS_COROUTINE else method
    look_like(found, original)
    return found


def look_like(function: Any, original: Any) -> None:
    """Give a function the name, the place and the signature of the one it stands for."""
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, name, getattr(original, name, None))
    function.__wrapped__ = original


def undo_all(*undo: Callable[[], None]) -> Callable[[], None]:
    """Return what undoes several replacements, the last one first."""

    def all_of_them() -> None:
        for each in reversed(undo):
            each()

    return all_of_them


# One object's method listened to: an attribute of the object in front of its class's function.
#
# Held without a cycle, so that the object goes when it would have gone.


class Override:
    """The replacement in the object; called as the method, it calls ``tapped(owner, original, …)``."""

    def __init__(self, owner: Any, name: str, tapped: Callable[..., Any]) -> None:
        self._owner = ref(owner)
        self._before = vars(owner).get(name)
        """What another tool had put there before."""
        self._name = name
        self.tapped = tapped

    def original(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        """Call what would have been called without us."""
        if self._before is not None:
            return self._before(*args, **kwargs)
        function = getattr(type(owner), self._name)  # looked up now, since another tool may have wrapped it
        return function(owner, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tapped(self._owner(), self.original, *args, **kwargs)

    def leave(self, owner: Any, name: str) -> None:
        if self._before is not None:
            vars(owner)[name] = self._before
        else:
            del vars(owner)[name]


def override(owner: Any, name: str, tapped: Callable[..., Any]) -> None:
    """Call ``tapped(owner, original, …)`` in place of one object's method; the last call of this counts."""
    there = vars(owner).get(name)
    if isinstance(there, Override):
        there.tapped = tapped
    else:
        vars(owner)[name] = Override(owner, name, tapped)


def restore(owner: Any, name: str) -> bool:
    """Give an object its own method back; True if it was listened to."""
    there = vars(owner).get(name)
    if not isinstance(there, Override):
        return False
    there.leave(owner, name)
    return True


# Is a library as its seam expects it? Checked once, when the seam is installed.
#
# A missing part raises ``LibraryChanged``: the seam then uses another method, or is left out and reported.


class LibraryChanged(Exception):
    """A library is not as its seam expects it."""


def need(owner: Any, *names: str) -> None:
    """Raise unless a module or a class has these names."""
    for name in names:
        if not hasattr(owner, name):
            raise LibraryChanged(f"{_name(owner)} has no {name}")


def need_held(owner: type, *names: str) -> None:
    """Raise unless the objects of a class have these names, from the class or from ``__init__``."""
    set_in_init = getattr(_code(owner.__init__), "co_names", ())  # type: ignore[misc]
    need(owner, *[name for name in names if name not in set_in_init])


def need_called(owner: type, name: str) -> None:
    """Raise unless a method of the class uses this one: else its replacement is never called."""
    need(owner, name)
    members = [member for kind in owner.__mro__ for member in vars(kind).values()]
    if not any(name in getattr(_code(member), "co_names", ()) for member in members):
        raise LibraryChanged(f"{_name(owner)} does not use its {name}")


def need_arguments(owner: type, name: str, *arguments: str) -> None:
    """Raise unless a method takes these arguments by position, and no others."""
    need(owner, name)
    code = _code(getattr(owner, name))
    if code is None or code.co_varnames[1 : code.co_argcount] != arguments:
        raise LibraryChanged(f"{_name(owner)}.{name} takes other arguments")


def _name(owner: Any) -> str:
    return str(getattr(owner, "__qualname__", None) or owner.__name__)


def _code(member: Any) -> Any:
    """Return the code of a method, under what others have put around it."""
    while hasattr(member, "__wrapped__"):
        member = member.__wrapped__
    return getattr(member, "__code__", None)


# vcrpy's stand-ins: while a cassette is used, ``http.client.HTTPConnection`` is a class of its own.
#
# A connection of that class has a real one inside, which sends the requests that the cassette does not
# answer. That one is recorded: what is played from a cassette is never sent.


def genuine(kind: Any) -> Any:
    """Return the class behind a stand-in; any other class as it is."""
    return getattr(kind, "_baseclass", kind)


def real(held: Any) -> Any:
    """Return the connection inside a stand-in; anything else as it is."""
    return getattr(held, "__dict__", {}).get("real_connection", held)


# Modules that are not imported yet: changed when they are. Nothing is imported for our sake.


class AroundImport:
    """An import finder that finds nothing by itself: it is there while a module that is meant is loaded.

    ``load(module, execute)`` is called in place of the loader's ``execute(module)``.
    """

    def __init__(
        self,
        is_meant: Callable[[str], bool],
        load: Callable[[ModuleType, Callable[[ModuleType], None]], None],
    ) -> None:
        self._is_meant = is_meant
        self._load = load
        self._searched: set[tuple[str, int]] = set()
        """Names that the finders after this one are searching for now, with the thread."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not self._is_meant(name) or (name, get_ident()) in self._searched:
            return None
        self._searched.add((name, get_ident()))
        try:
            with guard.Swallowing(f"wait for {name}"):
                finders = [each for each in sys.meta_path if each is not self and hasattr(each, "find_spec")]
                specs = (each.find_spec(name, path, target) for each in finders)
                spec: ModuleSpec | None = next((each for each in specs if each is not None), None)
                if spec is not None and hasattr(spec.loader, "exec_module"):
                    self._prepare(spec)
                return spec
            return None
        finally:
            self._searched.discard((name, get_ident()))

    def _prepare(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            try:
                del loader.exec_module  # the loader is as it was before anything of the module runs
            except AttributeError:
                pass
            if module.__name__ == spec.name:
                self._load(module, execute)
            else:  # a zip file has one loader for all of its modules
                execute(module)

        loader.exec_module = exec_module


def after_import(names: Sequence[str], patch: Callable[[str, ModuleType], None]) -> AroundImport:
    """Return a finder that patches each of these modules right after its import."""

    def load(module: ModuleType, execute: Callable[[ModuleType], None]) -> None:
        execute(module)
        patch(module.__name__, module)

    return AroundImport(frozenset(names).__contains__, load)
