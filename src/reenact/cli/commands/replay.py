"""``reenact replay``: run an agent's own code again, its model calls answered by the recording."""

from __future__ import annotations

import argparse

from ...playback.launch import supervise_here
from ...playback.matching.modes import KEEP_GOING, REBASE, STRICT
from ...playback.rerun import prepare_rerun
from ...recording.recording import recording_at
from ...supervise.supervisor import end_like
from ...tracefile.events.text import clean, dump
from .. import ask_permission, run_argument
from ..output import Output
from ..view.reports import say_rerun

DESCRIPTION = """\
Run the recorded command again, call the recorded function, or send the recorded request to its web
application; or run COMMAND after --. The recording answers every model call: no model is called and no
connection leaves this machine. Recorded tools are answered too: decorated with @tap.tool, found by reenact
run, or of an MCP server. Their bodies do not run.

A call that was not recorded ends the program, and the report shows what differs and where the text came
from. Other tools would run again: they are listed, and nothing starts unless --live-tools allows them.
Otherwise writing outside a scratch folder and starting programs is blocked.

Exit code: 3 if the run diverged from the recording or something was blocked, else the program's own."""
EXAMPLES = """\
  reenact replay @failed                       run it again
  reenact replay trip.jsonl -- agent.py --fast   with other code
  reenact replay @last --keep-going            report all differences, not only the first
  reenact replay @last --live-tools search     allow a tool that is not answered to run
"""

LEFT_RECORDING = 3


def configure(parser: argparse.ArgumentParser) -> None:
    run_argument.add_run(parser)
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help="what to run (default: the recorded command)"
    )
    after = parser.add_mutually_exclusive_group()
    after.add_argument(
        "--keep-going", dest="mode", action="store_const", const=KEEP_GOING, default=STRICT,
        help="fail only the calls that were not recorded, and answer the others",
    )  # fmt: skip
    after.add_argument(
        "--rebase", dest="mode", action="store_const", const=REBASE,
        help="answer a changed request with the recorded answer at that position, and report it",
    )  # fmt: skip
    run_argument.add_live_tools(
        parser, "tools allowed to run (or 'all'); they may write files and start programs"
    )
    run_argument.add_json(parser, "print the report on stderr as one JSON object")
    ask_permission.add_options(parser)
    run_argument.add_run_options(parser)


def parse(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Read our own options up to ``--``; what comes after it is the command."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    args = parser.parse_args(arguments[:at])
    args.command = arguments[at + 1 :]
    return args


def run(args: argparse.Namespace, out: Output) -> int:
    recording = recording_at(args.run_address, run=args.run, blobs=args.blobs)
    prepared = prepare_rerun(
        recording,
        args.command,
        mode=args.mode,
        live_tools=args.live_tools,
        permission=ask_permission.permission_of(args, out),
        blobs=args.blobs,
    )
    run_argument.report(prepared.recording.findings, out)
    for message in prepared.messages:
        out.say(clean(f"reenact: {message}"))
    report = prepared.run(supervise_here)
    if args.json:
        out.say(dump(report.as_dict()))
    else:
        say_rerun(report, out)
    return LEFT_RECORDING if report.left_recording else end_like(report.exit)
