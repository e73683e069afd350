"""``reenact show``: how a run ended, then its events by turn; of a long run the two ends only."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ... import schema
from ...errors import NoSuchEvent
from ...tracefile.event import Event
from ...tracefile.recording import Recording
from .. import runs
from ..ending import ending, error_dict, is_turn_begin, show_ending
from ..eventline import address, describe, event_lines, is_huge
from ..output import Output
from ..text import age, arguments, count, cut, plain, short_json

DESCRIPTION = """\
Show how a run ended, with its exception or what it died inside of, then one line per event,
grouped by turn. Of a long run the first and last events are shown; --all shows every one."""
EXAMPLES = """\
  reenact show                         the newest run
  reenact show @failed                 the newest that went wrong
  reenact show trip.jsonl --turn 3     one turn of a file
  reenact show @failed --event @error  the event that failed, in full
"""

FIRST, LAST = 20, 40
"""Of a long run: how it set out, and what led to its end."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_address", nargs="?", metavar="RUN", help=runs.RUN_HELP)
    parser.add_argument("--all", action="store_true", help="every event, however many")
    parser.add_argument("--turn", type=int, metavar="N", help="only this turn (from 1)")
    parser.add_argument(
        "--event", metavar="ADDRESS", help="one event in full: 12, p77aa:12, turn:3, call:a1b2 or @error"
    )
    parser.add_argument(
        "--json", action="store_true", help="JSON lines: the run, then its events; with --event the payload"
    )
    runs.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    recording = runs.load(args.run_address, run=args.run, blobs=args.blobs)
    try:
        if args.event is not None:
            _show_event(recording, args.event, args.json, out)
        elif args.json:
            _show_json(recording, args, out)
        else:
            _show(recording, out, turn=args.turn, everything=args.all)
    finally:
        runs.tell(recording.findings, out)
    return 0


def _show_event(recording: Recording, text: str, as_json: bool, out: Output) -> None:
    event = recording.event(text)
    if as_json:
        out.json_line(event.payload)
        return
    for line in event_lines(event, out, root=_root(recording), started=recording.started):
        out.line(line)
    out.pretty(event.payload)


def show_run(path: str, out: Output) -> None:
    """Write what ``reenact show PATH`` writes; the demo uses it too."""
    _show(Recording.load(path), out, turn=None, everything=False)


def _show(recording: Recording, out: Output, *, turn: int | None, everything: bool) -> None:
    show_ending(recording, out)
    _show_identity(recording, out)
    lines = recording.lines
    if turn is not None:
        _print_events(_turn_events(recording, turn), turn - 1, recording, out)
    elif everything or len(lines) <= FIRST + LAST + 2:
        _print_events(lines, 0, recording, out)
    else:
        _print_events(lines[:FIRST], 0, recording, out)
        hidden = len(lines) - FIRST - LAST
        out.line(out.paint(f"       … {hidden:,} more events; --all shows them, --turn N one turn", "yellow"))
        last = list(lines[-LAST:])
        before = recording.tot["turns"] - sum(map(is_turn_begin, last))
        _print_events(last, max(before, 0), recording, out)
    _show_totals(recording, out)


def _show_identity(recording: Recording, out: Output) -> None:
    started = recording.started
    when = ""
    if started is not None and abs(started) < 1e11:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(started))
        when = f"{stamp} ({age(started, time.time())} ago)"
    parts = [plain(recording.name, 60), plain(recording.run_id or "", 40), when]
    out.line("  " + "  ".join(part for part in parts if part))
    if recording.meta:
        out.line(out.paint("  " + arguments(recording.meta, out.width - 2), "dim"))
    if recording.input is not None:
        out.line(out.paint(f"  input {short_json(recording.input, out.width - 8)}", "dim"))
    if recording.parent_run:
        out.line(out.paint(f"  parent run {plain(recording.parent_run, 60)}", "dim"))


def _root(recording: Recording) -> str | None:
    writers = recording.writers
    return writers[0] if writers else None


def _print_events(events: Iterable[Event], turn: int, recording: Recording, out: Output) -> None:
    """Write the events, a heading before each turn; ``turn`` is the one that was going on before."""
    root, started = _root(recording), recording.started
    numbers, shown = _TurnNumbers(turn), -1
    for event in events:
        number = numbers.of(event)
        if event.kind in (schema.RUN_START, schema.RUN_END, schema.RUN_MORE):
            continue
        if number != shown and number:
            shown = number
            out.line(out.paint(f"turn {number}", "bold"))
        for line in event_lines(event, out, root=root, started=started):
            out.line(line)
        event._forget()


class _TurnNumbers:
    """Which turn an event belongs to, told from the events before it."""

    def __init__(self, turn: int) -> None:
        self._turn = turn
        self._by_call: dict[str, int] = {}

    def of(self, event: Event) -> int:
        fields = {} if is_huge(event) else event._raw()
        if is_turn_begin(event):
            self._turn += 1
            self._note(fields.get("call"), self._turn)
            return self._turn
        # Turns of several lanes may be interleaved; a call goes where its request or parent went.
        known = self._by_call.get(str(fields.get("parent"))) or self._by_call.get(str(fields.get("call")))
        if known is not None:
            self._note(fields.get("call"), known)
        return known or self._turn

    def _note(self, call: object, turn: int) -> None:
        if type(call) is str:
            self._by_call[call] = turn
            if len(self._by_call) > 10_000:
                del self._by_call[next(iter(self._by_call))]


def _turn_events(recording: Recording, number: int) -> list[Event]:
    turns = recording.turns()
    if not 0 < number <= len(turns):
        message = f"{plain(recording.name, 60)} has no turn {number}"
        raise NoSuchEvent(message, asked=str(number), hint=f"it has {count(len(turns), 'turn')}")
    turn = turns[number - 1]
    events = {
        event.index: event
        for call in [*turn.attempts, *turn.tools]
        for event in (call.begin, call.end)
        if event is not None and event.index is not None
    }
    end = turns[number].request.index if number < len(turns) else recording.count()
    for event in recording.events[min(events) : end]:
        if event.index is not None and event.index not in events and event.call is None:
            events[event.index] = event
    return [events[index] for index in sorted(events)]


def _show_totals(recording: Recording, out: Output) -> None:
    tot = recording.tot
    parts = [count(tot["turns"], "turn"), count(recording.count(), "event")]
    if tot["in"] or tot["out"]:
        parts.append(f"{tot['in'] + tot['out']:,} tokens ({tot['in']:,} in, {tot['out']:,} out)")
    parts.append(count(tot["err"], "error"))
    if len(recording.writers) > 1:
        parts.append(count(len(recording.writers), "writer"))
    out.line(out.paint(cut("  ".join(parts), out.width), "bold"))
    end = recording.end
    lost = end.dropped if end is not None else None
    if type(lost) is int and lost > 0:
        out.line(out.paint(f"{count(lost, 'event')} could not be recorded", "red"))


def _show_json(recording: Recording, args: argparse.Namespace, out: Output) -> None:
    out.json_line(
        {
            "run": recording.run_id,
            "name": recording.name,
            "path": recording.path,
            **ending(recording),
            "started": recording.started,
            "ended": recording.ended,
            "events": recording.count(),
            "tot": recording.tot,
            "meta": recording.meta,
            "input": recording.input,
            "writers": recording.writers,
            "parent_run": recording.parent_run,
        }
    )
    numbers, root = _TurnNumbers(0 if args.turn is None else args.turn - 1), _root(recording)
    shown: Sequence[Event] = recording.lines if args.turn is None else _turn_events(recording, args.turn)
    for event in shown:
        out.json_line(event_dict(event, numbers.of(event), root))
        event._forget()


def event_dict(event: Event, turn: int | None, root: str | None) -> dict[str, Any]:
    """Return an event's line as ``--json`` gives it."""
    error, told = event.error, describe(event)
    return {
        "address": address(event, root),
        "ts": event.timestamp,
        "kind": event.kind,
        "turn": turn,
        "summary": told.text or told.error,
        "duration_ms": event.duration_ms,
        "error": None if error is None else error_dict(error),
    }
