"""A run as a story, for whatever shows it: which turns, what is in each, its figures; and all as JSON values.

A small run (``Recording.is_small``) is read whole. Of a larger one only a window at either end is parsed, so
that a run of any size is shown at once; sums that need all of it are then left out.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from ..errors import NoSuchEvent
from ..money.ledger import Ledger
from ..money.prices import Bill
from ..recording.calls import MODEL, TOOL, Call, Turn, join_calls, tokens_of
from ..recording.derived_tools import DerivedCall, derived_tools, turns_of
from ..recording.index import MAIN, Index
from ..recording.prompt import Keys, Piece, answer_pieces, prompt_of
from ..recording.recording import SMALL_BYTES, Recording
from ..tracefile.dialects import RESULT_KEYS
from ..tracefile.events.event import Event
from ..tracefile.events.event_text import address, error_dict
from ..tracefile.events.text import count, plain
from ..wire.json_values import canonical
from ..wire.results import CONTRADICTED, result_text

_HEAD, _TAIL = 400, 2_000
"""Events parsed at either end of a larger run; the tail also shows what it died inside of."""

_FEW = 100
"""Events of the tail that are parsed however large they are."""

_NEAR = 8
"""Turns of a lane among which the conversation is searched for that a request continues."""

FIRST_TURNS, LAST_TURNS = 2, 6
"""Of a long run: how it set out, and what led to its end."""


class Block(NamedTuple):
    """One turn, or what stands before the first (then ``turn`` is None), with its other events."""

    turn: Turn | None
    number: int
    items: list[Call | int]
    """Tools, and indexes of events outside any call, in the order they began."""
    before: Sequence[Turn] = ()
    """A few turns before it in its lane, the latest first."""
    after: Turn | None = None
    """The turn after it in its lane."""
    brought: Sequence[Call] = ()
    """The tool calls whose results its request brought to the model."""
    lane: str = MAIN
    is_far: bool = False
    """True in the tail of a large run: its requests build on a chain too long to be followed."""
    skipped: int = 0
    """Events in the middle that were not looked at."""
    run_index: Index | None = None
    """Where the turn is looked up that its request continues at the provider."""


class Story(NamedTuple):
    """What is shown of a run."""

    blocks: list[Block]
    calls: list[Call]
    """All recorded calls of a run read whole; of a larger one those of its tail."""
    derived: Sequence[DerivedCall]
    """The tools derived from them."""
    is_whole: bool
    lanes: list[str]
    """In order of appearance."""

    def block_of(self, event: Event) -> Block | None:
        """Return the block an event stands in."""
        for block in self.blocks:
            calls = [*(block.turn.attempts if block.turn else ()), *block.items]
            for item in calls:
                if item == event.index if type(item) is int else _has(item, event):
                    return block
        return None


def _has(call: Call | int, event: Event) -> bool:
    return isinstance(call, Call) and event in (call.begin, call.end)


def story_of(recording: Recording, *, everything: bool = False) -> Story:
    """Return the blocks of a run; of a large one those near its two ends."""
    if everything or recording.is_small:
        turns = recording.turns(derived=True)
        blocks = _blocks(recording, recording.index, turns, range(recording.count()))
        derived = [call for call in recording.calls(derived=True) if isinstance(call, DerivedCall)]
        return Story(blocks, recording.calls(), derived, True, _lanes(recording.index))
    total = recording.count()
    start = _tail_start(recording)
    if start == 0:  # few events, but large ones
        calls = join_calls(recording.events)
        derived = derived_tools(calls)
        whole = Index(recording, calls, turns_of(calls, derived))
        blocks = _blocks(recording, whole, whole.turns, range(total))
        far = [block._replace(is_far=True) for block in blocks]
        return Story(far, calls, derived, False, _lanes(whole))
    stop = min(_HEAD, start)
    calls = join_calls(recording.events[:stop])
    first = Index(recording, calls, turns_of(calls, derived_tools(calls)))
    head = _blocks(recording, first, first.turns, range(stop))
    tail_calls = join_calls(recording.events[start:])
    tail_derived = derived_tools(tail_calls)
    turns = turns_of(tail_calls, tail_derived)
    while turns and _is_torn(turns[0]):
        del turns[0]
    for turn, number in zip(reversed(turns), range(recording.tot["turns"], 0, -1), strict=False):
        turn.number = number
    last = Index(recording, tail_calls, turns)
    tail = _blocks(recording, last, turns, range(start, total))
    if turns:
        tail = [block._replace(is_far=True) for block in tail if block.turn is not None]
    if head[-1].turn is not None:
        del head[-1]  # it may go on beyond the window
    elif not turns:
        items = [*head[0].items, *(item for block in tail for item in block.items)]
        head, tail = [Block(None, 0, items, skipped=start - stop)], []
    lanes = list(dict.fromkeys([*_lanes(first), *_lanes(last)]))
    return Story([*head, *tail], tail_calls, tail_derived, False, lanes)


def _tail_start(recording: Recording) -> int:
    """Return the event with which the tail begins: not too many to the end, nor too many bytes."""
    total = recording.count()
    unread = recording.execution.unread
    start = max(0, total - _TAIL, (recording.execution.index(unread.stop) or 0) if unread else 0)
    while total - start > _FEW and _bytes_after(recording.events[start]) > SMALL_BYTES:
        start += (total - start) // 2
    return start


def _bytes_after(event: Event) -> int:
    source, offset = event.stored_in.at(event.stored_at)
    return os.path.getsize(source.path) - offset


def _is_torn(turn: Turn) -> bool:
    """True for a turn whose beginning is not in the window."""
    call = turn.attempts[0]
    return call.attempt > 1 or call.begin is None


def _lanes(index: Index) -> list[str]:
    return list(dict.fromkeys(index.lane_of(calls[0]) for calls in index.lanes.values()))


def _blocks(recording: Recording, index: Index, turns: Sequence[Turn], indexes: range) -> list[Block]:
    """Return the turns in order with the tools and other events that go with each."""
    outside = Block(None, 0, [])
    brought: dict[Event, list[Call]] = {}
    for call in (call for turn in turns for call in turn.tools):
        request = call.end if call.derived else None if call.sent is None else call.sent.request
        if request is not None:
            brought.setdefault(request, []).append(call)
    blocks = {
        turn.number: Block(
            turn,
            turn.number,
            list(turn.tools),
            index.turns_before(turn, _NEAR),
            index.turn_after(turn),
            [tool for call in turn.attempts for tool in brought.get(call.event, ())],
            lane=index.lane_of(turn.call),
            run_index=index,
        )
        for turn in turns
    }
    shown = {id(call) for turn in turns for call in (*turn.attempts, *turn.tools)}
    outside.items.extend(call for call in index.calls if call.kind == TOOL and id(call) not in shown)
    for at in indexes:
        event = recording.events[at]
        if index.call_of(event) is None:
            turn = index.turn_of(event)
            (outside if turn is None else blocks[turn.number]).items.append(at)
    for block in (outside, *blocks.values()):
        block.items.sort(key=_order)
    return [*([outside] if outside.items else []), *blocks.values()]


def _order(item: Call | int) -> int:
    return item if type(item) is int else item.event.index or 0  # type: ignore[union-attr]


class Repeated(NamedTuple):
    """Turns with the same tool calls and results as the turn before the first of them."""

    first: int
    number: int
    """Of the last one."""


_FOLDED = 3
"""Equal calls in a row, or turns of them, that are shown as one."""


def abridged(story: Story, failing: int | None) -> list[Block | Repeated | int]:
    """Return the blocks of a long run's two ends and of the failing turn, those that repeat each other as
    one, and how many turns are left out."""
    shown: list[Block | Repeated | int] = []
    folded = _folded_turns(story.blocks, failing)
    last = sum(each.number > 0 for each in folded) - 1
    everything = last <= FIRST_TURNS + LAST_TURNS
    place = last_shown = 0
    for each in folded:
        if each.number == 0:
            shown.append(each)
            continue
        if everything or not FIRST_TURNS <= place <= last - LAST_TURNS or each.number == failing:
            first = each.first if isinstance(each, Repeated) else each.number
            if first > last_shown + 1:
                shown.append(first - last_shown - 1)
            shown.append(each)
            last_shown = each.number
        place += 1
    return shown


def _folded_turns(blocks: Sequence[Block], failing: int | None) -> list[Block | Repeated]:
    """Return the blocks, of those that repeat the one before only the first; the failing one stays."""
    folded: list[Block | Repeated] = []
    keyed = [
        (block.number - place, block.number == failing, _turn_key(block), block)
        for place, block in enumerate(blocks)
    ]  # the first is the same for turns that stand side by side: the middle of a large run is not known
    for _, group in groupby(keyed, lambda each: each[:3]):
        equal = [each[3] for each in group]
        if len(equal) < _FOLDED or any(call.verdict == CONTRADICTED for call in equal[0].turn.tools):  # type: ignore[union-attr]
            folded += equal
        else:
            folded += [equal[0], Repeated(equal[1].number, equal[-1].number)]
    return folded


def _turn_key(block: Block) -> object:
    """Return what turns have in common that repeat each other; of others something of their own."""
    turn = block.turn
    if turn is None or turn.error is not None or not turn.tools or len(block.items) > len(turn.tools):
        return block.number
    return block.lane, [call_key(call) for call in turn.tools]


def in_folds(items: Sequence[Call | int]) -> list[Sequence[Call | int]]:
    """Return the items of a block, equal calls in a row together."""
    folds: list[Sequence[Call | int]] = []
    for key, group in groupby(items, lambda item: item if isinstance(item, int) else call_key(item)):
        equal = list(group)
        is_one = not isinstance(key, int) and len(equal) >= _FOLDED
        folds += [equal] if is_one else [[item] for item in equal]
    return folds


def call_key(call: Call) -> tuple[object, ...]:
    """Return what is the same for calls of a tool with equal arguments and equal results, as stored."""
    if call.end is None or call.end.is_partial or call.event.is_partial:
        return (id(call),)
    if call.derived:
        outcome = result_text(call.result)
    else:
        fields = call.end.stored_fields
        outcome = canonical(next((fields[key] for key in RESULT_KEYS if key in fields), None))
    return call.tool, canonical(call.args), None if call.error is None else str(call.error), outcome


def only(story: Story, number: int, name: str) -> Block:
    """Return the block of one turn."""
    for block in story.blocks:
        if block.turn is not None and block.number == number:
            return block
    turns = sum(block.turn is not None for block in story.blocks)
    raise NoSuchEvent(
        f"{plain(name, 60)} has no turn {number}", asked=str(number), hint=f"it has {count(turns, 'turn')}"
    )


def events_of(block: Block, recording: Recording) -> list[Event]:
    """Return the events of one turn in order."""
    assert block.turn is not None
    calls = [*block.turn.attempts, *(item for item in block.items if not isinstance(item, int))]
    found = {event.index: event for call in calls for event in (call.begin, call.end) if event is not None}
    found |= {item: recording.events[item] for item in block.items if isinstance(item, int)}
    return [event for _, event in sorted(found.items(), key=lambda pair: pair[0] or 0)]


# When calls ran, and how long.


def spent_ms(turn: Turn) -> float | None:
    """Return how long the model took, all attempts together."""
    known = [call.duration_ms for call in turn.attempts if call.duration_ms is not None]
    return sum(known) if known else None


Interval = tuple[float, float]


def interval(call: Call) -> Interval | None:
    """Return when a call began and ended; None if that is not known."""
    end = call.end.timestamp if call.end is not None else None
    if end is not None and call.duration_ms is not None:
        begin: float | None = end - call.duration_ms / 1000
    else:
        begin = call.event.timestamp
    if begin is None or end is None or not 0 <= end - begin < 1e9:
        return None
    return begin, end


def time_spent(calls: Iterable[Call], started: float | None, ended: float | None) -> dict[str, float] | None:
    """Return the seconds with a model call under way, with a tool, and with neither.

    Calls that run at the same time are counted once; so the parts are parts of the clock's time.
    """
    if started is None or ended is None or not 0 <= ended - started < 1e9:
        return None
    sorts: dict[bool, list[Interval]] = {True: [], False: []}
    for call in calls:
        when = interval(call) if call.end is not None else _until_the_end(call, ended)
        if when is not None:
            sorts[call.kind == MODEL].append(when)
    model, busy = _covered(sorts[True]), _covered(sorts[True] + sorts[False])
    total = max(ended - started, busy)
    return {"model": model, "tools": _covered(sorts[False]), "elsewhere": total - busy}


def _until_the_end(call: Call, ended: float) -> Interval | None:
    """Return the time of a recorded call that the run died inside of."""
    begin = None if call.derived else call.event.timestamp
    return None if begin is None or begin > ended else (begin, ended)


def _covered(intervals: list[Interval]) -> float:
    covered, until = 0.0, float("-inf")
    for begin, end in sorted(intervals):
        if end > until:
            covered += end - max(begin, until)
            until = end
    return covered


def bill_of(story: Story, ledger: Ledger) -> Bill | None:
    """Return what a run cost; None if it had no model call or was not read whole."""
    if not story.is_whole or not any(call.kind == MODEL for call in story.calls):
        return None
    return ledger.bill(story.calls)


# The same as JSON values.


def totals_dict(recording: Recording, story: Story | None, ledger: Ledger) -> dict[str, Any]:
    """Return money and time for ``--json``; null where the run was too large to be read whole."""
    if story is None or not story.is_whole:
        return {"money": None, "time": None}
    spent, bill = time_spent(story.calls, recording.started, recording.ended), bill_of(story, ledger)
    return {"money": bill.as_dict() if bill is not None else None, "time": spent}


def turn_dict(block: Block, ledger: Ledger, keys: Keys, root: str | None) -> dict[str, Any]:
    """Return a turn, as ``--json --turns`` prints it; texts whole."""
    turn = block.turn
    assert turn is not None
    found = prompt_of(turn, block.before, keys, block.run_index, is_far=block.is_far)
    end, totals = turn.response, tokens_of(turn.attempts)
    answer = answer_pieces(end) if end is not None and not end.is_partial else []
    fields = {} if end is None else end.stored_fields
    return {
        "turn": turn.number,
        "lane": block.lane,
        "model": ledger.model_of(turn.call),
        "request": address(turn.request, root),
        "response": None if end is None else address(end, root),
        "attempts": len(turn.attempts),
        "tokens": {
            "in": totals.tokens_in,
            "out": totals.tokens_out,
            "cache_read": totals.cache_read,
            "cache_write": totals.cache_write,
        },
        "money": ledger.bill(turn.attempts).as_dict(),
        "duration_ms": spent_ms(turn),
        "stop_reason": fields.get("stop_reason"),
        "error": None if turn.error is None else error_dict(turn.error),
        "prompt_recorded": found.recorded,
        "changed": [{"what": what, "how": how} for what, how in found.changes],
        "new": [_piece(piece) for piece in found.new],
        "answer": [_piece(piece) for piece in answer],
        "tools": [_tool(call, root) for call in turn.tools],
    }


def _piece(piece: Piece) -> dict[str, Any]:
    return {"role": piece.role, "sort": piece.sort, "text": piece.text, "answers": piece.id}


def _tool(call: Call, root: str | None) -> dict[str, Any]:
    return {
        "tool": call.tool,
        "id": call.tool_id,
        "args": call.args,
        "called": address(call.event, root),
        "result": None if call.end is None else address(call.end, root),
        "duration_ms": call.duration_ms,
        "error": None if call.error is None else error_dict(call.error),
        "derived": call.derived,
        "source": call.source,
        "sent": None if call.sent is None else result_text(call.sent.value),
        "verdict": call.verdict,
    }
