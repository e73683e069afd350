"""Our own failures: reported once per cause on stderr, counted, and kept away from the agent.

Used around everything capture does. An exception that a signal handler of the agent raised while
we happened to be running is the agent's, and goes through.
"""

from __future__ import annotations

import _signal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_reported: set[str] = set()
MAX_CAUSES = 100
"""After that many different causes we fall silent; something is wrong that one more line will not help."""


def tell(cause: str, sentence: str) -> None:
    """Write one line to stderr, the first time this cause comes up in this process."""
    if cause in _reported or len(_reported) >= MAX_CAUSES:
        return
    _reported.add(cause)
    try:
        sys.stderr.write(f"reenact: {sentence}\n")
        sys.stderr.flush()
    except Exception as exc:
        pass_on(exc)  # else no stderr, a closed or a hostile one: nobody is left to tell


def shown(path: str) -> str:
    """Return a path the way the user would type it: relative below the current folder."""
    try:
        here = os.getcwd() + os.sep
    except OSError:
        return path
    return path.removeprefix(here)


def explain(exc: BaseException) -> str:
    """Return an exception as ``Type: message``, whatever its __str__ does."""
    if isinstance(exc, OSError) and exc.strerror:
        return f"{type(exc).__name__}: {exc.strerror}"
    try:
        return f"{type(exc).__name__}: {exc}"[:300].replace("\n", " ")
    except Exception:
        return type(exc).__name__


def swallow(doing: str, exc: BaseException) -> None:
    """Report a failure of ours and return, or pass on what is really the agent's."""
    pass_on(exc)
    tell(f"{doing}:{type(exc).__name__}", f"could not {doing} ({explain(exc)}). Your agent is unaffected.")


class Swallowing:
    """Around work of ours: what fails in there is reported, and the agent continues."""

    def __init__(self, doing: str) -> None:
        self._doing = doing

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, exc: BaseException | None, traceback: object) -> bool:
        if not isinstance(exc, Exception):
            return False
        swallow(self._doing, exc)
        return True


def pass_on(exc: BaseException) -> None:
    """Raise again what is not ours: an exception from a signal handler, a time-out by alarm for instance.

    To be called in every ``except`` that catches more than our own code can raise.
    """
    if _raised_by_signal_handler(exc.__traceback__):
        raise exc


def _raised_by_signal_handler(tb: TracebackType | None) -> bool:
    codes = set()
    while tb is not None:
        codes.add(tb.tb_frame.f_code)
        tb = tb.tb_next
    for number in _signal.valid_signals():
        handler = _signal.getsignal(number)
        if callable(handler) and _code(handler) in codes:
            return True
    return False


def _code(handler: Any) -> object:
    """Return the code a handler runs: of a function, a method, a partial or an object that can be called."""
    handler = getattr(handler, "func", handler)
    handler = getattr(handler, "__func__", handler)
    called = getattr(type(handler), "__call__", None)  # noqa: B004
    return getattr(handler, "__code__", None) or getattr(called, "__code__", None)


def forget() -> None:
    """Let every cause be reported again; a forked child has a reader of its own."""
    _reported.clear()
