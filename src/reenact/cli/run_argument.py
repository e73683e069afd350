"""From what the user typed to a run, and the talk about what was met while reading it.

Used by every command that takes a RUN. Findings go to stderr, a few of them; ``doctor`` has them all.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from ..errors import NotATrace
from ..recording.recording import Recording
from ..recording.run_addresses import default_folder, locate
from ..tracefile.findings import Finding
from ..tracefile.run_files import trace_files
from ..tracefile.text import clean, count
from .output import Output

MAX_TOLD = 8
"""Findings told by a command that was asked for something else."""

RUN_HELP = (
    "a path, id prefix, name, @last, @prev or @failed (default: @last); the newest replay is @replay,"
    " the newest fork @fork"
)


_IN_CODE, _HERE = "run= selects another, run='*' reads", "--run selects another, --run '*' takes"
"""The reader's words for someone who calls it, and ours for someone who types."""


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what selects among the runs of a shared file and where long texts are."""
    parser.add_argument(
        "--run", metavar="ID", help="which run of a shared file; '*' reads them all as one run"
    )
    parser.add_argument("--blobs", metavar="DIR", help="extra folder to look for long texts")


def add_live_tools(parser: argparse._ActionsContainer, what: str) -> None:
    """Add ``--live-tools``: names in a list with commas, in one flag or in several."""
    parser.add_argument(
        "--live-tools", metavar="NAME,…", type=_tool_names, action="extend", default=[],
        help=f"{what}; can be repeated",
    )  # fmt: skip


def _tool_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def load(text: str | None, *, run: str | None = None, blobs: str | None = None) -> Recording:
    """Return the recording at an address."""
    path, found = locate(text)
    return Recording.load(path, run or found, blobs=blobs)


def files_of(named: Sequence[str]) -> list[str]:
    """Return the trace files meant by runs, files and folders; none given: the default folder's."""
    files: dict[str, None] = {}
    for text in named or [default_folder()]:
        if os.path.isdir(text):
            files.update(dict.fromkeys(trace_files(text)))
        elif not named:
            raise NotATrace(
                f"there is no folder {text}, so nothing was recorded yet",
                path=text,
                hint="`reenact run agent.py` records one; or name a trace file, or the folder by REENACT_DIR",
            )
        else:
            files[locate(text)[0]] = None
    return list(files)


def report(findings: Sequence[Finding], out: Output) -> None:
    """Say on stderr what was met while reading."""
    for finding in findings[:MAX_TOLD]:
        out.say(clean(str(finding).replace(_IN_CODE, _HERE)), "yellow")
    more = len(findings) - MAX_TOLD
    if more > 0:
        out.say(f"{count(more, 'more finding')}; `reenact doctor` has them all", "yellow")


# ``--limit N``, for the commands that list things.


def add_limit(parser: argparse.ArgumentParser, things: str) -> None:
    """Add the option that shows no more than so many."""
    parser.add_argument("--limit", type=_positive, metavar="N", help=f"at most N {things}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it must be 1 or more")
    return number
