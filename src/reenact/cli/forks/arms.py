"""The arms of an experiment, and one fork of an arm: a process of its own, whose report is read."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

from ...errors import UsageError
from ...recording.calls import MODEL, TOOL
from ...recording.recording import Recording
from ...recording.runs_inside import with_inside
from ...tracefile.text import dump
from ...wire import reading

CONTROL, EDITED = "control", "edited"
_PATIENCE = 5.0
"""Seconds that an agent has to end when it is interrupted."""
OK, FAILED, STOPPED, DIVERGED = "ok", "failed", "stopped", "diverged"
"""How a fork ended: well, with a failure of its own, because it was stopped, or it never reached the cut."""


class Arm(NamedTuple):
    """What is changed in the forks of one arm."""

    name: str
    flags: tuple[str, ...]


def arms_of(args: argparse.Namespace) -> list[Arm]:
    """Return the arms that the user asks for, the control first."""
    changes = _changes(args)
    arms = [Arm(CONTROL, ())] if args.control else []
    if args.vary:
        name, equals, values = args.vary.partition("=")
        wanted = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or not wanted:
            raise UsageError(f"--vary {args.vary} is no NAME=A,B", hint="--vary model=claude-a,claude-b")
        return arms + [Arm(f"{name}={value}", (*changes, "--set", f"{name}={value}")) for value in wanted]
    return [*arms, Arm(EDITED if changes else "again", changes)]


def _changes(args: argparse.Namespace) -> tuple[str, ...]:
    flags = [word for text in args.sets for word in ("--set", text)]
    flags += [word for number in args.drop for word in ("--drop", str(number))]
    for name in ("inject_user", "tool_result", "tool", "response"):
        if getattr(args, name) is not None:
            flags.append(f"--{name.replace('_', '-')}={getattr(args, name)}")  # it may begin with a dash
    return (*flags, "--once") if args.once else tuple(flags)


def flags_for_all(args: argparse.Namespace) -> list[str]:
    """Return what is the same in every arm."""
    flags = ["--tools", args.tools, "--max-calls", str(args.max_calls), "--max-usd", str(args.max_usd)]
    flags += ["--max-steps", str(args.max_steps)]
    for name in ("at", "restore", "workspace", "blobs"):
        if getattr(args, name) is not None:
            flags.append(f"--{name}={getattr(args, name)}")
    flags += ["--live-tools", ",".join(args.live_tools)] if args.live_tools else []
    flags += ["--stale-world"] if args.stale_world else []
    flags += ["--one-call"] if args.one_call else []
    return flags + (["--rebase"] if args.mode == "rebase" else [])


@dataclass(slots=True)
class Sample:
    """What one fork came to, or a recording as if it were one."""

    arm: str
    ended: str
    why: str = ""
    path: str | None = None
    run: str | None = None
    world: str | None = None
    calls: int = 0
    tokens: int = 0
    usd: float | None = None
    verified: bool | None = None
    steps: list[str] = field(default_factory=list)
    """The tools that were called, with their arguments."""
    final: str = ""
    """What the last answer says."""

    @property
    def is_well(self) -> bool:
        return self.ended == OK and self.verified is not False

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


def behaviour(recording: Recording) -> tuple[list[str], str]:
    """Return the tools that a run called, runs inside it too, and what its last answer says."""
    recording = with_inside(recording)
    steps = [f"{call.tool}({dump(call.args)})" for call in recording.calls(derived=True) if call.kind == TOOL]
    answers = [call.end for call in recording.calls() if call.kind == MODEL and call.end is not None]
    final = reading.text(answers[-1].body) if answers else ""
    return steps, final


def recorded_sample(recording: Recording) -> Sample:
    """Return a recording as the sample that others are compared with, where there is no control."""
    steps, final = behaviour(recording)
    ended = FAILED if recording.status in ("error", "died", "killed") else OK
    return Sample("recorded", ended, path=recording.path, run=recording.run_id, steps=steps, final=final)


def fork(recording: Recording, arm: Arm, number: int, flags: list[str], command: list[str]) -> Sample:
    """Run one fork of an arm and return what it came to."""
    words = [sys.executable, "-m", "reenact", "fork", recording.path, "--json"]
    words += ["--run", recording.run_id] if recording.run_id else []
    name = f"{recording.name}-{arm.name.replace(os.sep, '-')}-{number}"
    words += [*arm.flags, *flags, "--name", name, *(["--", *command] if command else [])]
    # A session of its own: nobody is asked anything in the middle of a table.
    child = subprocess.Popen(  # noqa: S603
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        printed, told_us = child.communicate()
    except BaseException:  # an interrupt, which the other session does not get
        _end(child)
        raise
    told = _report(printed if "--one-call" in flags else told_us)
    if told is None:
        said = [line for line in told_us.splitlines() if line.strip()]
        raise UsageError(f"{arm.name}: {_refusal(said)}", hint=_hint(said))
    return _sample(arm.name, told)


def _end(child: subprocess.Popen[str]) -> None:
    """End a fork and its agent: as Ctrl-C would, then for good."""
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
            child.wait(_PATIENCE)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            continue


def _report(text: str) -> dict[str, Any] | None:
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                told: dict[str, Any] = json.loads(line)
                return told if "fork" in told else None
            except ValueError:
                continue
    return None


def _refusal(said: list[str]) -> str:
    """Return why a fork was not started: its first line, and what that one lists."""
    listed = list(takewhile(lambda line: line.startswith("  "), said[1:]))
    return "\n".join([*said[:1], *listed]) or "no report"


def _hint(said: list[str]) -> str | None:
    return next((line.removeprefix("hint: ") for line in said if line.startswith("hint: ")), None)


def _sample(arm: str, told: dict[str, Any]) -> Sample:
    live = told.get("live") or {}
    made = Sample(arm, _ended(told), _why(told), told["path"], told["run"], told["fork"].get("world"))
    made.calls = live.get("calls", 0)
    made.tokens = sum((live.get("tokens") or {}).values())
    made.usd = (live.get("cost") or {}).get("usd")
    if os.path.exists(told["path"]):
        made.steps, made.final = behaviour(Recording.load(told["path"], told["run"]))
    return made


def _ended(told: dict[str, Any]) -> str:
    if "passed" not in told:  # --one-call
        return FAILED if told["status"] >= 400 else OK
    if not told["passed"]:
        return DIVERGED
    is_stopped = told["halted"] or any(each.get("by") == "agent" for each in told["refused"])
    return STOPPED if is_stopped else FAILED if told["exit"] else OK


def _why(told: dict[str, Any]) -> str:
    if told.get("halted"):
        return str(told["halted"][0]["why"])
    if told.get("refused"):
        return f"refused to {told['refused'][0]['what']}"
    if told.get("diverged"):
        first = told["diverged"][0]
        return f"{first['code']} at {first.get('path') or first.get('recorded')}"
    return f"exit {told['exit']}" if told.get("exit") else ""
