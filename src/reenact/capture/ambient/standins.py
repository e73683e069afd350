"""Stand-ins for five of Python's modules, for a module whose clock and random numbers are recorded.

Each is the module itself but for a few names. A datetime's class is a class of its own, which makes and
recognises genuine datetimes, and counts as equal to the genuine class.
"""

from __future__ import annotations

import datetime as real_datetime
import random as real_random
import secrets as real_secrets
import time as real_time
import uuid as real_uuid
from types import ModuleType
from typing import Any

from .values import drawn, drawn_uuid

_NUMBER = (int, float)


class _Alike(ModuleType):
    """A module with some names of its own; all others are those of the real one, to be set there, too."""

    def __init__(self, real: ModuleType, names: dict[str, Any]) -> None:
        super().__init__(real.__name__, real.__doc__)
        vars(self).update({**names, "_Alike__real": real, "_Alike__own": frozenset(names)})

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__own:
            super().__setattr__(name, value)
        else:
            setattr(self.__real, name, value)

    def __delattr__(self, name: str) -> None:
        if name in self.__own:
            super().__delattr__(name)
        else:
            delattr(self.__real, name)

    def __dir__(self) -> list[str]:
        return dir(self.__real)

    def __repr__(self) -> str:
        return repr(self.__real)


def _time() -> float:
    value: float = drawn("time.time", real_time.time, _NUMBER)
    return value


def _time_ns() -> int:
    value: int = drawn("time.time_ns", real_time.time_ns, int)
    return value


def _gmtime(seconds: float | None = None) -> real_time.struct_time:
    return real_time.gmtime(_time() if seconds is None else seconds)


def _localtime(seconds: float | None = None) -> real_time.struct_time:
    return real_time.localtime(_time() if seconds is None else seconds)


def _ctime(seconds: float | None = None) -> str:
    return real_time.ctime(_time() if seconds is None else seconds)


def _asctime(*parts: Any) -> str:
    return real_time.asctime(*(parts or (_localtime(),)))


def _strftime(form: str, *parts: Any) -> str:
    return real_time.strftime(form, *(parts or (_localtime(),)))


class _OfReal(type):
    """The class of a stand-in for a class: what is one of the real kind is one of this."""

    _real: type

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls._real) if cls in _STAND_INS else super().__instancecheck__(value)

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls._real) if cls in _STAND_INS else super().__subclasscheck__(kind)

    def __eq__(cls, other: object) -> bool:
        return cls is other or (cls in _STAND_INS and other is cls._real)

    def __hash__(cls) -> int:
        return hash(cls._real) if cls in _STAND_INS else type.__hash__(cls)


_STAND_INS: list[type] = []


class _Date(real_datetime.date, metaclass=_OfReal):
    _real = real_datetime.date

    def __new__(cls, *args: Any, **named: Any) -> Any:
        return real_datetime.date(*args, **named) if cls is _Date else super().__new__(cls, *args, **named)

    @classmethod
    def today(cls) -> Any:
        return cls.fromtimestamp(_time())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(real_datetime.date if source is _Date else source)


class _Datetime(real_datetime.datetime, metaclass=_OfReal):
    _real = real_datetime.datetime

    def __new__(cls, *args: Any, **named: Any) -> Any:
        if cls is _Datetime:
            return real_datetime.datetime(*args, **named)
        return super().__new__(cls, *args, **named)

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return cls.fromtimestamp(_time(), tz)

    @classmethod
    def today(cls) -> Any:
        return cls.fromtimestamp(_time())

    @classmethod
    def utcnow(cls) -> Any:
        return cls.fromtimestamp(_time(), real_datetime.UTC).replace(tzinfo=None)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return handler(real_datetime.datetime if source is _Datetime else source)


for _kind in (_Date, _Datetime):
    _kind.__name__ = _kind.__qualname__ = _kind._real.__name__
    _kind.__module__ = "datetime"
    _STAND_INS.append(_kind)


class _Random(real_random.Random):
    """All functions of ``random`` on values that are drawn; a new one comes of Python's shared generator."""

    def random(self) -> float:
        value: float = drawn("random.random", real_random.random, _NUMBER)
        return value

    def getrandbits(self, k: int, /) -> int:
        value: int = drawn(f"random.getrandbits({k})", lambda: real_random.getrandbits(k), int)
        return value

    def seed(self, *args: Any, **named: Any) -> None:
        self.gauss_next = None
        if hasattr(self, "_is_initialised"):
            real_random.seed(*args, **named)
        self._is_initialised = True

    def getstate(self) -> Any:
        return real_random.getstate()

    def setstate(self, state: Any) -> None:
        real_random.setstate(state)


def _token_hex(nbytes: int | None = None) -> str:
    text: str = drawn("secrets.token_hex", lambda: real_secrets.token_hex(nbytes), str)
    return text


def _token_urlsafe(nbytes: int | None = None) -> str:
    text: str = drawn("secrets.token_urlsafe", lambda: real_secrets.token_urlsafe(nbytes), str)
    return text


def _randbelow(exclusive_upper_bound: int) -> int:
    bound = exclusive_upper_bound
    value: int = drawn(f"secrets.randbelow({bound})", lambda: real_secrets.randbelow(bound), int)
    return value


def _chosen(seq: Any) -> Any:
    return seq[_randbelow(len(seq))]


def stand_ins() -> dict[str, ModuleType]:
    """Return the stand-ins by the module's name."""
    chance = _Random()
    of_chance = {
        name: getattr(chance, name)
        for name, value in vars(real_random).items()
        if getattr(value, "__self__", None) is real_random._inst
    }
    return {
        "time": _Alike(
            real_time,
            {
                "time": _time, "time_ns": _time_ns, "gmtime": _gmtime, "localtime": _localtime,
                "ctime": _ctime, "asctime": _asctime, "strftime": _strftime,
            },
        ),
        "datetime": _Alike(real_datetime, {"datetime": _Datetime, "date": _Date}),
        "uuid": _Alike(
            real_uuid,
            {
                "uuid4": lambda: drawn_uuid("uuid.uuid4", "uuid4"),
                "uuid1": lambda node=None, clock_seq=None: drawn_uuid("uuid.uuid1", "uuid1", node, clock_seq),
            },
        ),
        "random": _Alike(real_random, of_chance),
        "secrets": _Alike(
            real_secrets,
            {
                "token_hex": _token_hex, "token_urlsafe": _token_urlsafe,
                "randbelow": _randbelow, "choice": _chosen,
            },
        ),
    }  # fmt: skip
