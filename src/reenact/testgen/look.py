"""``python -m reenact.testgen.look``: runs a case again from its fixture and tells what happened.

It is told of the case as JSON on stdin, and answers with one line of JSON on the descriptor that it is given:
what the agent prints goes elsewhere.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import sys
from typing import Any

from ..capture.calls.failure import is_agents
from ..capture.recorder.jsonable import jsonable
from ..capture.runs.entry import ASGI
from ..errors import Diverged, ReenactError
from ..playback.replay.entry import Entry, arguments, call_of, resolve
from ..playback.replay.web_app import Response
from ..testing.reenactment import Reenactment
from .literals import is_plain

_LONGEST = 4_000


def main() -> None:
    asked = json.load(sys.stdin)
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    module = asked["entry"].removeprefix(ASGI).partition(":")[0]
    is_installed = importlib.util.find_spec(module.partition(".")[0]) is not None
    sys.path.insert(0, asked["folder"])
    json.dump({"installed": is_installed, **_looked(asked)}, out)
    out.flush()


def _looked(asked: dict[str, Any]) -> dict[str, Any]:
    run = Reenactment(asked["trace"], live_tools=asked["live"], rebase=asked["rebase"])
    told: dict[str, Any] = {}
    try:
        run.begin()
        recording = run.recorded.recording
        found = Entry.of(recording)
        entry = Entry(asked["entry"], None, found.input if found is not None else recording.input)
        told |= _form(entry)
        _call(entry, told)
        run.finish()
        told["problems"] = run.problems()
    except Diverged as exc:
        told["problems"] = run.problems() or [str(exc)]
    except ReenactError as exc:
        told["unusable"] = str(exc)
    finally:
        run.end()
    return told


def _form(entry: Entry) -> dict[str, Any]:
    """Return how the function is to be called."""
    found = resolve(entry)
    if entry.is_app:
        return {}
    beneath = inspect.unwrap(found) if callable(found) else found
    form = "plain"
    if inspect.iscoroutinefunction(beneath):
        form = "async"
    elif inspect.isgeneratorfunction(beneath):
        form = "generator"
    return {"form": form, "direct": not inspect.isasyncgenfunction(beneath) and _takes_plain(beneath, entry)}


def _takes_plain(function: Any, entry: Entry) -> bool:
    """True if the recorded input can be written down as the arguments of a call."""
    args, kwargs = arguments(function, entry.input, entry.place[1])
    given = dict(entry.input)
    kinds = {each.kind for each in inspect.signature(function).parameters.values()}
    odd = kinds & {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL}
    return not odd and all(is_plain(value) for value in [*args, *kwargs.values(), *given.values()])


def _call(entry: Entry, told: dict[str, Any]) -> None:
    try:
        result = call_of(entry)()
    except Exception as exc:
        if isinstance(exc, ReenactError):
            raise
        told["raised"] = _raised(exc)
        return
    if isinstance(result, Response):
        told["status"] = result.status
        told["text"] = result.text[:_LONGEST]
        if result.exception is not None:
            told["raised"] = _raised(result.exception)
        return
    if type(result) in (str, int, float, bool, dict, list, type(None)):
        plain = jsonable(result)
        if plain == result and len(json.dumps(plain)) <= _LONGEST:
            told["result"] = plain


def _raised(exc: Exception) -> dict[str, str]:
    """Return where an exception's class is imported from; of one of the agent's own the nearest builtin."""
    for kind in type(exc).__mro__:
        top = kind.__module__.partition(".")[0]
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if kind.__module__ == "builtins" or ("." not in kind.__qualname__ and file and not is_agents(file)):
            is_public = getattr(sys.modules.get(top), kind.__name__, None) is kind
            return {"module": top if is_public else kind.__module__, "name": kind.__name__}
    return {"module": "builtins", "name": "Exception"}


if __name__ == "__main__":
    main()
