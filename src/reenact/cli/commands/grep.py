"""``reenact grep``: where a text stands in runs, inside long texts kept beside the file too.

Each text is found where it was new: a conversation is stored once, so no hit is repeated per turn.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ... import lines, schema
from ...errors import TraceFileError, UsageError
from ...tracefile import run_files
from ...tracefile.dialects import OURS
from ...tracefile.event import Event
from ...tracefile.event_source import Shelf
from ...tracefile.findings import Findings, Note
from ...tracefile.raw_lines import RawLine, raw_lines
from ...tracefile.reader import check_version, refuse_if_foreign
from ...tracefile.records import LineReader
from ...tracefile.text import clean, cut, plain, width_of
from .. import run_argument
from ..main import complain, sentence
from ..output import Output
from ..view.event_line import address

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


_HEAD = re.compile(rb',"head":"(?:[^"\\]|\\.)*"')
"""The beginning of a long text, which was searched whole already."""


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
    parser.add_argument("--kind", action="append", default=[], metavar="K", help="only events of this kind")
    parser.add_argument("--tool", metavar="NAME", help="only events of this tool")
    parser.add_argument("--blobs", metavar="DIR", help="extra folder to look for long texts")
    parser.add_argument("--json", action="store_true", help="print one JSON object per matching event")


class Hit(NamedTuple):
    """An event and where in its text the match stands."""

    event: Event
    text: str
    begin: int
    end: int


def run(args: argparse.Namespace, out: Output) -> int:
    search = _Search(args)
    explicit: list[str] = args.where
    code, found = 0, 0
    for path in run_argument.files_of(explicit):
        findings = Findings()
        try:
            number = _one_file(path, search, args, out, findings)
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


def _one_file(path: str, search: _Search, args: argparse.Namespace, out: Output, findings: Findings) -> int:
    number = 0
    run_argument.require_plain(path)
    for hit in search.hits(path, args.blobs, findings):
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


class _Search:
    """The pattern and the filters."""

    def __init__(self, args: argparse.Namespace) -> None:
        flags = re.MULTILINE | (re.IGNORECASE if args.ignore_case else 0)
        text = re.escape(args.pattern) if args.fixed else args.pattern
        text = rf"\b(?:{text})\b" if args.word else text
        try:
            self.regex = re.compile(text, flags)
        except (re.error, RecursionError, OverflowError) as why:
            raise UsageError(
                f"the pattern {args.pattern!r} is not a regular expression: {why}",
                hint="-F searches for the text as it is",
            ) from None
        self.kinds, self.tool = args.kind, args.tool
        self._literal = _literal(args.pattern, args.fixed, args.ignore_case)

    def hits(self, path: str, blobs: str | None, findings: Findings) -> Iterator[Hit]:
        """Yield the matching events of a file with its segments and processes."""
        shelf = Shelf(path, findings.add, blobs)
        seen: set[str] = set()
        empty = True
        for file in (file for chain in run_files.streams(path) for file in chain):
            base = shelf.add(file)
            note = Note(file, findings.add)
            reader = LineReader(note)
            steps: dict[str | None, int] = {}
            for line in raw_lines(file):
                if self._cannot_match(line[3]):
                    empty = False
                    continue
                for envelope, fields, offset, _, _ in reader.feed(line):
                    empty = False
                    if envelope.kind in schema.HEADS and fields is not None and envelope.dialect == OURS:
                        check_version(fields.get("v"), note, line[0])
                    if envelope.step is None:
                        steps[envelope.run] = steps.get(envelope.run, 0) + 1
                        envelope = envelope._replace(step=steps[envelope.run])
                    event = Event(envelope, fields, base | offset, shelf, None)
                    hit = self._match(event, fields, line, seen)
                    if hit is not None:
                        yield hit
            reader.close()
        if empty:
            refuse_if_foreign(path, findings.add)

    def _cannot_match(self, data: bytes) -> bool:
        """True if a whole line of ours without references can be passed over unread."""
        if self._literal is None or data[-1:] != b"}" or b'"$blob"' in data:
            return False
        head = lines.peek(data)
        if head is None or head[4] in schema.HEADS:
            return False
        return self._literal not in (data.lower() if self.regex.flags & re.IGNORECASE else data)

    def _match(
        self, event: Event, fields: dict[str, Any] | None, line: RawLine, seen: set[str]
    ) -> Hit | None:
        if self.kinds and event.kind not in self.kinds and event.event_type not in self.kinds:
            return None
        if self.tool is not None and event.tool_name != self.tool:
            return None
        if fields is not None:
            for text in _texts(fields, event.stored_in, seen):
                found = self.regex.search(text)
                if found is not None:
                    return Hit(event, text, found.start(), found.end())
            raw = _HEAD.sub(b"", line[3]) if b'"$blob"' in line[3] else line[3]
        else:  # too long to be parsed for a search
            source, offset = event.stored_in.at(event.stored_at)
            raw = source.line(offset)
        text = raw.decode("utf-8", "replace")
        found = self.regex.search(text)
        return None if found is None else Hit(event, text, found.start(), found.end())


def _literal(pattern: str, fixed: bool, ignore_case: bool) -> bytes | None:
    """Return bytes that every matching line must hold; None if the pattern does not tell."""
    if not pattern.isascii() or not pattern.isprintable() or '"' in pattern or "\\" in pattern:
        return None
    if not fixed and re.escape(pattern).replace("\\ ", " ").replace("\\-", "-") != pattern:
        return None
    return (pattern.lower() if ignore_case else pattern).encode("ascii")


def _texts(fields: dict[str, Any], shelf: Shelf, seen: set[str]) -> Iterator[str]:
    """Yield every text of an event; a long one kept elsewhere where it is met first."""
    waiting: list[Any] = [value for key, value in reversed(fields.items()) if key not in schema.ENVELOPE]
    while waiting:
        value = waiting.pop()
        if type(value) is str:
            yield value
        elif type(value) is list:
            waiting.extend(reversed(value))
        elif type(value) is dict:
            reference = value.get("$blob")
            if type(reference) is str:
                if reference in seen:
                    continue
                seen.add(reference)
                text = shelf.blobs.text(reference) if "form" not in value else None
                if text is not None:
                    yield text
                    continue
            waiting.extend(reversed(value.values()))


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
