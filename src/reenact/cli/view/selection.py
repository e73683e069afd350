"""Which turns of a run to show: all of a short one, the two ends of a long one.

A small run (``Recording.is_small``) is read whole. Of a larger one only a window at either
end is parsed, so that a run of any size is shown at once; sums that need all of it are then left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ...errors import NoSuchEvent
from ...recording.calls import TOOL, Call, Turn, join_calls
from ...recording.derived_tools import turns_of
from ...recording.index import MAIN, Index
from ...recording.recording import SMALL_BYTES, Recording
from ...tracefile.event import Event
from ...tracefile.text import count, plain

_HEAD, _TAIL = 400, 2_000
"""Events parsed at either end of a larger run; the tail also tells what it died inside of."""

_FEW = 100
"""Events of the tail that are parsed however large they are."""

_NEAR = 8
"""Turns of a lane among which the conversation is sought that a request goes on with."""

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
    lane: str = MAIN
    is_far: bool = False
    """True in the tail of a large run: its requests build on a chain too long to be followed."""
    skipped: int = 0
    """Events in the middle that were not looked at."""


class Story(NamedTuple):
    """What is shown of a run."""

    blocks: list[Block]
    calls: list[Call]
    """All calls of a run read whole; of a larger one those of its tail."""
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
        return Story(blocks, recording.calls(), True, _lanes(recording.index))
    total = recording.count()
    start = _tail_start(recording)
    if start == 0:  # few events, but large ones
        whole = _part(recording, join_calls(recording.events))
        blocks = _blocks(recording, whole, whole.turns, range(total))
        far = [block._replace(is_far=True) for block in blocks]
        return Story(far, list(whole.calls), False, _lanes(whole))
    stop = min(_HEAD, start)
    first = _part(recording, join_calls(recording.events[:stop]))
    head = _blocks(recording, first, first.turns, range(stop))
    tail_calls = join_calls(recording.events[start:])
    turns = turns_of(tail_calls)
    while turns and _is_torn(turns[0]):
        del turns[0]
    for back, turn in enumerate(reversed(turns)):
        turn.number = recording.tot["turns"] - back
    last = Index(recording, tail_calls, turns)
    tail = _blocks(recording, last, turns, range(start, total))
    if turns:
        tail = [block._replace(is_far=True) for block in tail if block.turn is not None]
    if head[-1].turn is not None:
        del head[-1]  # it may go on beyond the window
    elif not turns:
        items = [*head[0].items, *(item for block in tail for item in block.items)]
        head, tail = [Block(None, 0, items, skipped=start - stop)], []
    return Story([*head, *tail], tail_calls, False, list(dict.fromkeys([*_lanes(first), *_lanes(last)])))


def _part(recording: Recording, calls: list[Call]) -> Index:
    """Return the index of a part of a run, read without the rest."""
    return Index(recording, calls, turns_of(calls))


def _tail_start(recording: Recording) -> int:
    """Return the event with which the tail begins: not too many to the end, nor too many bytes."""
    total = recording.count()
    start = max(0, total - _TAIL)
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
    blocks = {
        turn.number: Block(
            turn,
            turn.number,
            list(turn.tools),
            index.turns_before(turn, _NEAR),
            index.turn_after(turn),
            lane=index.lane_of(turn.call),
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


def abridged(story: Story, failing: int | None) -> list[Block | int]:
    """Return the blocks of a long run's two ends and of the failing turn, and how many turns are left out."""
    shown: list[Block | int] = []
    numbers = [block.number for block in story.blocks if block.turn is not None]
    last = numbers[-1] if numbers else 0
    keep = {*range(FIRST_TURNS + 1), *range(last - LAST_TURNS + 1, last + 1), failing}
    if last <= FIRST_TURNS + LAST_TURNS + 1:
        keep |= set(numbers)
    last_shown = 0
    for block in story.blocks:
        if block.turn is None:
            shown.append(block)
        elif block.number in keep:
            if block.number > last_shown + 1:
                shown.append(block.number - last_shown - 1)
            shown.append(block)
            last_shown = block.number
    return shown


def only(story: Story, number: int, name: str) -> Block:
    """Return the block of one turn."""
    for block in story.blocks:
        if block.turn is not None and block.number == number:
            return block
    turns = sum(block.turn is not None for block in story.blocks)
    raise NoSuchEvent(
        f"{plain(name, 60)} has no turn {number}", asked=str(number), hint=f"it has {count(turns, 'turn')}"
    )
