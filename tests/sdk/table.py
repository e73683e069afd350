"""The table: SDK x method x sync or async x plain or stream x outcome.

A case is a small function of a Site. What kind of function it is says what kind of call it makes:
a function returns what the call gave, a generator yields the chunks of a stream; `async` means async.
"""

from __future__ import annotations

import importlib.util
import inspect
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
LONG = os.environ.get("REENACT_LONG") == "1"
PATIENT = 20.0
IMPATIENT = 0.08


def untouched(client: T) -> T:
    return client


@dataclass(frozen=True, slots=True)
class Site:
    """Where a case's client points, how patient it is, and what is done to the client once it exists."""

    url: str
    timeout: float = PATIENT
    retries: int = 0
    hand: Callable[[Any], Any] = untouched

    def client(self, made: T) -> T:
        """Every case passes its client through here, so that a recorded run can wrap it."""
        handed: T = self.hand(made)
        return handed


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call goes: what the provider does, and how patient the client is."""

    scenario: str
    fails: bool
    """Whether the user's code sees an exception; a case says where its SDK differs."""
    timeout: float = PATIENT
    retries: int = 0


PLAIN = {
    "ok": Outcome("", fails=False),
    "gzip": Outcome("gzip", fails=False),
    "retried": Outcome("status-429,times-1", fails=False, retries=2),
    "error": Outcome("status-400", fails=True),
    "overloaded": Outcome("status-529", fails=True),
    "cut": Outcome("reset-1", fails=True),
    "closed": Outcome("close-1", fails=True),
    "refused": Outcome("reset-0", fails=True),
    "timeout": Outcome("silent", fails=True, timeout=IMPATIENT),
    "cancelled": Outcome("silent", fails=True),
}
STREAM = {
    "ok": Outcome("", fails=False),
    "gzip": Outcome("gzip", fails=False),
    "shredded": Outcome("unicode,shred-7", fails=False),
    "drip": Outcome("drip-1", fails=False),
    "retried": Outcome("status-429,times-1", fails=False, retries=2),
    "error": Outcome("status-400", fails=True),
    "cut": Outcome("reset-3", fails=True),
    "closed": Outcome("close-3", fails=True),
    "malformed": Outcome("malformed-3", fails=True),
    "error inside": Outcome("error-3", fails=True),
    "started twice": Outcome("restart", fails=False),
    "abandoned": Outcome("hang-3", fails=False),
    "timeout": Outcome("hang-3", fails=True, timeout=IMPATIENT),
    "cancelled": Outcome("hang-1", fails=True),
}
ASYNC_ONLY = {"cancelled"}
CORE = ("ok", "error", "cut", "abandoned", "timeout", "cancelled")
FULL = tuple(dict.fromkeys([*PLAIN, *STREAM]))
ONLY_OK = ("ok",)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: what to call and how it goes, or why there is nothing to call."""

    sdk: str
    method: str
    mode: str
    shape: str
    outcome: str
    scenario: str = ""
    play: Callable[[Site], Any] | None = None
    unsupported: str = ""
    fails: bool = False

    def __str__(self) -> str:
        return "-".join((self.sdk, self.method, self.mode, self.shape, self.outcome)).replace(" ", "_")

    @property
    def terms(self) -> Outcome:
        return (PLAIN if self.shape == "plain" else STREAM)[self.outcome]

    def site(self, url: str, hand: Callable[[Any], Any], patience: float = 1.0) -> Site:
        return Site(url, self.terms.timeout * patience, self.terms.retries, hand)


CELLS: list[Cell] = []
NEEDS: dict[str, tuple[str, ...]] = {}
"""The modules an SDK's cases import."""


def needs(sdk: str, *modules: str) -> None:
    NEEDS[sdk] = modules


def missing(sdk: str) -> list[str]:
    return [module for module in NEEDS[sdk] if not _found(module)]


def _found(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its package is missing
        return False


def case(
    sdk: str,
    method: str,
    outcomes: Iterable[str] = CORE,
    *,
    answer: str = "text",
    scenarios: dict[str, str] | None = None,
    unsupported: dict[str, str] | None = None,
    fails: dict[str, bool] | None = None,
) -> Callable[[Callable[[Site], Any]], Callable[[Site], Any]]:
    """Add a function's cells.

    `scenarios` and `fails` replace an outcome's own; `unsupported` gives the outcomes there cannot be, and why.
    """

    def add(play: Callable[[Site], Any]) -> Callable[[Site], Any]:
        mode, shape = _kind(play)
        terms = PLAIN if shape == "plain" else STREAM
        for outcome in outcomes:
            if outcome not in terms or (mode == "sync" and outcome in ASYNC_ONLY):
                continue
            why = (unsupported or {}).get(outcome, "")
            expected = (fails or {}).get(outcome, terms[outcome].fails)
            fault = (scenarios or {}).get(outcome, terms[outcome].scenario)
            scenario = ",".join(word for word in (answer, fault) if word)
            CELLS.append(
                Cell(sdk, method, mode, shape, outcome, scenario, None if why else play, why, expected)
            )
        return play

    return add


def unsupported(sdk: str, method: str, mode: str, shape: str, why: str) -> None:
    """Say that an SDK has no such call."""
    CELLS.append(Cell(sdk, method, mode, shape, "ok", unsupported=why))


def _kind(play: Callable[[Site], Any]) -> tuple[str, str]:
    if inspect.isasyncgenfunction(play):
        return "async", "stream"
    if inspect.iscoroutinefunction(play):
        return "async", "plain"
    return "sync", "stream" if inspect.isgeneratorfunction(play) else "plain"
