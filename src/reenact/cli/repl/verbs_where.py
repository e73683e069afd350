"""Verbs that show where the cursor is: the calls around it, the events around it, the lanes, the run."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ...debugger.suspects.search import all_suspects
from ...tracefile.events.event import Event
from ...tracefile.events.text import arguments, clean, count, moment, offset_text, seconds, short_json
from .session import Group, Session
from .verbs_move import WHERE

HELP = Group("help")

_DEEPEST = 100
"""Calls within calls that are shown."""


@WHERE.verb("w where bt", "", "the calls around this event, its lane and turn, tokens and cost so far")
def _where(session: Session, argument: str) -> None:
    stepper, view = session.stepper, session.view
    event, index = stepper.event, stepper.index
    lane, turn = stepper.lane_at(event.index or 0), stepper.turn_at(event.index or 0)
    when = offset_text(event.timestamp, stepper.recording.started)
    in_turn = f"turn {turn}" if turn else "outside any turn"
    place = f"{in_turn}, lane {lane}, event {view.address(event)} ({index + 1:,} of {len(stepper.events):,})"
    view.note(f"{place}, {when}" if when else place)
    view.events(_chain(session, event))
    session.out.stdout.flush()  # summing up may take a while
    spent = stepper.spent()
    money = f", cost {spent.cost.text()}" if spent.llm_calls else ""
    session.done_looking()
    view.note(f"so far {spent.tokens_in:,} tokens in, {spent.tokens_out:,} out{money}")


def _chain(session: Session, event: Event) -> list[Event]:
    """Return the beginnings of the calls around an event, outermost first, then itself."""
    stepper, chain = session.stepper, [event]
    for _ in range(_DEEPEST):
        outer = stepper.caller(chain[-1])
        if outer is None:
            break
        chain.append(outer)
    return chain[::-1]


@WHERE.verb("l list", "[ADDRESS|.]", "the events around this one or an address; again: those after")
def _list(session: Session, argument: str) -> None:
    stepper = session.stepper
    stepper.event  # noqa: B018 - says so if there is none
    size, entries = max(5, session.view.height - 8), stepper.entries
    if session.listed is not None and not argument:
        begin = entries.next(session.listed)
        if begin is None:
            session.view.note("End of trace.")
            return
    else:
        middle = stepper.resolve(argument) if argument and argument != "." else stepper.place
        after = sum(1 for _ in islice(entries.walk(middle), size - size // 2 - 1))
        begin = [middle, *islice(entries.walk(middle, -1), size - after - 1)][-1]
    shown = [begin, *islice(entries.walk(begin), size - 1)]
    session.view.events(entries[place] for place in shown)
    session.listed = shown[-1]


@WHERE.verb("ll longlist", "[ADDRESS]", "the event in full, requests and long texts whole")
def _whole(session: Session, argument: str) -> None:
    stepper = session.stepper
    event = stepper.entries[stepper.resolve(argument)] if argument else stepper.event
    session.view.events([event])
    session.view.pretty(event.payload)


@WHERE.verb("lanes", "", "the lanes: agents and processes, with their calls")
def _lanes(session: Session, argument: str) -> None:
    stepper, address = session.stepper, session.view.address
    here = stepper.lane_at(stepper.event.index or 0) if stepper.events else None
    rows: list[tuple[Any, ...]] = []
    for lane, calls in stepper.tree.lane_calls.items():
        ends = [call.end or call.event for call in calls]
        turns = sum(call.kind == "model" and call.attempt == 1 for call in calls)
        tools = sum(call.kind == "tool" for call in calls)
        errors = sum(call.error is not None for call in calls)
        last = max(ends, key=lambda event: event.index or 0)
        mark = ">" if lane == here else ""
        rows.append((mark, lane, turns, tools, errors, address(calls[0].event), address(last)))
    if not rows:
        session.view.note("No call was recorded, so there is one lane: main.")
        return
    head = ("", "lane", ">turns", ">tools", ">errors", ">from", ">to")
    session.view.rows(head, rows, flexible=1, less=("to", "from"))


@WHERE.verb("suspects", "", "what may have made the run go wrong, the likeliest first, with their events")
def _suspects(session: Session, argument: str) -> None:
    found = all_suspects(session.stepper.recording)
    rows = [(each.address, f"{each.confidence:.2f}", each.kind, each.evidence) for each in found]
    if rows:
        session.view.rows(
            (">event", ">confidence", "kind", "evidence"), rows, flexible=3, less=("confidence",)
        )
    else:
        session.view.note("No suspects.")


@WHERE.verb("info", "", "the run: name, status, totals, metadata, findings")
def _info(session: Session, argument: str) -> None:
    recording, tot = session.stepper.recording, session.stepper.recording.tot
    begin, end = recording.started, recording.ended
    took = seconds(max(end - begin, 0)) if begin is not None and end is not None else ""
    error = recording.error
    figures = (
        f"{count(tot['turns'], 'turn')}, {count(recording.count(), 'event')}, {count(tot['err'], 'error')}"
    )
    facts = {
        "name": recording.name,
        "status": recording.status + (f": {error.type or ''}: {error}" if error is not None else ""),
        "run": recording.run_id,
        "file": recording.path,
        "started": (moment(begin) or "unknown") + (f", took {took}" if took else ""),
        "totals": figures,
        "tokens": f"{tot['in']:,} in, {tot['out']:,} out" if tot["in"] or tot["out"] else None,
        "writers": ", ".join(recording.writers) if len(recording.writers) > 1 else None,
        "meta": arguments(recording.meta, 300) if recording.meta else None,
        "input": short_json(recording.input, 300) if recording.input is not None else None,
        "parent run": recording.parent_run,
    }
    for name, value in facts.items():
        if value:
            session.view.fact(name, clean(str(value)))
    for finding in recording.findings:
        session.view.fact("finding", clean(str(finding)))


@HELP.verb("h help", "[VERB]", "this list, or one verb explained")
def _help(session: Session, argument: str) -> None:
    if argument:
        verb = session.verbs.find(argument)
        session.view.note(f"{verb.name} {verb.usage}".rstrip())
        session.view.note(f"  {verb.help}")
        if verb.aliases:
            session.view.note(f"  also: {', '.join(verb.aliases)}")
        return
    group = ""
    for verb in session.verbs.all:
        if verb.group != group:
            group = verb.group
            session.view.note(f"{group}:")
        session.view.fact(verb.name, verb.help.partition(";")[0])
    session.view.note(
        "h VERB explains one. A line may hold several, with ; between; an empty one repeats the last."
    )


@HELP.verb("q quit exit", "", "end; so does Ctrl-D")
def _quit(session: Session, argument: str) -> None:
    session.is_over = True
