"""Which turns of a run to tell: all of a short one, the two ends of a long one.

A run up to ``WHOLE_EVENTS`` and ``WHOLE_BYTES`` is read whole. Of a larger one only a window at either
end is parsed, so that a run of any size is shown at once; sums that need all of it are then left out.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from ...errors import NoSuchEvent
from ...recording.calls import MODEL, TOOL, Call, Turn, join_calls
from ...recording.derived_tools import turns_of
from ...recording.lanes import lane_name
from ...recording.recording import Recording
from ...tracefile.event import Event
from ...tracefile.text import count, plain
from .ending import first_writer

WHOLE_EVENTS, WHOLE_BYTES = 5_000, 8 << 20
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
    is_far: bool = False
    """True in the tail of a large run: its requests build on a chain too long to be followed."""
    skipped: int = 0
    """Events in the middle that were not looked at."""


class Story(NamedTuple):
    """What is told of a run."""

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


def is_small(recording: Recording) -> bool:
    """True if a run can be read whole in no time."""
    if recording.count() > WHOLE_EVENTS:
        return False
    sizes = [
        os.path.getsize(source.path) for source in recording.shelf.sources if os.path.exists(source.path)
    ]
    return sum(sizes) <= WHOLE_BYTES


def tell(recording: Recording, *, everything: bool = False) -> Story:
    """Return the blocks of a run; of a large one those near its two ends."""
    root = first_writer(recording)
    if everything or is_small(recording):
        calls = recording.calls()
        blocks = _blocks(calls, recording.turns(derived=True), range(recording.count()), root)
        return Story(blocks, calls, True, _lanes(calls, root))
    total = recording.count()
    start = _tail_start(recording)
    if start == 0:  # few events, but large ones
        calls = join_calls(recording.events)
        blocks = _blocks(calls, turns_of(calls), range(total), root)
        return Story([block._replace(is_far=True) for block in blocks], calls, False, _lanes(calls, root))
    stop = min(_HEAD, start)
    head_calls, tail_calls = join_calls(recording.events[:stop]), join_calls(recording.events[start:])
    head = _blocks(head_calls, turns_of(head_calls), range(stop), root)
    turns = turns_of(tail_calls)
    while turns and _is_torn(turns[0]):
        del turns[0]
    for back, turn in enumerate(reversed(turns)):
        turn.number = recording.tot["turns"] - back
    tail = _blocks(tail_calls, turns, range(start, total), root)
    if turns:
        tail = [block._replace(is_far=True) for block in tail if block.turn is not None]
    if head[-1].turn is not None:
        del head[-1]  # it may go on beyond the window
    elif not turns:
        items = [*head[0].items, *(item for block in tail for item in block.items)]
        head, tail = [Block(None, 0, items, skipped=start - stop)], []
    return Story([*head, *tail], tail_calls, False, _lanes([*head_calls, *tail_calls], root))


def _tail_start(recording: Recording) -> int:
    """Return the event with which the tail begins: not too many to the end, nor too many bytes."""
    total = recording.count()
    start = max(0, total - _TAIL)
    while total - start > _FEW and _bytes_after(recording.events[start]) > WHOLE_BYTES:
        start += (total - start) // 2
    return start


def _bytes_after(event: Event) -> int:
    source, offset = event.stored_in.at(event.stored_at)
    return os.path.getsize(source.path) - offset


def _is_torn(turn: Turn) -> bool:
    """True for a turn whose beginning is not in the window."""
    call = turn.attempts[0]
    return call.attempt > 1 or call.begin is None


def lane_of(call: Call, root: str | None) -> str:
    """Return the lane of a call as it is named in a run of several processes."""
    return lane_name(call.lane, call.event.writer, root)


def _lanes(calls: Sequence[Call], root: str | None) -> list[str]:
    return list(dict.fromkeys(lane_of(call, root) for call in calls if call.kind == MODEL))


def _blocks(calls: Sequence[Call], turns: Sequence[Turn], indexes: range, root: str | None) -> list[Block]:
    """Return the turns in order with the tools and other events that go with each."""
    neighbours = _neighbours(turns, root)
    blocks = [Block(None, 0, [])]
    blocks += [Block(turn, turn.number, list(turn.tools), *neighbours[turn.number]) for turn in turns]
    taken, told = set(), {id(call) for turn in turns for call in (*turn.attempts, *turn.tools)}
    for call in calls:
        taken |= {event.index for event in (call.begin, call.end) if event is not None}
        if call.kind == TOOL and id(call) not in told:
            blocks[0].items.append(call)
    starts = [turn.request.index or 0 for turn in turns]
    for index in indexes:
        if index not in taken:
            blocks[bisect_right(starts, index)].items.append(index)
    for block in blocks:
        block.items.sort(key=_order)
    return blocks if blocks[0].items else blocks[1:]


def _neighbours(turns: Sequence[Turn], root: str | None) -> dict[int, tuple[list[Turn], Turn | None]]:
    """Return the turns before and after each turn in its lane, by its number."""
    found: dict[int, tuple[list[Turn], Turn | None]] = {}
    lanes: dict[str, list[Turn]] = {}
    for turn in turns:
        before = lanes.get(lane := lane_of(turn.call, root), [])
        found[turn.number] = before, None
        if before:
            found[before[0].number] = found[before[0].number][0], turn
        lanes[lane] = [turn, *before[: _NEAR - 1]]
    return found


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
    told = 0
    for block in story.blocks:
        if block.turn is None:
            shown.append(block)
        elif block.number in keep:
            if block.number > told + 1:
                shown.append(block.number - told - 1)
            shown.append(block)
            told = block.number
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
