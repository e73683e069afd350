"""``reenact fork``: run an agent from its recording up to a call, change something there, and go live."""

from __future__ import annotations

import argparse
import math
import os

from ...errors import UsageError
from ...playback.fork.acting import ASK, RECORDED
from ...playback.fork.caps import CALLS, STEPS, USD
from ...playback.matching.modes import REBASE, STRICT
from .. import runs
from ..forks import many, one_call, single
from ..output import Output
from ..starting import add_live_tools
from . import replay

DESCRIPTION = """\
Run the recorded command again, or COMMAND after --, answered by the recording
up to the call at --at. That call and all that follow are live: the model is
called, with what you changed. It is a new run in a new file; the recording
stays as it is. Changes stay in force for the rest of the run (--once: for that
call alone). After the cut tools run by what they do to the world, as
@tap.tool(effect=…) tells: pure and read run, write and unknown are asked about
on a terminal and refused without one, irreversible are refused; --live-tools
allows by name. Before the cut, tools decorated with @tap.tool and those of MCP
sessions return their recorded results and do not run. Any other tool runs
again there, too, so the fork starts only if --live-tools names it. If tools
before the cut changed the world, they are listed and you say what to do about
it: --restore, --workspace or --stale-world. Exit code: the program's own; 1 if
it was stopped, 3 if it left its recording before the cut.

Several arms (--vary, --samples, --control) or several runs print a table of
how each ended."""
EXAMPLES = """\
  reenact fork @failed --at turn:3 --set system=@new.txt   another prompt
  reenact fork trip --at turn:5 --inject-user 'Be brief.'
  reenact fork trip --at 12 --tool-result '{"error": "no rooms"}'
  reenact fork trip --at turn:3 --set model=small --one-call   that request
  reenact fork trip --at turn:3 --vary model=a,b --samples 5 --control
  reenact fork 'runs/*' --set system=@new.txt --samples 3 --control
"""


parse = replay.parse
"""A command comes after --, as there."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_addresses", nargs="*", metavar="RUN", help=runs.RUN_HELP)
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help="what to run; default: what was recorded"
    )
    parser.add_argument(
        "--at", metavar="EVENT", help="where to go live: 12, turn:3, call:a1b2; default: all of it"
    )
    _add_changes(parser.add_argument_group("changes"))
    _add_limits(parser.add_argument_group("after the cut"))
    _add_world(parser.add_argument_group("what tools did before the cut"))
    _add_arms(parser.add_argument_group("several forks"))
    parser.add_argument("--name", help="the new run's name; default: the old one's with -fork")
    parser.add_argument(
        "--rebase", dest="mode", action="store_const", const=REBASE, default=STRICT,
        help="before the cut a changed request gets the answer that stood in its place",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the report as JSON; a table's on stdout")
    runs.add_run_options(parser)


def _add_changes(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--set", dest="sets", action="append", default=[], metavar="NAME=VALUE",
        help="a field of the request: system, model, temperature, tools.0.description …; @FILE reads a file",
    )  # fmt: skip
    group.add_argument("--inject-user", metavar="TEXT", help="one more user message at the cut")
    group.add_argument(
        "--drop", action="append", type=int, default=[], metavar="N",
        help="leave message N of the request out, from 1; negative from the end",
    )  # fmt: skip
    group.add_argument("--tool-result", metavar="TEXT", help="what the tool at the cut gave; JSON or text")
    group.add_argument("--tool", metavar="NAME", help="which tool's result, where a request brings several")
    group.add_argument("--response", metavar="TEXT", help="what the model at the cut answered; or @FILE")
    group.add_argument("--once", action="store_true", help="change the call at the cut alone")


def _add_limits(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tools", choices=(ASK, RECORDED), default=ASK,
        help="recorded: tools give recorded results only, none runs",
    )  # fmt: skip
    add_live_tools(group, "tools that may run, or all")
    group.add_argument("--max-calls", type=int, default=CALLS, metavar="N", help=f"default {CALLS}")
    group.add_argument("--max-usd", type=float, default=USD, metavar="USD", help=f"default {USD:.2f}")
    group.add_argument("--max-steps", type=int, default=STEPS, metavar="N", help=f"default {STEPS}")


def _add_world(group: argparse._ArgumentGroup) -> None:
    choice = group.add_mutually_exclusive_group()
    choice.add_argument("--restore", metavar="CMD", help="a shell command that puts the world back first")
    choice.add_argument(
        "--workspace", metavar="DIR", help="make DIR what it was at the cut (reenact run --workspace)"
    )
    choice.add_argument("--stale-world", action="store_true", help="go on with the world as it is")


def _add_arms(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--one-call", action="store_true", help="send just the request at the cut")
    group.add_argument("--vary", metavar="NAME=A,B", help="one arm for each value, as by --set")
    group.add_argument("--samples", type=int, default=1, metavar="K", help="forks of each arm")
    group.add_argument("--control", action="store_true", help="an arm without any change, to compare with")
    group.add_argument("--verify", metavar="CMD", help="a shell command whose exit code tells if all is well")
    group.add_argument(
        "--expect", action="append", default=[], metavar="WHAT",
        help="what the change is to bring about: tool:NAME, no-tool:NAME, text~REGEX",
    )  # fmt: skip


def run(args: argparse.Namespace, out: Output) -> int:
    if not 0 <= args.max_usd < math.inf:
        raise UsageError(f"--max-usd {args.max_usd}", hint="US dollars, such as 0.50")
    addresses = args.run_addresses
    is_table = args.vary or args.samples != 1 or args.control or args.verify or args.expect
    if is_table or len(addresses) > 1 or any("*" in each or os.path.isdir(each) for each in addresses):
        return many.run(args, out)
    recording = runs.load(addresses[0] if addresses else None, run=args.run, blobs=args.blobs)
    return one_call.run(args, recording, out) if args.one_call else single.run(args, recording, out)
