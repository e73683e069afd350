"""What a user allows to start, for ``replay``, ``fork`` and ``test``: their options, and the question."""

from __future__ import annotations

import argparse
import os
import sys

from ..playback.permission import Permission, Question
from ..tracefile.events.text import clean
from .output import Output


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what a user allows to start: ``--yes`` and ``--from``."""
    parser.add_argument("--yes", action="store_true", help="start or send what only the recording names")
    parser.add_argument(
        "--from", dest="code_folder", metavar="DIR", help="import a recorded function from DIR (default: .)"
    )


def permission_of(args: argparse.Namespace, out: Output) -> Permission:
    """Return what the user allows, and how to ask: at a terminal, or not at all."""

    def ask(question: Question) -> bool:
        for reason in question.reasons:
            out.say(clean(f"reenact: {reason}"))
        out.say(clean(f"reenact: {question.verb} {question.what}? [y/N]"))
        return os.read(0, 1000).strip().lower() in (b"y", b"yes")  # not buffered: the rest is the agent's

    is_terminal = sys.stdin is not None and sys.stdin.isatty() and out.stderr.isatty()
    return Permission(
        yes=args.yes,
        ask=ask if is_terminal else None,
        announce=lambda what: out.say(clean(f"reenact: {what} (from the recording)")),
        code_folder=args.code_folder,
    )
