"""``reenact fork``: run an agent from its recording up to a call, change something there, and go live."""

from __future__ import annotations

import argparse
import math
import os

from ...errors import UsageError
from ...playback.fork.policy import ASK, CALLS, RECORDED, STEPS, USD
from ...playback.matching.rules import REBASE, STRICT
from .. import runs
from ..forks import many, one_call, one_fork
from ..output import Output
from ..rerun.start import add_live_tools
from . import replay

DESCRIPTION = """\
Run the recorded command again, or COMMAND after --. The recording answers up to the call at --at; that call
and all later ones go to the real model, with your changes. The result is a new run in a new file; the
recording stays as it is. Changes apply to the rest of the run (--once: to that call only).

Tools after the cut run by their effect, declared with @tap.tool(effect=…). --live-tools allows more:

  pure, read      run
  write, unknown  ask on a terminal, refused without one
  irreversible    refused

Before the cut, tools decorated with @tap.tool, and MCP tools, return their recorded results and do not run.
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


parse = replay.parse
"""A command comes after --, as there."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_addresses", nargs="*", metavar="RUN", help=runs.RUN_HELP)
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
    parser.add_argument("--json", action="store_true", help="print the report as JSON (a table on stdout)")
    runs.add_run_options(parser)


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
    add_live_tools(group, "tools allowed to run (or 'all')")
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
        return many.run(args, out)
    recording = runs.load(addresses[0] if addresses else None, run=args.run, blobs=args.blobs)
    return one_call.run(args, recording, out) if args.one_call else one_fork.run(args, recording, out)
