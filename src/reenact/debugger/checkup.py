"""A whole trace checked: every event read, each request rebuilt, each long text compared with its digest,
and secrets found that were not known when it was written."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from .. import schema
from ..totals import Totals
from ..tracefile.events.event import Event
from ..tracefile.findings import Finding, Findings, Note
from ..tracefile.plain_files import open_plain
from ..tracefile.reader import read_events

_PIECE, _OVERLAP = 1 << 20, 8_192
"""Bytes of a long text that are searched for secrets at once, and of those before that are searched again."""


class Rules(Protocol):
    """What replaces secrets, and counts them by kind: a ``Redactor``."""

    counts: dict[str, int]

    def may_hold(self, text: bytes) -> bool: ...
    def clean(self, value: Any) -> Any: ...


class Checkup:
    """What a whole pass over one file finds, with its segments, processes and long texts."""

    def __init__(self, path: str, blobs: str | None, rules: Rules | None = None) -> None:
        self.path = path
        self.findings = Findings()
        self.totals = Totals()
        self.lines = self.requests = self.proved = self.blobs = self.whole_blobs = 0
        self._seen: set[str] = set()
        self.runs: set[str | None] = set()
        self._rules = rules
        self._lines_before: dict[str, tuple[int, int]] = {}
        """For each file an offset in it, and the lines before that."""
        self._notes: dict[str, Note] = {}
        for event in read_events(path, on_finding=self.findings.add, blobs=blobs):
            self._check(event)
        for note in self._notes.values():
            note.close()

    def _check(self, event: Event) -> None:
        self.lines += 1
        self.runs.add(event.run_id)
        if event.is_partial:  # longer than a line is ever held in memory
            return
        fields = event.stored_fields
        self.totals.add(event.kind, fields)
        if event.kind == schema.MODEL_REQUEST and event.is_ours:
            self.requests += 1
            self.proved += event.stored_in.history.proves(fields)
        if self._rules is not None:
            self._look_for_secrets(event, fields, self._rules)
        for reference in _references(fields):
            if reference not in self._seen:
                self._seen.add(reference)
                self._check_blob(event, reference)

    def _check_blob(self, event: Event, reference: str) -> None:
        self.blobs += 1
        path = event.stored_in.blobs.path(reference)
        short = reference[:15] + "…"
        if path is None:
            message = f"the long text {short} of step {event.step} is not beside the file; its beginning is"
            self.findings.add(Finding("blob-missing", message, self.path))
        elif _digest(path) != os.path.basename(path):
            message = f"the long text {short} of step {event.step} is not what was written"
            self.findings.add(Finding("blob-damaged", message, self.path))
        else:
            self.whole_blobs += 1
            if self._rules is not None:
                self._report_secrets(event, _kinds(self._rules, _pieces(path)))

    def _look_for_secrets(self, event: Event, fields: dict[str, Any], rules: Rules) -> None:
        source, offset = event.stored_in.at(event.stored_at)
        if rules.may_hold(source.line(offset)):
            self._report_secrets(event, _kinds(rules, [fields]))

    def _report_secrets(self, event: Event, kinds: list[str]) -> None:
        if not kinds:
            return
        source, offset = event.stored_in.at(event.stored_at)
        start, lines = self._lines_before.get(source.path, (0, 0))
        if offset < start:
            start, lines = 0, 0
        lines += _newlines(source.path, start, offset)
        self._lines_before[source.path] = offset, lines
        found = ", ".join(sorted(kinds))
        note = self._notes.setdefault(source.path, Note(source.path, self.findings.add))
        note("secret", f"a secret by the rules of today: {found}", lines + 1, offset)

    def as_dict(self) -> dict[str, Any]:
        """Return the findings and the counts, as ``--json`` prints them."""
        return {
            "path": self.path,
            "findings": [finding._asdict() for finding in self.findings],
            "lines": self.lines,
            "runs": len(self.runs),
            "tot": self.totals.as_tot(),
            "requests": {"all": self.requests, "proved": self.proved},
            "blobs": {"all": self.blobs, "whole": self.whole_blobs},
        }


def _references(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if type(value) is dict:
            if type(value.get("$blob")) is str:
                yield value["$blob"]
            waiting.extend(value.values())
        elif type(value) is list:
            waiting.extend(value)


def _kinds(rules: Rules, values: Iterable[Any]) -> list[str]:
    """Return the kinds of secrets that are in there."""
    before = dict(rules.counts)
    for value in values:
        rules.clean(value)
    return [kind for kind, count in rules.counts.items() if count != before.get(kind, 0)]


def _pieces(path: str) -> Iterator[bytes]:
    """Yield a long text in pieces that overlap."""
    try:
        with open(open_plain(path), "rb") as file:
            before = b""
            while data := file.read(_PIECE):
                yield before + data
                before = data[-_OVERLAP:]
    except OSError:
        return


def _newlines(path: str, start: int, stop: int) -> int:
    """Return how many lines end between two offsets of a file."""
    count = 0
    with open(open_plain(path, follow=True), "rb") as file:
        file.seek(start)
        while start < stop and (data := file.read(min(_PIECE, stop - start))):
            count += data.count(b"\n")
            start += len(data)
    return count


def _digest(path: str) -> str:
    try:
        with open(open_plain(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
