"""``reenact debug``: a prompt to step through a run, both ways, with pdb's verbs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from ...debugger.stepper import Stepper
from ...extras import have
from ...recording.event_addresses import failure_of
from ...recording.recording import Recording
from ...recording.run_addresses import locate
from ...tracefile.events.event_text import error_text
from ...tracefile.events.text import clean, count, cut, plain, width_of
from .. import run_argument
from ..output import Output, terminal_size
from ..repl.keyboard import PROMPT, completions, typed_lines
from ..repl.session import Session, Verbs
from ..repl.verbs_act import ACT
from ..repl.verbs_break_watch import BREAK, MARK, WATCH
from ..repl.verbs_move import MOVE, REVERSE, WHERE
from ..repl.verbs_print import INSPECT
from ..repl.verbs_where import HELP
from ..repl.verbs_why import WHY
from ..view.summary import status_mark

DESCRIPTION = """\
Step through a recorded run, forwards and backwards. It opens at the failure, or at the first event of a run
that did not fail. Commands follow pdb: n s r c b l p w, and rn rs rc for reverse; h lists them all. No code
of the agent runs. On a terminal it takes the whole screen (extra `debug`); --repl opens a prompt instead.
Without a terminal, commands are read from stdin."""
EXAMPLES = """\
  reenact debug @failed                          the newest run that failed, at its failure
  reenact debug trip.jsonl --at turn:3           a file, at its third turn
  reenact debug --repl                           the newest run, at a prompt
  reenact debug trip.jsonl -c "b error; c; ctx"  in a script: what the model saw before the first error
  echo "print usage.output" | reenact debug      commands from a pipe
"""

VERBS = (*MOVE, *REVERSE, *WHERE, *INSPECT, *WHY, *BREAK, *WATCH, *MARK, *ACT, *HELP)


def configure(parser: argparse.ArgumentParser) -> None:
    run_argument.add_run(parser)
    parser.add_argument(
        "-c",
        "--command",
        action="append",
        metavar="COMMANDS",
        help="run these commands and exit; can be repeated",
    )
    parser.add_argument(
        "--at", metavar="ADDRESS", help="where to start: first, last, 12, turn:3, @error, %%50 …"
    )
    parser.add_argument("--repl", action="store_true", help="open the prompt, not the full screen")
    run_argument.add_json(parser, "print JSON lines instead of text")
    run_argument.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    stepper, hint = _opened(args)
    session = Session(stepper, Verbs(VERBS), out, as_json=args.json)
    if args.at:
        stepper.go(args.at)
    elif (failure := failure_of(stepper.recording)) is not None and failure.index is not None:
        stepper.go(f"#{failure.index}")
        hint = "at the failure, rn goes back, h helps"
    run_argument.report(stepper.recording.findings, out)
    if args.command:
        _obey(session, args.command)
    elif _takes_screen(args, out):
        return _full_screen(stepper)
    else:
        if not args.json:
            _banner(session, f"at {args.at}, h helps" if args.at else hint)
        _converse(session, out)
    return 2 if session.failed and (args.command or not _is_interactive(out)) else 0


def _opened(args: argparse.Namespace) -> tuple[Stepper, str]:
    path, found = locate(args.run_address)
    wanted: list[str | None] = [args.run or found]

    def load() -> Recording:
        recording = Recording.load(path, wanted[0], blobs=args.blobs)
        wanted[0] = wanted[0] or recording.run_id  # a newer run in the file must not take its place
        return recording

    return Stepper(load), "at the first event, h helps"


def _takes_screen(args: argparse.Namespace, out: Output) -> bool:
    """True if a person sits at a terminal that Textual can draw on."""
    plain_prompt = args.repl or args.json or os.environ.get("TERM") == "dumb"
    return not plain_prompt and _is_interactive(out) and have("textual") is not None


def _full_screen(stepper: Stepper) -> int:
    from ..tui.app import DebugApp

    return DebugApp(stepper, Verbs(VERBS)).run() or 0


def _banner(session: Session, where: str) -> None:
    recording, out = session.stepper.recording, session.out
    status, error, tot = recording.status, recording.error, recording.tot
    sign, style = status_mark(status)
    head = f"{sign} {plain(recording.name, 60)}  {plain(status, 20)}"
    error_line = cut(f"  {error_text(error)}", out.width - width_of(head)) if error is not None else ""
    out.line(out.paint(head, style) + error_line)
    parts = [count(tot["turns"], "turn"), count(recording.count(), "event")]
    if tot["in"] or tot["out"]:
        parts.append(f"{tot['in'] + tot['out']:,} tokens")
    if tot["err"]:
        parts.append(f"{count(tot['err'], 'error')} (j @error: the first)")
    session.view.note(f"{', '.join(parts)}; {where if session.stepper.events else 'h helps'}")
    if session.stepper.events:
        session.view.here()


def _obey(session: Session, lines: Iterable[str]) -> None:
    for line in lines:
        if session.is_over:
            return
        session.do(line)


def _is_interactive(out: Output) -> bool:
    return out.is_terminal and sys.stdin is not None and sys.stdin.isatty()


def _converse(session: Session, out: Output) -> None:
    if not _is_interactive(out):
        _obey(session, _piped(out))
        return
    for line in typed_lines(out, lambda before, word: completions(session, before, word), sys.stdin):
        out.width = max(40, min(terminal_size()[0], 400))
        try:
            session.do(line)
        except KeyboardInterrupt:
            out.say("stopped")
        if session.is_over:
            return


def _piped(out: Output) -> Iterable[str]:
    """Yield lines of stdin; someone who types them gets a prompt beside the data."""
    if sys.stdin is None:
        return
    is_typed = sys.stdin.isatty()
    while True:
        out.stdout.flush()
        if is_typed:
            out.stderr.write(PROMPT)
            out.stderr.flush()
        line = sys.stdin.readline()
        if not line:
            return
        yield clean(line.rstrip("\n"))
