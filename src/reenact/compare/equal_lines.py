"""Long stretches that two runs have in common line by line: a comparison need not read them.

Only whole turns far from any difference are left out, of large files with one lane, so that the report is the
same as if all were read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from ..recording.recording import Recording
from ..recording.run_lines import each_line
from ..tracefile.light_lines import skimmer
from ..tracefile.line_prints import BEGINS, ENDS, REQUEST, RESPONSE, LinePrints
from ..wire import reading
from ..wire.json_values import string
from .common_sequence import anchors

_KINDS = {kind: kind for kind in (*BEGINS, *ENDS)}

LEAST = 100
"""Lines of a stretch that is left out."""

_LOOK = 1_000
"""Lines at the beginning that show whether two runs have lines in common."""

_AROUND = 6
"""Steps before and after a difference that are read, beside as many as it has lines."""


class Stretch(NamedTuple):
    """Events of a run that another run has, too."""

    first: int
    last: int
    """The event after it: a request, at which no call is open."""
    steps: int
    turns: int
    request: int
    """The last one in it."""
    tools: frozenset[str]


class _Lines:
    """The lines of one run, as far as two runs are compared by them."""

    def __init__(self, recording: Recording, side: int) -> None:
        self._recording, self._side = recording, side
        self.known = LinePrints()
        self.prints: list[object] = []
        """Of each event: equal for equal lines."""
        self.kinds: list[bytes] = []
        """Of those events that can be left out; others have none."""
        self.lengths = array("Q")
        """Of each request: its number of messages."""
        self.is_closed = bytearray()
        """1 if no call is open before an event."""
        self.uses: dict[int, list[tuple[str | None, str]]] = {}
        """Of the responses on the left: ids and names of the tools that they request."""
        self._open = 0

    def read(self, numbers: range) -> None:
        """Take in the next events."""
        recording, known, skim = self._recording, self.known, skimmer()
        places = recording.execution.places
        for position, head, line in each_line(recording, map(recording.execution.position, numbers)):
            kind = _KINDS.get(head[3], b"") if head is not None else b""
            found = known.of(kind, line, head.end()) if head is not None and kind else None
            self.kinds.append(kind)
            self.lengths.append(known.length if kind else 0)
            self.is_closed.append(not self._open)
            self.prints.append((self._side, position) if found is None else found)
            if kind:
                self._open += 1 if kind in BEGINS else -1
            else:
                known.other(line)
            if kind in (REQUEST, RESPONSE):
                recording.shelf.learn(kind.decode(), {"call": known.call}, places[position])
            if kind == RESPONSE and found is not None and self._side == 0:
                fields = skim(line)
                uses = reading.tool_uses(fields.get("body"), string(fields.get("provider")))
                self.uses[len(self.kinds) - 1] = [(use.id, use.name) for use in uses]


def equal_stretches(left: Recording, right: Recording) -> tuple[list[Stretch], list[Stretch]]:
    """Return what of two runs need not be read, for each run; nothing where that cannot be told by lines."""
    if not left.execution.is_gapless or not right.execution.is_gapless:
        return [], []
    one, other = _Lines(left, 0), _Lines(right, 1)
    one.read(range(min(_LOOK, left.count())))
    other.read(range(min(_LOOK, right.count())))
    if len({*one.prints} & {*other.prints}) < _LOOK // 10:
        return [], []  # hardly anything in common
    one.read(range(len(one.prints), left.count()))
    other.read(range(len(other.prints), right.count()))
    if not one.known.is_one_lane or not other.known.is_one_lane:
        return [], []
    for event, uses in one.uses.items():
        if any(key not in one.known.tool_ids for key, _ in uses):
            one.prints[event] = (0, event)  # a tool that has no lines of its own is a step, too
    found: tuple[list[Stretch], list[Stretch]] = [], []
    for first, last, shift in _far_from_differences(one, other):
        is_cheaper = one.lengths[last] <= 3 * (last - first)  # the request after it is rebuilt whole
        if last - first >= LEAST and is_cheaper:
            tools = frozenset(name for event in range(first, last) for _, name in one.uses.get(event, ()))
            found[0].append(_stretch(one, first, last, tools))
            found[1].append(_stretch(other, first + shift, last + shift, tools))
    return found


def _stretch(run: _Lines, first: int, last: int, tools: frozenset[str]) -> Stretch:
    kinds = run.kinds[first:last]
    request = max(event for event in range(first, last) if run.kinds[event] == REQUEST)
    steps = sum(kind in BEGINS for kind in kinds)
    return Stretch(first, last, steps, kinds.count(REQUEST), request, tools)


def _far_from_differences(one: _Lines, other: _Lines) -> Iterator[tuple[int, int, int]]:
    """Yield the first event on the left, the one after the last, and how much later they are on the right."""
    same = anchors(one.prints, other.prints)
    blocks = [(0, 0, 0, 0)]
    for _, group in groupby(same, lambda pair: pair[1] - pair[0]):
        pairs = list(group)
        start = 0
        for at in range(1, len(pairs) + 1):
            if at == len(pairs) or pairs[at][0] != pairs[at - 1][0] + 1:
                blocks.append((*pairs[start], pairs[at - 1][0] + 1, pairs[at - 1][1] + 1))
                start = at
    blocks.append((len(one.prints), len(other.prints), 0, 0))
    for number in range(1, len(blocks) - 1):
        before, block, after = blocks[number - 1 : number + 2]
        first, last, shift = block[0], block[2], block[1] - block[0]
        first = _inwards(one, other, first, last, shift, 1, max(first - before[2], block[1] - before[3]))
        last = _inwards(one, other, last, first, shift, -1, max(after[0] - last, after[1] - block[3]))
        if last > first:
            yield first, last, shift


def _inwards(one: _Lines, other: _Lines, start: int, stop: int, shift: int, way: int, gap: int) -> int:
    """Return a request at which nothing is open, with some steps between it and the end of a block."""
    steps = gap + _AROUND
    at = start
    while at != stop:
        here = at if way > 0 else at - 1
        is_whole = one.kinds[here] == REQUEST and one.is_closed[here] and other.is_closed[here + shift]
        if steps <= 0 and is_whole:
            return here
        steps -= one.kinds[here] in BEGINS
        at += way
    return stop
