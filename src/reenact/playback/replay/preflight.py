"""Checks before a replay: which tools the recording answers, and which would run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ...capture.seams.install import ALL as ALL_HTTP
from ...capture.seams.install import MODELS
from ...errors import UsageError
from ...recording.calls import HTTP as HTTP_CALL
from ...recording.calls import MODEL, TOOL, Call
from ...recording.recording import Recording
from ...wire.routes import HTTP, OTHER, host_of, port_of
from ..matching.request import tools_of
from .side_effect_guard import is_here

ALL = "all"
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


def unanswered(recording: Recording) -> dict[str, int]:
    """Return the tools known only from model requests, and how often the model called them.

    A tool that the model invented did not run. Any other may have run, even without a tool result: some
    frameworks report it as plain text.
    """
    calls = [call for call in recording.calls(derived=True) if call.kind == TOOL and call.derived]
    ran = (call for call in calls if not call.is_open or not _is_invented(call, recording))
    return dict(Counter(call.tool or "?" for call in ran))


def _is_invented(call: Call, recording: Recording) -> bool:
    """True if the request offered no tool of that name."""
    request = recording.request_of(call.parent or "")
    if request is None:
        return False
    return call.tool not in tools_of(request.body)


def known_tools(recording: Recording) -> set[str]:
    """Return the tools of a run: those it recorded, and those that would run again."""
    return _recorded_tools(recording) | set(unanswered(recording))


def _recorded_tools(recording: Recording) -> set[str]:
    return {call.tool for call in recording.calls() if call.tool is not None}


def check_names(allowed: Iterable[str], known: Iterable[str], where: str) -> None:
    """Raise UsageError for the first name that is not a known tool."""
    unknown = [name for name in allowed if name not in known and name != ALL]
    if unknown:
        names = ", ".join(sorted(known)) or "none"
        raise UsageError(
            f"no tool {unknown[0]!r} is known from {where}", hint=f"its tools: {names}; or {ALL}"
        )


def live_tools(recording: Recording, allowed: Sequence[str], offered: Iterable[str] = ()) -> list[str]:
    """Return the tools that will run; UsageError lists those that would run without permission.

    ``offered`` are further tools that may be named: offered to the model but never called.
    """
    would_run = unanswered(recording)
    check_names(allowed, {*_recorded_tools(recording), *would_run, *offered}, recording.name)
    if ALL in allowed:
        return sorted({*would_run, *allowed} - {ALL})
    refused = {name: times for name, times in would_run.items() if name not in allowed}
    if refused:
        listed = ", ".join(f"{name} ({times}×)" for name, times in refused.items())
        raise UsageError(
            f"the recording cannot answer for these tools, so they would run again: {listed}",
            hint="they are functions of the program, and only the results that the model got are recorded."
            " Decorate them with @tap.tool and record again to have them answered,"
            f" or let them run: --live-tools {','.join([*allowed, *refused])}"
            f" (in Python: live_tools={[*allowed, *refused]!r})",
        )
    return sorted(set(allowed))
