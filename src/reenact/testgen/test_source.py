"""The source of a generated test: a small readable file; each assertion is one line that can be deleted."""

from __future__ import annotations

import ast
import builtins
import json
import os
import re
from typing import Any

from ..errors import UsageError
from ..messages.whole import placeholders
from .case import APP, CODE, COMMAND, PROMPT, PROVES, TOOL_KIND, Case, comes_from
from .literals import Source, call, is_plain, literal, quoted

_SHORT, _LONG_INPUT = 160, 3_000
_IMPLIED = ("host", "user-agent", "accept", "content-length")
AT_LEAST = 0.8
"""The share of a prompt's samples that must pass."""


def module_text(cases: list[Case], stem: str, folder: str, *, samples: int) -> str:
    """Return the test file for some cases; ``folder`` is its folder, ``stem`` its name."""
    origins = [f"{case.name}: {_harmless(comes_from(case))}" for case in cases]
    head = [
        '"""Made by `reenact test` from recorded runs. It is yours: change it as you like.',
        "",
        *origins,
        '"""',
        "",
    ]
    bodies = [_test(case, stem, folder, samples) for case in cases]
    code = "\n\n\n".join(bodies)
    paths = sorted(
        {case.folder for case in cases if case.sort != COMMAND and not case.observed.get("installed")}
    )
    standard = ["import asyncio"] if "asyncio." in code else []
    standard += ["import sys"] if paths else []
    standard += ["from pathlib import Path"] if paths or "HERE" in code else []
    used = [name for name in _HELPERS if re.search(rf"(?<![\w.]){name}\(", code)]
    groups = [sorted(standard, key=lambda line: line.startswith("from")), _other_imports(cases, code)]
    groups += [[f"from reenact.testing import {', '.join(used)}"]] if used else []
    imports = "\n\n".join("\n".join(group) for group in groups if group)
    rest = [f"sys.path.insert(0, {_from_here(path, folder)})  # where the code is" for path in paths]
    rest += ["HERE = Path(__file__).parent"] if "HERE" in code else []
    parts = ["\n".join(head), imports, *(["\n" + "\n".join(rest)] if rest else []), f"\n\n{code}\n"]
    text = "\n".join(part for part in parts if part)
    _check_shape(text, cases)
    return text


_NODES = (
    ast.Module, ast.Expr, ast.Constant, ast.Import, ast.ImportFrom, ast.alias, ast.FunctionDef, ast.arguments,
    ast.arg, ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Assign, ast.Assert, ast.Compare, ast.Dict,
    ast.List, ast.Tuple, ast.Set, ast.Subscript, ast.BinOp, ast.Div, ast.UnaryOp, ast.USub,
    ast.expr_context, ast.cmpop,
)  # fmt: skip
_NAMES = frozenset(
    "HERE Path __file__ asyncio done float json len list once pytest reenact_live reenact_run response result"
    " run str sys trace".split()
)


def _check_shape(text: str, cases: list[Case]) -> None:
    """Raise UsageError unless a module consists of what is written here and of literals.

    Everything that comes from a trace is escaped; this finds out if it was not.
    """
    names = _NAMES | set(_HELPERS) | {_raised_name(case) for case in cases}
    names |= {case.target.partition(":")[2].removesuffix("()").partition(".")[0] for case in cases}
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as exc:
        raise UsageError(f"the test would not be Python: {exc}", hint=_REPORT) from exc
    functions = [node.name for node in module.body if isinstance(node, ast.FunctionDef)]
    odd = [node for node in ast.walk(module) if not isinstance(node, _NODES)]
    odd += [node for node in ast.walk(module) if isinstance(node, ast.Name) and node.id not in names]
    if odd or functions != [case.name for case in cases]:
        raise UsageError("the test would hold code that comes from the trace", hint=_REPORT)


_REPORT = "nothing is written; please report it, with the trace if you can"

_HELPERS = (
    "assert_tools_alike", "assert_trajectory", "assert_within",
    "call", "fork_command", "replay_command", "send",
)  # fmt: skip


def _harmless(text: str) -> str:
    """Return recorded text without characters that could end a docstring."""
    return "".join(char if char.isprintable() and char not in '"\\' else "?" for char in text)


def _other_imports(cases: list[Case], code: str) -> list[str]:
    raised = [case.observed["raised"] for case in cases if case.is_failed and "raised" in case.observed]
    found = {
        f"from {each['module']} import {each['name']}" for each in raised if each["module"] != "builtins"
    }
    return [*(["import pytest"] if "pytest." in code else []), *sorted(found)]


def _from_here(path: str, folder: str) -> str:
    way = os.path.relpath(path, folder)
    if way == ".":
        return "str(Path(__file__).parent)"
    ups = way.split(os.sep)
    if all(part == ".." for part in ups):
        return f"str(Path(__file__).parents[{len(ups)}])"
    return f"str(Path(__file__).parent / {quoted(way.replace(os.sep, '/'))})"


def _test(case: Case, stem: str, folder: str, samples: int) -> str:
    trace = f"traces/{stem}/{case.name}.jsonl"
    lines = [f'"""{PROVES[case.kind]}"""']
    if case.kind == PROMPT:
        lines += _prompt_body(case, trace, folder, samples)
    elif case.sort == COMMAND:
        lines += _command_body(case, trace, folder)
    else:
        lines += [*_imported(case), "", *_call_lines(case, 4), *_assertions(case, "reenact_run")]
    body = "\n".join(f"    {line}" if line else "" for line in lines)
    arguments = {CODE: "reenact_run", TOOL_KIND: "reenact_run", PROMPT: "reenact_live"}[case.kind]
    if case.sort == COMMAND and case.kind != PROMPT:
        arguments = ""
    return f"{_marks(case, trace)}def {case.name}({arguments}):\n{body}"


def _marks(case: Case, trace: str) -> str:
    marks = []
    if case.kind == PROMPT:
        marks.append("@pytest.mark.live")
    elif case.sort != COMMAND:
        more = f", live_tools={literal(case.tools_to_run)}" if case.tools_to_run else ""
        if case.kind == TOOL_KIND:
            more = f', guard="none"{more}, rebase=True'
        marks.append(f"@pytest.mark.reenact({quoted(trace)}{more})")
    if case.kind == CODE and case.is_failed:
        raises = f"raises={_raised_name(case)}, "
        reason = quoted(case.failed)
        marks.append(f"@pytest.mark.xfail(strict=True, {raises}reason={reason})")
    return "".join(f"{mark}\n" for mark in marks)


def _raised_name(case: Case) -> str:
    """Return the exception class of the failure, so that xfail accepts no other failure."""
    raised = case.observed.get("raised")
    if raised is not None:
        return str(raised["name"])
    error = case.recording.error
    if case.observed or error is None or case.sort == COMMAND:
        return "AssertionError"
    known = getattr(builtins, str(error.type), None)
    return str(error.type) if isinstance(known, type) and issubclass(known, Exception) else "Exception"


def _imported(case: Case) -> list[str]:
    module, _, name = case.target.partition(":")
    return [f"from {module} import {name.removesuffix('()').partition('.')[0]}"]


def _call_lines(case: Case, outer: int, *, is_checked: bool = True) -> list[str]:
    """Return the lines that repeat the run, with its outcome in ``result`` or ``response``."""
    if case.sort == APP:
        source = _request(case, outer)
        return (f"response = {source}" if is_checked else source).split("\n")
    keeps = is_checked and bool(_of_result(case))
    source = _function_call(case, outer, "result = " if keeps else "")
    return (f"result = {source}" if keeps else source).split("\n")


def _function_call(case: Case, outer: int, before: str) -> str:
    name = case.target.partition(":")[2]
    if not is_plain(case.input) or len(repr(case.input)) > _LONG_INPUT:
        return f"call({name}, **{_input_of(case)})"
    if not case.observed.get("direct"):
        return call("call", [Source(name)], case.input, outer=outer, before=before)
    around = {"plain": "", "async": "asyncio.run", "generator": "list"}[case.observed["form"]]
    source = call(name, (), case.input, outer=outer, before=f"{before}{around}()" if around else before)
    return f"{around}({source})" if around else source


def _request(case: Case, outer: int) -> str:
    request = case.input
    sent = request.get("sent") or {}
    headers = {
        name: value
        for name, value in (request.get("headers") or {}).items()
        if name not in _IMPLIED and not (name == "content-type" and "body" in request)
    }
    options = {"json": request.get("body"), "body": sent.get("body"), "headers": headers}
    options["root_path"] = request.get("root_path")
    options = {
        name: value for name, value in options.items() if value or (name == "json" and "body" in request)
    }
    app = Source(case.target.partition(":")[2])
    if sent.get("parts") or not is_plain(options) or len(repr(options)) > _LONG_INPUT:
        return f"send({app}, recorded={_input_of(case)})"
    place = [app, request.get("method", "GET"), request.get("url", "/")]
    return call("send", place, options, outer=outer, before="response = ")


def _input_of(case: Case) -> str:
    return f"{'run' if case.kind == PROMPT else 'reenact_run'}.recorded.recording.input"


def _assertions(case: Case, run: str) -> list[str]:
    if case.kind == TOOL_KIND:
        return [f"assert_tools_alike({run})"]
    lines = []
    if case.sort == APP:
        status = case.observed.get("status")
        is_known = not case.is_failed and status is not None
        lines.append(f"assert response.status == {status}" if is_known else "assert response.status < 500")
    lines += _of_result(case)
    lines += _trajectory(case, run)
    if case.turns:
        lines.append(f"assert_within({run}, turns={case.turns})")
    return lines


def _trajectory(case: Case, run: str) -> list[str]:
    if not case.tools or (case.is_failed and not case.observed):
        return []
    expected = [
        (name, args) if type(args) is dict and args and _is_short(args) else name for name, args in case.tools
    ]
    how = {"how": "any-order"} if case.is_parallel and len(case.tools) > 1 else {}
    return call("assert_trajectory", [Source(run), expected], how).split("\n")


def _is_short(value: Any) -> bool:
    return is_plain(value) and len(repr(value)) <= _SHORT and not placeholders(value)


def _of_result(case: Case) -> list[str]:
    """Return the assertions on the output: equal if short, else a part of it."""
    if case.kind != CODE or case.is_failed or case.observed.get("volatile"):
        return []
    if case.sort == APP:
        return _of_text(case, case.observed.get("text"), "response.text", "response.json()")
    if case.sort == COMMAND:
        printed = [line for line in str(case.observed.get("stdout") or "").splitlines() if line.strip()]
        return [f"assert {quoted(printed[-1][:_SHORT])} in done.stdout"] if printed else []
    if "result" not in case.observed:
        return []
    result = case.observed["result"]
    if result is None or type(result) is bool:
        return [f"assert result is {result}"]
    if type(result) is str:
        return _of_text(case, result, "result", "json.loads(result)")
    return _of_value(result, "result")


def _of_text(case: Case, text: Any, name: str, parsed: str) -> list[str]:
    if type(text) is not str or not text.strip():
        return []
    value = _as_json(text) if parsed.startswith("response") else None
    if type(value) in (dict, list):
        return _of_value(value, parsed)
    if len(text) <= _SHORT:
        return [f"assert {name} == {quoted(text)}"]
    sought = case.final[:80].partition("\n")[0].strip()
    return [f"assert {quoted(sought)} in {name}"] if sought and sought in text else []


def _of_value(value: Any, name: str) -> list[str]:
    if _is_short(value):
        return [f"assert {name} == {literal(value)}"]
    if type(value) is dict:
        return [f"assert {name}.keys() >= {{{', '.join(map(quoted, sorted(value)))}}}"]
    return [f"assert len({name}) == {len(value)}"]


def _command_body(case: Case, trace: str, folder: str) -> list[str]:
    words = [case.target, *case.input]
    more = _where_it_ran(case, folder)
    if case.tools_to_run:
        more["live_tools"] = case.tools_to_run
    if case.kind == TOOL_KIND:
        more["rebase"] = True
    lines = [f"trace = HERE / {quoted(trace)}"]
    lines += f"done = {call('replay_command', [Source('trace'), words], more, before='done = ')}".split("\n")
    if case.kind == TOOL_KIND:
        return [*lines, "assert_tools_alike(done.run, trace)"]
    code = case.observed.get("exit", 0)
    lines.append(f"assert done.returncode == {0 if case.is_failed else code}")
    return (
        lines
        + _of_result(case)
        + _trajectory(case, "done.run")
        + [f"assert_within(done.run, turns={case.turns})"]
    )


def _where_it_ran(case: Case, folder: str) -> dict[str, Any]:
    where = os.path.relpath(case.folder, folder)
    way = f" / {quoted(where.replace(os.sep, '/'))}" if where != "." else ""
    return {"cwd": Source(f"HERE{way}")}


def _prompt_body(case: Case, trace: str, folder: str, samples: int) -> list[str]:
    run, of_run = ("done", "done.run") if case.sort == COMMAND else ("run", "run")
    if case.sort == COMMAND:
        more = _where_it_ran(case, folder) | ({"live_tools": case.live} if case.live else {})
        words: list[Any] = [Source("run.path"), [case.target, *case.input]]
        source = call("fork_command", words, more, outer=8, before="done = ")
        lines = [*f"done = {source}".split("\n"), "assert done.returncode == 0"]
    else:
        lines = _call_lines(case, 8, is_checked=case.sort == APP)
    if case.sort == APP:
        lines.append("assert response.status < 500")
    names = sorted({name for name, _ in case.tools})
    if names and case.blame is None:
        lines.append(f'assert_trajectory({of_run}, {literal(names)}, "subset")')
    value = _as_json(case.final)
    if type(value) is dict:
        lines.append(f"assert json.loads({run}.final).keys() >= {{{', '.join(map(quoted, sorted(value)))}}}")
    else:
        lines.append(f"assert {run}.final  # and what a good answer has: a word, a number, no apology")
    wanted = max(1, int(samples * AT_LEAST))
    allowed = f", live_tools={literal(case.live)}" if case.live and case.sort != COMMAND else ""
    imports = ["import json"] if type(value) is dict else []
    imports += _imported(case) if case.sort != COMMAND else []
    return [
        *([*imports, ""] if imports else []),
        "def once(run):",
        *(f"    {line}" for line in lines),
        "",
        f"reenact_live({quoted(trace)}, once, samples={samples}, at_least={wanted}{allowed})",
    ]


def _as_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
