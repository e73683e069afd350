"""``reenact tail``: a run's events as they are written, one line each, until the run ends."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ... import schema
from ...recording.recording import Recording
from ...recording.run_addresses import locate
from ...tracefile import status as states
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import event_dict
from ...tracefile.events.text import plain
from ...tracefile.findings import Findings
from ...tracefile.follow import follow
from .. import run_argument
from ..output import Output
from ..view.events import event_lines

DESCRIPTION = """\
Print the last events of a run, then each new one as it is written, across rotated files and child processes.
Stops when the run ends or its process is gone."""
EXAMPLES = """\
  reenact tail                        the newest run, until it ends
  reenact tail trip.jsonl -n 100      start with more events
  reenact tail @last --no-follow      only what is already there
"""

_LOOK_EVERY = 2.0
"""Seconds between looks whether the process is still there."""


def configure(parser: argparse.ArgumentParser) -> None:
    run_argument.add_run(parser)
    parser.add_argument(
        "-n",
        type=run_argument.at_least(0),
        default=10,
        metavar="N",
        help="start with N events (default 10)",
    )
    parser.add_argument(
        "-f", "--follow", action=argparse.BooleanOptionalAction, default=True, help="wait for more (default)"
    )
    parser.add_argument("--keep-going", action="store_true", help="do not stop when the run ends")
    run_argument.add_json(parser, "print one JSON object per event")


def run(args: argparse.Namespace, out: Output) -> int:
    path, found = locate(args.run_address)
    recording = Recording.load(path, found)
    going = recording.status in (states.RUNNING, states.UNKNOWN)
    if args.follow and (going or args.keep_going):
        _follow(_Tail(args, out, path, found), out)
        return 0
    tail = _Tail(args, out, path, found)
    tail.print_last(recording)
    run_argument.report(recording.findings, out)
    if args.follow:
        out.say(f"The run is over ({plain(recording.status, 20)}).")
    return 0


def _follow(tail: _Tail, out: Output) -> None:
    findings = Findings()
    for event in follow(tail.path, poll=0.1, stop=tail.is_over, on_finding=findings.add):
        tail.take(event)
    run_argument.report(findings, out)
    if tail.why:
        out.say(tail.why)


class _Tail:
    """Prints each event once, from a number of old ones on."""

    def __init__(self, args: argparse.Namespace, out: Output, path: str, run_id: str | None) -> None:
        self.path = path
        self.why = ""
        self._args = args
        self._out = out
        self._run = run_id
        self._root: str | None = None
        self._start: dict[str, Any] | None = None
        self._started: float | None = None
        self._printed: dict[str, int] = {}
        self._looks = 0
        self._looked = time.monotonic()

    def is_over(self) -> bool:
        """Asked by follow() before each look at the files."""
        self._looks += 1
        if self._looks == 2:
            # follow() has taken its place at the end by now: what is written from here on comes from it.
            self.print_last(Recording.load(self.path, self._run))
        now = time.monotonic()
        if not self.why and not self._args.keep_going and now - self._looked > _LOOK_EVERY:
            self._looked = now
            status = states.status_of(self._start, None, self._started)
            if status not in (states.RUNNING, states.UNKNOWN):
                self.why = f"The run is over ({plain(status, 20)})."
        return bool(self.why)

    def print_last(self, recording: Recording) -> None:
        """Print the last of what is there already."""
        self._run = recording.run_id
        self._root = recording.first_writer
        self._start = recording.start.stored_fields if recording.start is not None else None
        self._started = recording.started
        number = max(self._args.n, 0)
        events = recording.lines
        if recording.end is not None and not self._args.keep_going:
            self.why = f"The run is over ({plain(recording.status, 20)})."
        for event in events[len(events) - min(number, len(events)) :]:
            self._print(event)
        for event in events[-200:]:
            self._remember(event)
        self._out.stdout.flush()

    def take(self, event: Event) -> None:
        """Print a new event of the run."""
        if self._run is not None and event.run_id != self._run:
            return
        self._run = event.run_id
        self._root = self._root if self._root is not None else event.writer
        self._started = self._started if self._started is not None else event.timestamp
        if (event.step or 0) <= self._printed.get(event.writer, -1):
            return
        self._print(event)
        self._remember(event)
        self._out.stdout.flush()
        if event.kind == schema.RUN_START and self._start is None:
            self._start = event.stored_fields
        if event.kind == schema.RUN_END and not self._args.keep_going:
            self.why = f"The run is over ({plain(str(event.status), 20)})."

    def _print(self, event: Event) -> None:
        if self._args.json:
            self._out.json_line(event_dict(event, None, self._root))
            return
        for line in event_lines(event, self._out, root=self._root, started=self._started):
            self._out.line(line)

    def _remember(self, event: Event) -> None:
        if event.writer:  # other dialects have no steps that both ways of reading agree on
            self._printed[event.writer] = max(event.step or 0, self._printed.get(event.writer, 0))
