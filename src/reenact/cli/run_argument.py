"""From what the user typed to a run: the options that commands share, and what was found while reading.

Used by every command that takes a RUN. Findings go to stderr, a few of them; ``doctor`` has them all.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence

from ..errors import NotATrace, TraceFileError
from ..recording.run_addresses import default_folder, locate, require_plain
from ..tracefile.events.text import clean, count
from ..tracefile.findings import Finding
from ..tracefile.plain_files import LINK, not_plain
from ..tracefile.run_files import families
from .output import Output

_MOST_FINDINGS = 8
"""Findings that a command reports beside what it is about."""

RUN_HELP = (
    "a path, id prefix, name, @last, @prev or @failed (default: @last); the newest replay is @replay,"
    " the newest fork @fork"
)


_IN_CODE, _HERE = "run= selects another, run='*' reads", "--run selects another, --run '*' takes"
"""How a finding names the choice to a program, and how we name it to someone who types."""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the one run that a command is about."""
    parser.add_argument("run_address", nargs="?", metavar="RUN", help=RUN_HELP)


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add what selects among the runs of a shared file and where long texts are."""
    parser.add_argument(
        "--run", metavar="ID", help="which run of a shared file; '*' reads them all as one run"
    )
    add_blobs(parser)


def add_blobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--blobs", metavar="DIR", help="extra folder to look for long texts")


def add_json(parser: argparse.ArgumentParser, help: str) -> None:
    parser.add_argument("--json", action="store_true", help=help)


def add_kind(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kind", action="append", default=[], metavar="K", help="only events of this kind; can be repeated"
    )


def add_filters(parser: argparse.ArgumentParser, fields: str, things: str) -> None:
    """Add what selects among many runs: ``--where``, ``--failed`` and ``--limit``."""
    parser.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE",
        help=f"only runs with this {fields} or metadata; also !=, ~ (contains), tokens>N; can be repeated",
    )  # fmt: skip
    parser.add_argument("--failed", action="store_true", help="only runs that failed or were killed")
    parser.add_argument("--limit", type=at_least(1), metavar="N", help=f"at most N {things}")


def at_least(least: int) -> Callable[[str], int]:
    """Return what reads a number for argparse and refuses a smaller one."""

    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"it must be {least} or more")
        return int(text)

    return number


def port(text: str) -> int:
    """Read the number of a port for argparse."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"a port is a number up to 65535, not {text!r}")
    return int(text)


def add_live_tools(parser: argparse._ActionsContainer, what: str) -> None:
    """Add ``--live-tools``: names in a list with commas, in one flag or in several."""
    parser.add_argument(
        "--live-tools", metavar="NAME,…", type=_tool_names, action="extend", default=[],
        help=f"{what}; can be repeated",
    )  # fmt: skip


def _tool_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def require_readable(path: str, named: Sequence[str]) -> None:
    """Raise for a pipe or device, and for a link unless it is among the names that the user typed."""
    if path not in named and not_plain(path) == LINK:
        raise TraceFileError(f"{path} is {LINK}", path=path)
    require_plain(path)


def files_of(named: Sequence[str]) -> dict[str, list[str] | None]:
    """Return the trace files of runs, files and folders; without any, those of the default folder.

    Each with the names that may belong to it, where a folder was listed.
    """
    files: dict[str, list[str] | None] = {}
    for text in named or [default_folder()]:
        if os.path.isdir(text):
            files.update(families(text))
        elif not named:
            raise NotATrace(
                f"there is no folder {text}, so nothing was recorded yet",
                path=text,
                hint="`reenact run agent.py` records one; or name a trace file, or the folder by REENACT_DIR",
            )
        else:
            files[locate(text)[0]] = None
    return files


def report(findings: Sequence[Finding], out: Output) -> None:
    """Report on stderr what was found while reading."""
    for finding in findings[:_MOST_FINDINGS]:
        out.say(clean(str(finding).replace(_IN_CODE, _HERE)), "yellow")
    more = len(findings) - _MOST_FINDINGS
    if more > 0:
        out.say(f"{count(more, 'more finding')}; `reenact doctor` has them all", "yellow")
