"""``reenact show``: how a run ended, then what happened in it, turn by turn."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

from ...debugger.ending import ending, failed_at, open_calls
from ...debugger.story import (
    Block,
    Repeated,
    Story,
    abridged,
    bill_of,
    events_of,
    only,
    story_of,
    totals_dict,
    turn_dict,
)
from ...debugger.suspects.search import all_suspects, suspects_of
from ...debugger.suspects.suspect import MODEL_ERROR, NO_ANSWER, TOOL_ERROR
from ...money.ledger import Ledger
from ...recording.listing import RunRow
from ...recording.prompt import Keys
from ...recording.recording import Recording, recording_at
from ...recording.runs_inside import a_look_inside
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import event_dict
from ...tracefile.events.text import age, arguments, count, moment, plain, short_json
from ...wire.json_values import mapping, mappings
from .. import run_argument
from ..output import Output
from ..view.events import event_lines, print_events, show_events, with_turns
from ..view.summary import list_suspects, show_ending, show_pointers, show_suspects, show_totals
from ..view.turns import Turns

DESCRIPTION = """\
Show how a run ended, with its exception or what it was doing when it died. Then show it turn by turn: what
was new in the prompt, the response, and the tools with their results; tokens, money and time on the right.
Long runs show the first, last and failing turns; --all shows every turn. Above the turns stand up to three
suspects: what may have made the run go wrong. --suspects lists all of them."""
EXAMPLES = """\
  reenact show                         the newest run
  reenact show @failed                 the newest run that failed
  reenact show trip.jsonl --turn 3     one turn of a file, in more detail
  reenact show @failed --event @error  the event that failed, in full
  reenact show --events                one line per event
  reenact show @failed --suspects      what may have made it go wrong, the likeliest first
"""

_MOST_PROCESSES, _MOST_LOOKED_AT = 6, 64
_MOST_INSIDE = 4


def configure(parser: argparse.ArgumentParser) -> None:
    run_argument.add_run(parser)
    parser.add_argument("--all", action="store_true", help="show every turn or event")
    parser.add_argument("--turn", type=int, metavar="N", help="show only turn N, in more detail")
    parser.add_argument("--events", action="store_true", help="show one line per event")
    parser.add_argument(
        "--event", metavar="ADDRESS", help="show one event in full: 12, p77aa:12, turn:3, call:a1b2 or @error"
    )
    parser.add_argument(
        "--suspects", action="store_true", help="list all suspects: what may have made the run go wrong"
    )
    run_argument.add_json(parser, "print JSON lines: the run, then its events; with --event its payload")
    parser.add_argument(
        "--turns", action="store_true", help="with --json: one line per turn instead of per event"
    )
    run_argument.add_run_options(parser)


def run(args: argparse.Namespace, out: Output) -> int:
    recording = recording_at(args.run_address, run=args.run, blobs=args.blobs)
    try:
        if args.event is not None:
            _show_event(recording, args.event, args.json, out)
        elif args.suspects:
            _list_suspects(recording, args.json, out)
        elif args.json:
            _show_json(recording, args, out)
        else:
            typed = [args.run_address] if args.run_address else []
            typed += ["--run", args.run] if args.run else []
            _show(recording, typed, out, turn=args.turn, everything=args.all, flat=args.events)
    finally:
        run_argument.report(recording.findings, out)
    return 0


def _show_event(recording: Recording, text: str, as_json: bool, out: Output) -> None:
    event = recording.event(text)
    if as_json:
        out.json_line(event.payload)
        return
    for line in event_lines(event, out, root=recording.first_writer, started=recording.started):
        out.line(line)
    out.pretty(event.payload)


def _list_suspects(recording: Recording, as_json: bool, out: Output) -> None:
    found = all_suspects(recording)
    if as_json:
        for each in found:
            out.json_line(each.as_dict())
        return
    show_ending(recording, out, open_calls(recording))
    out.line()
    list_suspects(found, out)


def show_run(path: str, typed: Sequence[str], out: Output) -> None:
    """Write what ``reenact show`` writes of a file; the demo uses it too."""
    _show(Recording.load(path), typed, out, turn=None, everything=False, flat=False)


def _show(
    recording: Recording, typed: Sequence[str], out: Output, *, turn: int | None, everything: bool, flat: bool
) -> None:
    story = story_of(recording, everything=turn is not None or (everything and not flat))
    chosen = None if turn is None else only(story, turn, recording.name)
    ledger = Ledger()
    bill = bill_of(story, ledger)
    failure, failing = _show_ending(recording, story, typed, out)
    _show_identity(recording, out)
    if chosen is None and not flat:
        found = suspects_of(recording, story)
        show_suspects([each for each in found if each.event != failure or each.kind not in _ENDINGS], out)
    out.line()
    if flat and chosen is not None:
        print_events(events_of(chosen, recording), recording, out)
    elif flat:
        show_events(recording, out, everything=everything)
    else:
        shown: list[Block | Repeated | int] = (
            [chosen] if chosen is not None else [*story.blocks] if everything else abridged(story, failing)
        )
        turns = Turns(
            recording, out, ledger, lanes=story.lanes, detail=chosen is not None, everything=everything
        )
        for block in shown:
            if isinstance(block, int):
                turns.left_out(block)
            elif isinstance(block, Repeated):
                turns.repeated(block)
            else:
                turns.block(block)
    out.line()
    show_totals(recording, story, bill, out)


_ENDINGS = (TOOL_ERROR, MODEL_ERROR, NO_ANSWER)
"""Suspects that say of the failure itself what the first line says already."""


def _show_ending(
    recording: Recording, story: Story, typed: Sequence[str], out: Output
) -> tuple[Event | None, int | None]:
    """Write how the run ended and where to look; return the failure and the number of its turn."""
    calls = open_calls(recording, [*story.calls, *story.derived])
    show_ending(recording, out, calls)
    failure = failed_at(recording, calls)
    if failure is None:
        return None, None
    block = story.block_of(failure)
    number = block.number if block is not None else 0
    show_pointers(failure, number, typed, recording.first_writer, out)
    return failure, number


def _show_identity(recording: Recording, out: Output) -> None:
    stamp = moment(recording.started)
    when = f"{stamp} ({age(recording.started, time.time())} ago)" if stamp else ""
    parts = [plain(recording.name, 60), plain(recording.run_id or "", 40), when]
    out.paragraph([("  ", ""), ("  ".join(part for part in parts if part), "")])
    if recording.meta:
        out.line(out.paint("  " + arguments(recording.meta, out.width - 2), "dim"))
    if recording.input is not None:
        out.line(out.paint(f"  input {short_json(recording.input, out.width - 8)}", "dim"))
    if recording.parent_run:
        out.line(out.paint(f"  {_descent(recording)}", "dim"))
    _show_processes(recording, out)
    inside, is_more = _inside(recording)
    if inside:
        at_least = "at least " if is_more else ""
        named = ", ".join(f"{plain(row.name, 30)} {(row.id or '')[:8]}" for row in inside[:_MOST_INSIDE])
        more = f" and {len(inside) - _MOST_INSIDE} more" if len(inside) > _MOST_INSIDE else ""
        out.line(out.paint(f"  {at_least}{count(len(inside), 'run')} inside: {named}{more}", "dim"))


def _inside(recording: Recording) -> tuple[list[RunRow], bool]:
    """Return the runs inside a program's, and whether there may be more."""
    start, end = recording.start, recording.end
    if start is None or recording.run_id is None or "command" not in start.stored_fields:
        return [], False
    return a_look_inside(recording.path, recording.run_id, end.timestamp if end is not None else None)


def _show_processes(recording: Recording, out: Output) -> None:
    """Say which program each further process was, where it was another one than the first."""
    first = recording.start.payload.get("command") if recording.start is not None else None
    others = [(writer, recording.at_step(1, writer)) for writer in recording.writers[1:]]
    known = [(writer, head.payload.get("command")) for writer, head in others[:_MOST_LOOKED_AT] if head]
    named = [
        (writer, words) for writer, words in known if words != first and isinstance(words, list) and words
    ]
    for writer, words in named[:_MOST_PROCESSES]:
        program = " ".join([os.path.basename(str(words[0])), *map(str, words[1:])])
        out.line(out.paint(f"  p{writer[:4]} is {plain(program, out.width - 11)}", "dim"))
    if len(named) > _MOST_PROCESSES:
        out.line(out.paint(f"  … and {len(named) - _MOST_PROCESSES} more", "dim"))


def _show_json(recording: Recording, args: argparse.Namespace, out: Output) -> None:
    story = story_of(recording, everything=True) if _needs_story(recording, args) else None
    ledger, root = Ledger(), recording.first_writer
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
            **totals_dict(recording, story, ledger),
            "suspects": None if story is None else [each.as_dict() for each in suspects_of(recording, story)],
            "meta": recording.meta,
            "input": recording.input,
            "writers": recording.writers,
            "parent_run": recording.parent_run,
            "runs_inside": [row.id for row in _inside(recording)[0]],
        }
    )
    chosen = only(story, args.turn, recording.name) if story is not None and args.turn is not None else None
    if args.turns and story is not None:
        keys = Keys()
        for block in story.blocks if chosen is None else [chosen]:
            if block.turn is not None:
                out.json_line(turn_dict(block, ledger, keys, root))
        return
    shown: Sequence[Event] = recording.lines if chosen is None else events_of(chosen, recording)
    for event, number in with_turns(shown, recording):
        out.json_line(event_dict(event, number, root))


def _needs_story(recording: Recording, args: argparse.Namespace) -> bool:
    return args.turns or args.turn is not None or recording.is_small


def _descent(recording: Recording) -> str:
    """Return which run this one comes from, and of a fork where it left it and what was changed."""
    fork = recording.start.stored_fields.get("fork") if recording.start is not None else None
    parent = f"parent run {plain(str(recording.parent_run), 60)}"
    if type(fork) is not dict:
        return parent
    edits = mapping(fork.get("edits"))
    names = [str(name).replace("_", "-") for name in edits if name != "set"]
    names += [str(each.get("name")) for each in mappings(edits.get("set"))]
    changed = f", changed: {plain(', '.join(names), 60)}" if names else ""
    world = f", world: {plain(str(fork['world']), 20)}" if "world" in fork else ""
    return f"fork at step {plain(str(fork.get('at')), 20)}{changed}{world}; {parent}"
