"""``reenact grep``: where a text stands in runs, inside long texts kept beside the file too."""

from __future__ import annotations

import argparse
import re
from typing import Any

from ...debugger.search import FileSearch, Hit, TextSearch
from ...errors import TraceFileError, UsageError
from ...tracefile.events.event_text import address
from ...tracefile.events.text import clean, cut, plain, width_of
from ...tracefile.findings import Findings
from ...tracefile.reader import one_of_many
from .. import run_argument
from ..main import complain, sentence
from ..output import Output

DESCRIPTION = """\
Search runs, files and folders (default: all runs in the default folder) for a regular expression. Searches
every text of an event, including long texts beside the file, and the line as written. Exit code 1 if nothing
matches."""
EXAMPLES = """\
  reenact grep 'timed? ?out'                    in all runs
  reenact grep -F '426 EUR' trip.jsonl          a fixed text in one file
  reenact grep -il overloaded runs/ --kind model.response
  reenact grep Lisbon --tool search --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", help="a Python regular expression")
    parser.add_argument("where", nargs="*", metavar="RUN|FOLDER|FILE", help="where to search")
    parser.add_argument(
        "-F", "--fixed", action="store_true", help="PATTERN is a plain text, not a regular expression"
    )
    parser.add_argument("-w", "--word", action="store_true", help="match whole words only")
    parser.add_argument("-i", "--ignore-case", action="store_true", help="ignore case")
    parser.add_argument(
        "-l", "--files", action="store_true", help="print only the paths of files with a match"
    )
    parser.add_argument(
        "-c", "--count", action="store_true", help="print only the number of matching events per file"
    )
    run_argument.add_kind(parser)
    parser.add_argument("--tool", metavar="NAME", help="only events of this tool")
    run_argument.add_blobs(parser)
    run_argument.add_json(parser, "print one JSON object per matching event")


def run(args: argparse.Namespace, out: Output) -> int:
    search = _search(args)
    explicit: list[str] = args.where
    code, found = 0, 0
    for path, names in run_argument.files_of(explicit).items():
        findings = Findings()
        try:
            with one_of_many(path):
                number = _one_file(path, names, search, args, out, findings)
        except BrokenPipeError:
            raise
        except (TraceFileError, OSError) as why:
            if path in explicit:
                code = complain(out, why)
            else:
                out.say(clean(f"{sentence(why)}; it is left out"), "yellow")
            continue
        found += number
        run_argument.report(findings, out)
        if args.count and not args.json:
            out.line(f"{clean(path)}:{number}")
    return code or (0 if found else 1)


def _search(args: argparse.Namespace) -> FileSearch:
    flags = re.MULTILINE | (re.IGNORECASE if args.ignore_case else 0)
    try:
        search = TextSearch(args.pattern, is_fixed=args.fixed, is_word=args.word, flags=flags)
    except UsageError as why:
        raise UsageError(f"the pattern {why}", hint="-F searches for the text as it is") from None
    return FileSearch(search, args.kind, args.tool)


def _one_file(
    path: str,
    names: list[str] | None,
    search: FileSearch,
    args: argparse.Namespace,
    out: Output,
    findings: Findings,
) -> int:
    number = 0
    run_argument.require_readable(path, args.where)
    for hit in search.hits(path, args.blobs, findings, names):
        number += 1
        if args.files:
            if args.json:
                out.json_line({"path": path})
            else:
                out.line(clean(path))
            break
        if args.json:
            out.json_line(_as_dict(path, hit))
        elif not args.count:
            if out.is_terminal and number == 1:
                out.line(out.paint(clean(path), "bold"))
            out.line(_line(path, hit, out))
    return number


def _as_dict(path: str, hit: Hit) -> dict[str, Any]:
    return {
        "path": path,
        "run": hit.event.run_id,
        "address": address(hit.event, None),
        "writer": hit.event.writer,
        "kind": hit.event.kind,
        "tool": hit.event.tool_name,
        "match": hit.text[hit.begin : hit.end][:1000],
        "context": hit.text[max(0, hit.begin - 80) : hit.end + 80][:1200],
    }


def _line(path: str, hit: Hit, out: Output) -> str:
    """Return the address and kind of an event and the text around the match, which is highlighted."""
    place = address(hit.event, None)
    left = f"{place:>7}  " if out.is_terminal else f"{clean(path)}:{place}  "
    kind = plain(hit.event.kind, 40)
    if hit.event.tool_name:
        kind += " " + plain(hit.event.tool_name, 40)
    room = max(40, out.width - width_of(left) - width_of(kind) - 2)
    match = plain(hit.text[hit.begin : hit.end], room - 10)
    side = max(8, room - width_of(match)) // 2
    before = _context(hit.text[max(0, hit.begin - side) : hit.begin], hit.begin > side)
    after = cut(plain(hit.text[hit.end : hit.end + 2 * room]), room - width_of(before) - width_of(match) - 1)
    gap = " " if hit.text[hit.end : hit.end + 1].isspace() else ""
    return out.cells(
        [(left, "dim"), (kind + "  ", "cyan"), (before, ""), (match, "bold red"), (gap + after, "")]
    )


def _context(text: str, is_cut: bool) -> str:
    shown = plain(text)
    space = " " if text[-1:].isspace() and shown else ""
    return ("…" if is_cut else "") + shown + space
