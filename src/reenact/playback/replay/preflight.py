"""Checks before a replay: which tools the recording answers, and which would run again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Mapping

from ...capture.seams.install import ALL as ALL_HTTP
from ...capture.seams.install import MODELS, TOOLS_OFF, TOOLS_VARIABLE
from ...capture.tools.places import places_of
from ...errors import UsageError
from ...recording.calls import HTTP as HTTP_CALL
from ...recording.calls import MODEL, TOOL, Call
from ...recording.recording import Recording
from ...schema import FOUND, FRAMEWORKS
from ...settings import tool_functions
from ...tracefile.events.text import count
from ...wire.json_values import as_text, canonical, mapping
from ...wire.results import CONTRADICTED, comparable
from ...wire.routes import HTTP, OTHER, host_of, port_of
from ..effects import IRREVERSIBLE, WRITE, effect_of
from ..matching.recorded_answers import REBUILT
from ..matching.request import tools_of
from ..matching.tape import NEVER, Tape
from ..refusal import ALL, LIVE_TOOLS, Need
from .side_effect_guard import is_here

KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY", "CO_API_KEY")
"""SDKs require one although no provider sees it."""


def model_hosts(recording: Recording) -> list[str]:
    """Return the hosts of the recorded calls to model APIs, so that they are recognised in a replay."""
    others = (call.begin for call in recording.calls() if call.kind == HTTP_CALL and call.begin is not None)
    urls = [begin.url for begin in others if begin.sort not in (HTTP, OTHER) and type(begin.url) is str]
    return sorted({host_of(url) for url in [*_model_urls(recording), *urls]})


def model_ports(recording: Recording) -> tuple[int, ...]:
    """Return the ports of this machine where the recorded model listened."""
    here = {url for url in _model_urls(recording) if is_here(host_of(url))}
    return tuple(sorted({port for port in map(port_of, here) if port is not None}))


def recorded_http(recording: Recording) -> str:
    """Return which traffic was recorded (``record_http`` of ``install``), for a replay to answer the same."""
    is_all = any(call.begin is not None and call.begin.sort == HTTP for call in recording.calls())
    return ALL_HTTP if is_all else MODELS


def _model_urls(recording: Recording) -> list[str]:
    urls = [call.begin.url for call in recording.calls() if call.kind == MODEL and call.begin is not None]
    return [url for url in urls if type(url) is str]


def named_functions(recording: Recording, folder: str | None = None) -> str:
    """Return the functions that are named for tools, for the processes of a re-run: when it was recorded, in
    the settings, in the environment. Looking for functions cannot be switched off here: tools would run."""
    recorded, named = recording.start_fields.get("tools"), os.environ.get(TOOLS_VARIABLE, "")
    found = [each for each in recorded if type(each) is str] if type(recorded) is list else []
    found += [f"{name}={place}" for name, place in tool_functions(folder).items()]
    found += named.split(",") if named != TOOLS_OFF else []
    return ",".join(filter(None, map(_checked_place, found)))


def _checked_place(text: str) -> str:
    """Return the name of a function as it stands, "" if it is none: a trace may say anything."""
    try:
        return text if places_of(text) else ""
    except UsageError:
        return ""


def unanswered(recording: Recording) -> dict[str, int]:
    """Return the tools that the recording cannot answer, and how often they ran."""
    return dict(Counter(call.tool or "?" for call in unanswered_calls(recording)))


def unanswered_calls(recording: Recording) -> list[Call]:
    """Return the tool calls that a replay would run: known only from model requests, or doubtful.

    A tool that the model invented did not run, nor one that the program answered by itself. Any other may
    have run, even without a tool result: some frameworks report it as plain text.
    """
    calls = [call for call in recording.calls(derived=True) if call.kind == TOOL and not call.can_answer]
    own = set(answered_by_program(recording))
    return [
        call for call in calls if call not in own and (not call.is_open or not _is_invented(call, recording))
    ]


def answered_by_program(recording: Recording) -> list[Call]:
    """Return the tool uses that the program answered from a cache of its own: its function is watched and was
    not called, and the model was sent what it was sent for an earlier use with equal arguments.

    Nothing runs for them in a replay: if the function is called after all, no recorded call answers it.
    """
    earlier: dict[tuple[str | None, str], set[str]] = {}
    found = []
    for call in recording.calls(derived=True):
        if call.kind != TOOL:
            continue
        key = call.tool, _loosely(call.args)
        if not call.derived:
            if call.source in (FOUND, *FRAMEWORKS) and call.can_answer and call.sent is not None:
                filled_in = {**mapping(call.args), **mapping(call.event.stored_fields.get("injected"))}
                for each in (key, (call.tool, _loosely(filled_in))):
                    earlier.setdefault(each, set()).add(comparable(call.sent.value))
        elif not call.is_open and comparable(call.result) in earlier.get(key, ()):
            found.append(call)
    return found


def _loosely(args: object) -> str:
    """Return arguments in a form in which "2" and 2 are equal: a program may convert them before it looks."""
    if type(args) is not dict:
        return canonical(args)
    return canonical({name: as_text(value).lower() for name, value in args.items()})


NOT_SENT = "what it returned is not what the model was sent"
OTHER_ARGUMENTS = "it had other arguments than the model sent, and its result cannot be compared"


def doubt_of(call: Call) -> str | None:
    """Return why the record of a tool that was found must not answer."""
    if call.derived or call.can_answer:
        return None
    return NOT_SENT if call.verdict == CONTRADICTED else OTHER_ARGUMENTS


def _is_invented(call: Call, recording: Recording) -> bool:
    """True if the request offered no tool of that name."""
    request = recording.request_of(call.parent or "")
    if request is None:
        return False
    return call.tool not in tools_of(request.body)


def known_tools(recording: Recording) -> set[str]:
    """Return the tools of a run: those it recorded, and those that would run again."""
    recorded = {call.tool for call in recording.calls() if call.tool is not None}
    return recorded | set(unanswered(recording))


def check_names(allowed: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise UsageError for the first name that is not a known tool."""
    unknown = [name for name in allowed if name not in known and name != ALL]
    if unknown:
        names = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"no tool {unknown[0]!r} is known from {where}", hint=f"its tools: {names}; or {ALL}"
        )


def live_tools(recording: Recording, allowed: Iterable[str], offered: Iterable[str] = ()) -> list[str]:
    """Return the names of the tools that a user allows to run: ``all`` are those that cannot be answered.

    UsageError for a name that is no tool of the run. ``offered`` are further tools that may be named:
    offered to the model but never called.
    """
    check_names(allowed, {*known_tools(recording), *offered}, recording.name)
    would_run = unanswered(recording) if ALL in allowed else {}
    return sorted({*would_run, *allowed} - {ALL})


def need_of_tools(calls: Iterable[Call], allowed: Container[str]) -> Need | None:
    """Return what is needed for the calls of tools that the recording cannot answer."""
    refused: dict[str, list[Call]] = {}
    for call in calls:
        if call.tool not in allowed:
            refused.setdefault(call.tool or "?", []).append(call)
    if not refused or ALL in allowed:
        return None
    listed = ", ".join(f"{name} ({len(each)}×{_doubts(each)})" for name, each in refused.items())
    return Need(
        f"the recording cannot answer for these tools, so they would run again: {listed}",
        LIVE_TOOLS,
        tuple(refused),
        "only the results that the model got are recorded of them: decorate them with @tap.tool and record"
        " again to have them answered",
    )


def _doubts(calls: Iterable[Call]) -> str:
    return "".join(f": {why}" for why in dict.fromkeys(filter(None, map(doubt_of, calls))))


# Tools that are recorded, and what is not as usual about their answers.


def tools_calling_models(tape: Tape, effects: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the tools that called a model: agents, whose code runs while their calls are answered.

    Answering for one would leave the recorded calls inside it unmade. One that is declared to change
    something is answered all the same: nothing may run twice unasked.
    """
    found = dict.fromkeys(
        call.tool
        for call in tape.calls
        if call.kind == TOOL
        and call.event.stored_fields.get("source") != "mcp"  # there is no function that could run
        and effect_of(call.tool, call.event.effect, effects or {}) not in (WRITE, IRREVERSIBLE)
        and any(inner.kind == MODEL for inner in tape.inside(call))
    )
    return tuple(name for name in found if name is not None)


def notes_on_tools(
    tape: Tape, live: Container[str], spans: Container[str], *, before: float = NEVER
) -> list[str]:
    """Return what a user should know of the answers of tools before a run starts; ``before`` is the cut."""
    lossy: dict[str, Counter[str]] = {}
    plain: Counter[tuple[str, str]] = Counter()
    calling_models: dict[str, None] = {}
    for call in tape.calls:
        if call.kind == TOOL and call.tool is not None and call.begin < before:
            if call.tool in spans:
                calling_models[call.tool] = None
            elif call.tool not in live and (reasons := call.answer.lossy):
                lossy.setdefault(call.tool, Counter())[", ".join(reasons)] += 1
            elif call.tool not in live and (kind := call.answer.type) is not None and kind not in REBUILT:
                plain[call.tool, kind] += 1
    notes = [
        f"tool {name} calls a model, so its code runs; the calls in it are answered"
        for name in calling_models
    ]
    cached = Counter(call.tool or "?" for call in answered_by_program(tape.recording))
    notes += [
        f"{count(times, 'use')} of tool {name} had its result from the program itself, as from a cache:"
        " if the tool is called now, it does not run"
        for name, times in cached.items()
        if name not in live
    ]
    notes += [
        f"{count(times, 'result')} of tool {name} cannot be rebuilt as {kind}: the code gets the plain data;"
        f" {LIVE_TOOLS} {name} runs the tool instead, a return annotation has it rebuilt"
        for (name, kind), times in plain.items()
    ]
    for name, reasons_of in lossy.items():
        for why, times in reasons_of.items():
            notes.append(
                f"{count(times, 'result')} of tool {name} cannot be rebuilt ({why}):"
                f" the code gets a stand-in; {LIVE_TOOLS} {name} runs the tool instead"
            )
    return notes
