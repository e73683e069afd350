"""A whole trace checked: every event read, each request rebuilt, each long text compared with its digest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Any

from .. import schema
from ..totals import Totals
from ..tracefile.event import Event
from ..tracefile.findings import Finding, Findings
from ..tracefile.plain_files import open_plain
from ..tracefile.reader import read_events


class Checkup:
    """What a whole pass over one file finds, with its segments, processes and long texts."""

    def __init__(self, path: str, blobs: str | None) -> None:
        self.path = path
        self.findings = Findings()
        self.totals = Totals()
        self.lines = self.requests = self.proved = self.blobs = self.whole_blobs = 0
        self._seen: set[str] = set()
        self.runs: set[str | None] = set()
        for event in read_events(path, on_finding=self.findings.add, blobs=blobs):
            self._check(event)

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


def _digest(path: str) -> str:
    try:
        with open(open_plain(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
