"""``reenact why``: where a text, a value or a failure came from."""

from __future__ import annotations

import argparse

from ...debugger.debugger import Debugger
from ...errors import UsageError
from ...explain.claims import ALL
from ...explain.why import FOUND
from ...recording.recording import recording_at
from .. import run_argument
from ..output import Output, Progress
from ..view.explained import claims_dict, show_claims, show_uses, show_why, uses_dict, why_dict

DESCRIPTION = """\
Show the first producer of a text or value and the chain of events to it. QUESTION is a text, an event (12,
turn:3, call:a1b2, @error) or the path of a value (12.args.city, turn:3.messages[2]); without one, why the run
failed, or what its last answer is based on. --claims lists the sentences of an answer with the event that
supports each. Exit code 0 if it was found, 1 if it has no recorded origin or
that cannot be told, 2 for unusable input."""
EXAMPLES = """\
  reenact why @failed                        what fed the error that ended the run
  reenact why trip.jsonl "426 EUR"           where a text came from
  reenact why trip.jsonl 12.args.city        where an argument came from
  reenact why trip.jsonl --uses 9            what used the result at 9
  reenact why @last --claims                 which claims of the last answer have a source
"""


def configure(parser: argparse.ArgumentParser) -> None:
    run_argument.add_run(parser)
    parser.add_argument(
        "question", nargs="?", metavar="QUESTION", help="a text, an event or the path of a value"
    )
    parser.add_argument(
        "--text", action="store_true", help="QUESTION is a text, even if it looks like an address"
    )
    parser.add_argument(
        "--uses", metavar="EVENT", help="show later requests, arguments and texts with what EVENT brought"
    )
    parser.add_argument(
        "--claims", action="store_true",
        help="list the claims of an answer with their sources; QUESTION is its event (default: the last)",
    )  # fmt: skip
    run_argument.add_json(parser, "print one JSON object")
    run_argument.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    if args.question is not None and args.uses is not None:
        raise UsageError("--uses takes the event itself, so there is no QUESTION beside it")
    if args.claims and (args.uses is not None or args.text):
        raise UsageError("--claims stands alone, with the event of an answer at most")
    if args.text and args.question is None:
        raise UsageError("--text needs a QUESTION", hint='reenact why RUN --text "12"')
    recording = recording_at(args.run_address, run=args.run, blobs=args.blobs)
    debugger, root = Debugger(recording), recording.first_writer
    progress = Progress(out)
    debugger.explainer.progress = lambda done, total: progress.show(
        f"reading … {min(100, 100 * done // max(total, 1))} %"
    )
    try:
        if args.uses is not None:
            uses = debugger.uses(args.uses)
            progress.close()
            out.json_line(uses_dict(uses, root)) if args.json else show_uses(uses, root, out)
            return 0 if uses.uses else 1
        if args.claims:
            claims = debugger.claims(args.question)
            progress.close()
            out.json_line(claims_dict(claims, root)) if args.json else show_claims(claims, root, out)
            return 0 if claims.verdict == ALL else 1
        why = debugger.why(args.question, is_text=args.text)
    finally:
        progress.close()
        run_argument.report(recording.findings, out)
    out.json_line(why_dict(why, root)) if args.json else show_why(why, root, out)
    return 0 if why.verdict == FOUND else 1
