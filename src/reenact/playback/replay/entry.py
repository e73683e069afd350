"""The entry of a recorded run: find it in the agent's code and call it with the recorded input.

An entry is ``module:function``, or ``asgi:module:app`` for a request to a web application. It is imported
only when the user runs that recording, by ``python -m reenact.playback.replay.entry``, and only from a folder
that the user is in or names: a trace does not choose what is imported.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MethodType, ModuleType
from typing import Any

from ...capture.calls.error_fields import failure, frames, is_agents
from ...capture.recorder.jsonable import to_json
from ...capture.runs.current import process_recorder
from ...capture.runs.entry_point import ASGI, MAIN
from ...capture.runs.run import BENEATH
from ...errors import Diverged, UsageError
from ...messages.whole import Whole, placeholders
from ...recording.recording import Recording
from .report import Input, Report, Unusable
from .start import Plan
from .typed_values import StandIn, as_annotated, hints_of, with_stand_ins
from .web_app import NotStarted, Response, call_asgi, inexact_parts

_HINT = "name the program to run instead: reenact replay RUN -- agent.py"


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry from ``run.start``, and the recorded input."""

    entry: str
    source: str | None = None
    """The script, or the folder of its module."""
    input: Any = None
    lossy: tuple[str, ...] = ()
    """The parts of the input that are not exactly as recorded."""
    folder: str | None = None
    """The user's folder that the code must be in; None if the user named the function."""

    @classmethod
    def of(cls, recording: Recording) -> Entry | None:
        """Return the entry of a run; None if none is recorded."""
        start = recording.start
        entry, source = (recording.start_fields.get(name) for name in ("entry", "entry_from"))
        if start is None or type(entry) is not str or not entry:
            return None
        stored = start.whole_fields.get("input")
        whole = Whole(start)
        value = whole(stored)
        if whole.missing is not None:
            value = with_stand_ins(start.restore_value(stored))
        is_request = entry.startswith(ASGI) and type(value) is dict
        lossy = inexact_parts(value) if is_request else ["secrets in it"] if placeholders(value) else []
        if whole.missing is not None:
            lossy.append(whole.missing.removeprefix("it "))
        return cls(entry, source if type(source) is str else None, value, tuple(lossy))

    @property
    def is_app(self) -> bool:
        return self.entry.startswith(ASGI)

    @property
    def place(self) -> tuple[str, str]:
        """Module and name; UsageError if they cannot be looked up."""
        module, colon, name = self.entry.removeprefix(ASGI).partition(":")
        if not module or not colon or not name:
            raise UsageError(f"its entry {self.entry!r} names no function", hint=_HINT)
        if "<" in name:
            kind = "a lambda" if name.endswith("<lambda>") else "a function inside another function"
            raise UsageError(f"{name} is {kind}, which cannot be found by name", hint=_HINT)
        if module == MAIN and self.source is None:
            raise UsageError(f"{name} was defined in an interactive session", hint=_HINT)
        return module, name


def located(entry: Entry, folder: str | None = None) -> Entry:
    """Return an entry with the place of its code below ``folder``, by default the current one.

    Raises UsageError, and imports nothing, if it is not there.
    """
    folder = os.path.realpath(folder or os.getcwd())
    module, name = entry.place
    source = entry.source if entry.source is not None and _is_below(entry.source, folder) else None
    if module == MAIN:
        script = source or os.path.join(folder, os.path.basename(entry.source or ""))
        if os.path.isfile(script):
            return replace(entry, source=script, folder=folder)
    else:
        top = module.partition(".")[0]
        for place in (source, folder):
            if place is not None and any(map(os.path.exists, (f"{place}/{top}.py", f"{place}/{top}"))):
                return replace(entry, source=place, folder=folder)
        if _is_own(_file_of(top), folder):  # an editable install
            return replace(entry, source=None, folder=folder)
    there = os.path.dirname(entry.source or "") if module == MAIN else entry.source
    raise UsageError(
        f"{module}:{name} is not in {folder}, and code is not imported from elsewhere",
        hint=f"start reenact where the code is, or name the folder: --from {there or 'DIR'}",
    )


def _file_of(top: str) -> str:
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return ""
    return str(spec.origin or next(iter(spec.submodule_search_locations or ()), "")) if spec else ""


def _is_below(path: str, folder: str) -> bool:
    try:
        return f"{os.path.realpath(path)}{os.sep}".startswith(folder + os.sep)
    except ValueError:  # of a trace: a NUL, half a character
        return False


def _is_own(file: str, folder: str) -> bool:
    """True for a file of the user in that folder; not for a library that is installed in it."""
    return os.path.isabs(file) and _is_below(file, folder) and is_agents(file)  # not "frozen", "built-in"


def call_of(entry: Entry) -> Callable[[], Any]:
    """Return the call of an entry, ready to run; UsageError if the function does not exist any more."""
    found = resolve(entry)
    if entry.is_app:
        if type(entry.input) is not dict:
            raise UsageError("the request is not recorded", hint=_why_no_input(entry.input))
        return lambda: call_asgi(found, entry.input)
    return call_with(_beneath(found, entry), entry.input, entry.place[1])


def call_with(function: Callable[..., Any], recorded_input: Any, name: str) -> Callable[[], Any]:
    """Return the call of a function with a recorded input; UsageError if it does not fit."""
    args, kwargs = arguments(function, recorded_input, name)
    return lambda: _finished(function(*args, **kwargs))


def resolve(entry: Entry) -> Any:
    """Return the object that an entry names."""
    name = entry.place[1]
    module = _module(entry)
    if entry.folder is not None and not _is_own(str(getattr(module, "__file__", "")), entry.folder):
        raise UsageError(f"{module.__name__} is not a module in {entry.folder}", hint=_HINT)
    found: Any = module
    for part in name.removesuffix("()").split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            hint = f"was it renamed? {_HINT}"
            raise UsageError(f"there is no {name} in {module.__name__} any more", hint=hint) from None
    return found() if name.endswith("()") else found


def _module(entry: Entry) -> ModuleType:
    name, source = entry.place[0], entry.source
    folder = os.path.dirname(source) if source is not None and source.endswith(".py") else source
    for each in (entry.folder, folder):
        if each is not None and each not in sys.path:
            sys.path.insert(0, each)
    try:
        if name == MAIN and source is not None:
            return _script(source)
        return importlib.import_module(name)
    except Exception as exc:
        place = frames(exc.__traceback__)
        at = f" at {place[0]}" if place and not isinstance(exc, ModuleNotFoundError) else ""
        imported = source if name == MAIN else name
        raise UsageError(
            f"{imported} cannot be imported{at}: {type(exc).__name__}: {exc}",
            hint=f"start it where the code is, with the Python that has its packages; or {_HINT}",
        ) from exc


def _script(path: str) -> ModuleType:
    """Import a script as a module: code under ``__main__`` does not run."""
    name = os.path.basename(path).removesuffix(".py")
    loaded = sys.modules.get(name)
    if loaded is not None and os.path.abspath(str(getattr(loaded, "__file__", ""))) == path:
        return loaded
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _beneath(found: Any, entry: Entry) -> Callable[..., Any]:
    """Return the undecorated function: calling the decorated one would start a run inside this one."""
    name = entry.place[1]
    if not callable(found):
        raise UsageError(f"{name} is not a function any more but a {type(found).__name__}", hint=_HINT)
    if isinstance(found, MethodType):
        return MethodType(getattr(found.__func__, BENEATH, found.__func__), found.__self__)
    function: Callable[..., Any] = getattr(found, BENEATH, found)
    code = getattr(inspect.unwrap(function), "__code__", None)
    if entry.folder is not None and (code is None or not _is_own(code.co_filename, entry.folder)):
        raise UsageError(f"{name} is not a function that is defined in {entry.folder}", hint=_HINT)
    first = next(iter(inspect.signature(function).parameters), None)
    if "." in name and first == "self":
        raise UsageError(f"{name} is a method, and its object is not recorded", hint=_HINT)
    return function


def arguments(
    function: Callable[..., Any], recorded_input: Any, name: str
) -> tuple[list[Any], dict[str, Any]]:
    """Return the recorded input as arguments of the function, each value converted to its annotation."""
    if type(recorded_input) is not dict:
        raise UsageError(
            f"the recorded input of {name} is not its arguments", hint=_why_no_input(recorded_input)
        )
    signature, hints = inspect.signature(function), hints_of(function)
    named = signature.parameters
    if "args" in recorded_input and "args" not in named and recorded_input.keys() <= {"args", "kwargs"}:
        args, kwargs = (
            list(recorded_input["args"]),
            dict(recorded_input.get("kwargs") or {}),
        )  # the recorded call did not fit the signature either
    else:
        bound = inspect.BoundArguments(signature, OrderedDict(_bound(named, hints, recorded_input, name)))
        args, kwargs = list(bound.args), bound.kwargs
    try:
        signature.bind(*args, **kwargs)
    except TypeError as exc:
        raise UsageError(f"{name} cannot be called with the recorded input: {exc}", hint=_HINT) from None
    return args, kwargs


def _bound(
    named: Mapping[str, inspect.Parameter], hints: dict[str, Any], recorded_input: dict[str, Any], name: str
) -> Iterator[tuple[str, Any]]:
    """Yield the recorded arguments in the order of the function's parameters."""
    left = dict(recorded_input)
    for key, parameter in named.items():
        hint = hints.get(key, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            more = {**left, **left.pop(key, {})} if type(left.get(key, {})) is dict else left
            more.pop(key, None)
            yield key, {each: as_annotated(value, hint)[0] for each, value in more.items()}
            left = {}
        elif key in left:
            value = left.pop(key)
            if parameter.kind is parameter.VAR_POSITIONAL:
                yield key, tuple(as_annotated(each, hint)[0] for each in value)
            else:
                yield key, as_annotated(value, hint)[0]
    if left:
        takes = ", ".join(named) or "nothing"
        raise UsageError(
            f"{name} has no parameter {next(iter(left))!r} any more; it takes {takes}", hint=_HINT
        )


def _why_no_input(recorded_input: Any) -> str:
    if isinstance(recorded_input, StandIn) and not {"$none", "$hash"}.isdisjoint(recorded_input.mark):
        return f"content was withheld when it was recorded; {_HINT}"
    return _HINT


def _finished(result: Any) -> Any:
    """Return the final result of a call: run a coroutine, collect a generator."""
    if inspect.iscoroutine(result):
        return asyncio.run(result)
    if inspect.isasyncgen(result):
        return asyncio.run(_all(result))
    return list(result) if inspect.isgenerator(result) else result


async def _all(source: Any) -> list[Any]:
    return [item async for item in source]


# As a program: print the result or response; exit with 1 if the function raised or the application failed.

UNUSABLE = 2


def main() -> int:
    """Repeat the recorded call of the plan; return the exit code."""
    plan = Plan.here()
    report = Report(plan.report)
    try:
        call = _call(plan, report)
    except UsageError as exc:
        return _unusable(report, exc)
    try:
        result = call()
    except NotStarted as exc:
        return _unusable(report, exc)
    if isinstance(result, Response):
        return _answered(result)
    if result is not None:
        print(to_json(result), flush=True)
    return 0


def _call(plan: Plan, report: Report) -> Callable[[], Any]:
    recording = Recording.load(plan.path, plan.run, blobs=plan.blobs)
    entry = Entry.of(recording)
    if entry is None:
        raise UsageError("the recording does not name a function to call")
    entry = located(entry, plan.code_folder)
    try:
        call = call_of(entry)
    except Diverged:
        module, name = entry.place
        whole = (
            f"; or replay all of it: reenact replay {recording.parent_run[:12]}"
            if recording.parent_run
            else ""
        )
        raise UsageError(
            f"{entry.source or module} calls a model or tool when it is imported, before {name} is called",
            hint=f'put code that runs on import under if __name__ == "__main__":{whole}',
        ) from None
    for part in entry.lossy:
        report.note(Input(part))
    return call


def _unusable(report: Report, exc: UsageError) -> int:
    """Report why nothing was called; the supervisor prints it."""
    report.note(Unusable(str(exc), exc.hint))
    return UNUSABLE


def _answered(response: Response) -> int:
    """Print a response, and end the run with the outcome of its handler."""
    if response.exception is not None:
        traceback.print_exception(response.exception)
    sys.stdout.flush()
    sys.stdout.buffer.write(response.body if response.body.endswith(b"\n") else response.body + b"\n")
    sys.stdout.flush()
    fields: dict[str, Any] = {} if response.status is None else {"http_status": response.status}
    is_failed = response.exception is not None or (response.status or 500) >= 500
    error = failure(response.exception)
    if error is not None:
        fields["error"] = error
        process_recorder().emit("error", {"where": "run", "error": error})
    process_recorder().exit("error" if is_failed else "ok", fields)
    return int(is_failed)


if __name__ == "__main__":
    sys.exit(main())
