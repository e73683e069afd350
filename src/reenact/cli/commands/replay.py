"""``reenact replay``: run an agent's own code again, its model calls answered by the recording."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import tempfile

from ...capture.install import HOSTS_VARIABLE
from ...capture.supervise import Supervised, end_like
from ...errors import UsageError
from ...playback import preflight
from ...playback.frontier import KEEP_GOING, REBASE, STRICT
from ...playback.reenacting import VARIABLE
from ...tracefile.calls import MODEL
from ...tracefile.recording import Recording
from ...wire.routes import host_of
from .. import runs
from ..output import Output
from ..replayed import Outcome, read_report
from ..text import clean, dump
from .run import command_line

DESCRIPTION = """\
Run the recorded command again, or COMMAND after --. Every model call is compared with the recording and gets
the answer that came then: no model is called, and no connection leaves this machine. So do tools decorated
with @tap.tool and those of MCP sessions: their bodies do not run. A call that was not recorded ends the
program where it is made; the report says what differs and where the text came from. Other tools are code that
would run again: they are listed, and nothing starts unless --live-tools allows them. Without it, to write
files outside a scratch folder or to start programs is refused. Exit code: 3 if the run went another way than
the recording or was refused something, else the program's own."""
EXAMPLES = """\
  reenact replay @failed                       the same again
  reenact replay trip.jsonl -- agent.py --fast   with other code
  reenact replay @last --keep-going            all differences, not only the first
  reenact replay @last --live-tools search     a tool that is not answered may run
"""

DIVERGED = 3
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY", "MISTRAL_API_KEY", "CO_API_KEY")
"""SDKs want one even though nobody will see it."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_address", nargs="?", metavar="RUN", help=runs.RUN_HELP)
    parser.add_argument(
        "command", nargs="*", metavar="COMMAND", help="what to run; default: what was recorded"
    )
    after = parser.add_mutually_exclusive_group()
    after.add_argument(
        "--keep-going", dest="mode", action="store_const", const=KEEP_GOING, default=STRICT,
        help="a call that was not recorded fails, all others keep their answers",
    )  # fmt: skip
    after.add_argument(
        "--rebase", dest="mode", action="store_const", const=REBASE,
        help="a changed request gets the answer that stood in its place, and is told of",
    )  # fmt: skip
    parser.add_argument(
        "--live-tools", metavar="NAME,…", type=_names, default=(),
        help="tools that run, or all that are not answered; files and programs are then open to them",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="the report on stderr as one JSON object")
    runs.add_run_options(parser)


def parse(parser: argparse.ArgumentParser, arguments: list[str]) -> argparse.Namespace:
    """Read our own options up to ``--``; what comes after it is the command."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    args = parser.parse_args(arguments[:at])
    args.command = arguments[at + 1 :]
    return args


def run(args: argparse.Namespace, out: Output) -> int:
    recording = runs.load(args.run_address, run=args.run, blobs=args.blobs)
    command, folder = _command(recording, args.command)
    live = preflight.live_tools(recording, args.live_tools)
    with tempfile.TemporaryDirectory(prefix="reenact-") as scratch:
        report, temporary = os.path.join(scratch, "report.jsonl"), os.path.join(scratch, "tmp")
        os.mkdir(temporary)
        plan = {"path": os.path.abspath(recording.path), "run": recording.run_id, "mode": args.mode}
        plan |= {"report": report, "scratch": scratch, "live": live, "relaxed": bool(args.live_tools)}
        variables = {VARIABLE: json.dumps(plan), HOSTS_VARIABLE: _hosts(recording), "TMPDIR": temporary}
        variables |= {name: "none" for name in _KEYS if name not in os.environ}
        agent = Supervised(command, f"{recording.name}-replay", {"replay_of": recording.run_id}, variables)
        if folder is not None:
            os.chdir(folder)
            out.say(clean(f"reenact: runs {shlex.join(command)} in {folder}, as the recording says"))
        agent.run()
        told = read_report(report)
    outcome = Outcome(told, live)
    if args.json:
        out.say(dump({**outcome.as_dict(), "exit": agent.exit, "run": agent.run_id}))
    else:
        for line in outcome.lines():
            out.say(clean(line))
    return DIVERGED if outcome.is_other else end_like(agent.exit)


def _command(recording: Recording, given: list[str]) -> tuple[list[str], str | None]:
    """Return what to run, and the folder to run it in."""
    start = recording.start._raw() if recording.start is not None else {}
    if given:
        return command_line(given), None
    command, folder = start.get("command"), start.get("cwd")
    if type(command) is not list or not all(type(word) is str for word in command) or not command:
        raise UsageError(
            f"{recording.name} was not recorded by reenact run, so how to start it is not known",
            hint="say it after --: reenact replay RUN -- agent.py",
        )
    if type(folder) is not str or not os.path.isdir(folder):
        raise UsageError(
            f"its folder {folder} is not here", hint="say what to run: reenact replay RUN -- agent.py"
        )
    if not os.path.exists(command[0]):
        raise UsageError(f"{command[0]} is not here", hint="say what to run: reenact replay RUN -- agent.py")
    return command, folder


def _hosts(recording: Recording) -> str:
    """Return where the recorded model calls went, so that they are known again."""
    urls = [call.begin.url for call in recording.calls() if call.kind == MODEL and call.begin is not None]
    return ",".join(sorted({host_of(url) for url in urls if type(url) is str}))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
