"""``reenact fork``: run an agent from its recording up to a call, change something there, and go live."""

from __future__ import annotations

import argparse
import glob
import math
import os
import signal
import time

from ...errors import NoSuchRun, UsageError
from ...playback.edits.edits import Edits
from ...playback.experiment import Arm, Experiment, Sample, arms_of, expected_of, originals
from ...playback.fork.one_call import fork_one_call
from ...playback.fork.tool_policy import ASK, CALLS, RECORDED, STEPS, USD
from ...playback.forks import ForkOptions, prepare_fork
from ...playback.launch import supervise_here
from ...playback.matching.modes import REBASE, STRICT
from ...recording.recording import Recording, recording_at
from ...supervise.supervisor import end_like
from ...tracefile.events.text import clean, dump
from .. import ask_permission, run_argument
from ..output import Output, Progress
from ..view.reports import say_fork, say_one_call, show_experiment
from . import replay

DESCRIPTION = """\
Run the recorded command again, or COMMAND after --. The recording answers up to the call at --at; that call
and all later ones go to the real model, with your changes. The result is a new run in a new file; the
recording stays as it is. Changes apply to the rest of the run (--once: to that call only).

Tools after the cut run by their effect, declared with @tap.tool(effect=…) or [tools] in reenact.toml.
--live-tools allows more:

  pure, read      run
  write, unknown  ask on a terminal, refused without one
  irreversible    refused

Before the cut, tools that were recorded (decorated, found, MCP) return their recorded results and do not run.
Any other tool runs again there too, so the fork starts only if --live-tools names it. If tools before the cut
changed the world, they are listed and you choose: --restore, --workspace or --stale-world.

Several arms (--vary, --samples, --control) or several runs print a table of how each ended.

Exit code: the program's own; 1 if it was stopped, 3 if it diverged from the recording before the cut."""
EXAMPLES = """\
  reenact fork @failed --at turn:3 --set system=@new.txt   with another prompt
  reenact fork trip --at turn:5 --inject-user 'Be brief.'
  reenact fork trip --at 12 --tool-result '{"error": "no rooms"}'
  reenact fork trip --at turn:3 --set model=small --one-call   send only that request
  reenact fork trip --at turn:3 --vary model=a,b --samples 5 --control
  reenact fork 'runs/*' --set system=@new.txt --samples 3 --control
"""


FAILED = 1

parse = replay.parse
"""A command comes after --, as there."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_addresses", nargs="*", metavar="RUN", help=run_argument.RUN_HELP)
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help="what to run (default: the recorded command)"
    )
    parser.add_argument(
        "--at",
        metavar="EVENT",
        help="the first live call: 12, turn:3, call:a1b2 (default: the whole run is live)",
    )
    _add_changes(parser.add_argument_group("changes"))
    _add_limits(parser.add_argument_group("after the cut"))
    _add_world(parser.add_argument_group("what tools did before the cut"))
    _add_arms(parser.add_argument_group("several forks"))
    parser.add_argument("--name", help="name of the new run (default: the old name with -fork)")
    parser.add_argument(
        "--rebase", dest="mode", action="store_const", const=REBASE, default=STRICT,
        help="before the cut, answer a changed request with the recorded answer at that position",
    )  # fmt: skip
    run_argument.add_json(parser, "print the report as JSON (a table on stdout)")
    ask_permission.add_options(parser)
    run_argument.add_run_options(parser)


def _add_changes(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="NAME=VALUE",
        help="change a request field: system, model, temperature, tools.0.description …; @FILE reads a file",
    )  # fmt: skip
    group.add_argument("--inject-user", metavar="TEXT", help="add a user message at the cut")
    group.add_argument(
        "--drop", action="append", type=int, default=[], metavar="N",
        help="leave out message N of the request, counted from 1; negative from the end",
    )  # fmt: skip
    group.add_argument(
        "--tool-result", metavar="TEXT", help="replace the result of the tool at the cut; JSON or text"
    )
    group.add_argument("--tool", metavar="NAME", help="which tool's result, if a request has several")
    group.add_argument(
        "--response", metavar="TEXT", help="replace the model's response at the cut; @FILE reads a file"
    )
    group.add_argument("--once", action="store_true", help="change only the call at the cut")


def _add_limits(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tools", choices=(ASK, RECORDED), default=ASK,
        help="recorded: tools only return recorded results, none runs",
    )  # fmt: skip
    run_argument.add_live_tools(group, "tools allowed to run (or 'all')")
    group.add_argument(
        "--max-calls",
        type=int,
        default=CALLS,
        metavar="N",
        help=f"stop after N live model calls (default {CALLS})",
    )
    group.add_argument(
        "--max-usd",
        type=float,
        default=USD,
        metavar="USD",
        help=f"stop when live calls have cost USD (default {USD:.2f})",
    )
    group.add_argument(
        "--max-steps", type=int, default=STEPS, metavar="N", help=f"stop after N events (default {STEPS})"
    )


def _add_world(group: argparse._ArgumentGroup) -> None:
    choice = group.add_mutually_exclusive_group()
    choice.add_argument(
        "--restore", metavar="CMD", help="shell command that restores the world before the start"
    )
    choice.add_argument(
        "--workspace",
        metavar="DIR",
        help="restore DIR to its state at the cut (needs reenact run --workspace)",
    )
    choice.add_argument("--stale-world", action="store_true", help="continue with the world as it is")


def _add_arms(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--one-call", action="store_true", help="send only the request at the cut; no agent runs"
    )
    group.add_argument("--vary", metavar="NAME=A,B", help="one arm per value, as with --set")
    group.add_argument("--samples", type=int, default=1, metavar="K", help="number of forks per arm")
    group.add_argument("--control", action="store_true", help="add an arm without changes to compare with")
    group.add_argument(
        "--verify", metavar="CMD", help="shell command that must exit 0 for a fork to count as passed"
    )
    group.add_argument(
        "--expect", action="append", default=[], metavar="WHAT",
        help="expected effect: tool:NAME, no-tool:NAME, text~REGEX",
    )  # fmt: skip


def run(args: argparse.Namespace, out: Output) -> int:
    if not 0 <= args.max_usd < math.inf:
        raise UsageError(f"--max-usd {args.max_usd}", hint="US dollars, such as 0.50")
    addresses = args.run_addresses
    is_table = args.vary or args.samples != 1 or args.control or args.verify or args.expect
    if is_table or len(addresses) > 1 or any("*" in each or os.path.isdir(each) for each in addresses):
        return _run_many(args, out)
    recording = recording_at(addresses[0] if addresses else None, run=args.run, blobs=args.blobs)
    return _run_one_call(args, recording, out) if args.one_call else _run_one(args, recording, out)


def _run_one(args: argparse.Namespace, recording: Recording, out: Output) -> int:
    prepared = prepare_fork(recording, _edits(args), _options(args, out), args.command, args.name)
    for message in prepared.messages:
        out.say(clean(f"reenact: {message}"))
    run_argument.report(prepared.recording.findings, out)
    report = prepared.run(supervise_here)
    if args.json:
        out.say(dump(report.as_dict()))
    else:
        say_fork(report, out)
    if not report.is_cut_reached:
        return replay.LEFT_RECORDING
    return FAILED if report.is_stopped else end_like(report.exit)


def _run_one_call(args: argparse.Namespace, recording: Recording, out: Output) -> int:
    permission = ask_permission.permission_of(args, out)
    report = fork_one_call(recording, _edits(args), args.at, args.name, permission)
    if args.json:
        out.json_line(report.as_dict())
    else:
        say_one_call(report, out)
    return FAILED if report.is_failed else 0


def _run_many(args: argparse.Namespace, out: Output) -> int:
    if args.samples < 1:
        raise UsageError(f"--samples {args.samples}", hint="at least 1")
    arms, expected = _arms(args), expected_of(args.expect)
    recordings = _recordings(args)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _exit)  # a fork has a session of its own, and would go on alone
    progress, began, forks = (
        Progress(out, after=0, every=0),
        time.monotonic(),
        len(recordings) * len(arms) * args.samples,
    )
    done = 0

    def fork_text(recording: Recording, arm: str, number: int) -> str:
        passed = time.monotonic() - began
        return f"fork {done + 1} of {forks}: {recording.name}, {arm} {number} ({passed:.0f} s)"

    def on_sample(recording: Recording, arm: Arm, number: int) -> None:
        progress.show(clean(fork_text(recording, arm.name, number)))

    def on_result(recording: Recording, sample: Sample, number: int) -> None:
        nonlocal done
        text = f"{fork_text(recording, sample.arm, number)}: {sample.ended}"
        done += 1
        progress.close()
        out.say(clean(f"reenact: {text}{f', {sample.why}' if sample.why else ''}"))

    reports = Experiment(
        arms=arms,
        options=_options(args, out),
        command=args.command,
        samples=args.samples,
        is_one_call=args.one_call,
        verify=args.verify,
        expected=expected,
        on_sample=on_sample,
        on_result=on_result,
        on_message=lambda message: out.say(clean(f"reenact: {message}")),
    ).run(recordings)
    progress.close()
    if args.json:
        for report in reports:
            out.json_line(report.as_dict())
    else:
        show_experiment(reports, out)
    return 0 if all(report.is_well for report in reports) else FAILED


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _options(args: argparse.Namespace, out: Output) -> ForkOptions:
    return ForkOptions(
        at=args.at,
        tools=args.tools,
        live_tools=tuple(args.live_tools),
        max_calls=args.max_calls,
        max_usd=args.max_usd,
        max_steps=args.max_steps,
        restore=args.restore,
        workspace=args.workspace,
        stale_world=args.stale_world,
        mode=args.mode,
        permission=ask_permission.permission_of(args, out),
        blobs=args.blobs,
    )


def _edits(args: argparse.Namespace) -> Edits:
    return Edits.parse(
        sets=args.sets,
        inject_user=args.inject_user,
        drop=args.drop,
        tool_result=args.tool_result,
        tool=args.tool,
        response=args.response,
        once=args.once,
    )


def _arms(args: argparse.Namespace) -> list[Arm]:
    """Return the arms that the flags describe."""
    varied = {}
    if args.vary:
        name, equals, values = args.vary.partition("=")
        wanted = [value.strip() for value in values.split(",") if value.strip()]
        if not equals or not name or not wanted:
            raise UsageError(f"--vary {args.vary} is not NAME=A,B", hint="--vary model=claude-a,claude-b")
        varied = {f"{name}={value}": Edits.parse(sets=[f"{name}={value}"]) for value in wanted}
    return arms_of(_edits(args), varied, is_controlled=args.control)


def _recordings(args: argparse.Namespace) -> list[Recording]:
    """Return the runs to fork: addresses, folders, patterns of file names."""
    found: list[Recording] = []
    for text in args.run_addresses or [None]:
        if text is not None and any(char in text for char in "*?["):
            paths = [path for path in sorted(glob.glob(text)) if os.path.isfile(path)]
            named = [path for path in paths if path.endswith(".jsonl")]
            files = run_argument.files_of(named) if paths else {}
        elif text is not None and os.path.isdir(text):
            files = run_argument.files_of([text])
        else:
            found.append(recording_at(text, run=args.run, blobs=args.blobs))
            continue
        found += [
            Recording.load(path, blobs=args.blobs) for path in files if ".p" not in os.path.basename(path)
        ]
    where = " ".join(args.run_addresses)
    if not found:
        raise NoSuchRun(f"there is no run in {where}", asked=where, hint="`reenact ls` shows what there is")
    return originals(found, where)
