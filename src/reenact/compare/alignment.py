"""Which step of one run corresponds to which of another: equal keys first, then similarity in the gaps.

An equal beginning and end are trimmed; a longest common subsequence of keys gives anchors; what lies between
two anchors is aligned by similarity (Needleman-Wunsch), or by position where that would take too long. Steps
of one block, the tools of one response, are matched as sets: their order does not count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from ..recording.calls import MODEL
from .common_sequence import anchors
from .steps import StepFacts

Pair = tuple[StepFacts | None, StepFacts | None]
Similarity = Callable[[StepFacts, StepFacts], float]
"""From 0 to 1; below 0 for steps that never correspond."""

_GAP = -0.6
_FIRST = 0.3
"""Share of equal steps that two lanes need more than the first lanes of both to be matched instead."""

MOST_CELLS = 250_000
"""Pairs of steps compared in one gap; a larger one is aligned by position."""

ALL_CELLS = 1_000_000
"""The same for all gaps of a comparison."""


class Alignment:
    """Aligns steps; remembers what it had to do by position."""

    def __init__(self, similarity: Similarity) -> None:
        self._similarity = similarity
        self._cells = ALL_CELLS
        self.by_position = 0
        """Steps that were aligned by their position only."""

    def align(self, left: Sequence[StepFacts], right: Sequence[StepFacts]) -> list[Pair]:
        """Return all steps of two lanes in order, each with the one it corresponds to.

        Of several ways that are equally good the same one is taken, whichever lane is the left one.
        """
        if [step.key for step in right] < [step.key for step in left]:
            return [(one, other) for other, one in self._aligned(right, left)]
        return self._aligned(left, right)

    def _aligned(self, left: Sequence[StepFacts], right: Sequence[StepFacts]) -> list[Pair]:
        left, right = _in_blocks(left), _in_blocks(right)
        pairs: list[Pair] = []
        i = j = 0
        for a, b in [
            *anchors([step.key for step in left], [step.key for step in right]),
            (len(left), len(right)),
        ]:
            pairs += self._gap(left[i:a], right[j:b])
            if a < len(left):
                pairs.append((left[a], right[b]))
            i, j = a + 1, b + 1
        return _whole_turns(self._blocks(pairs))

    def _gap(self, left: Sequence[StepFacts], right: Sequence[StepFacts]) -> list[Pair]:
        """Align what lies between two anchors."""
        if not left or not right:
            return [*((step, None) for step in left), *((None, step) for step in right)]
        cells = len(left) * len(right)
        if cells > min(MOST_CELLS, self._cells):
            self.by_position += len(left) + len(right)
            return _by_position(left, right)
        self._cells -= cells
        return self._by_similarity(left, right)

    def _by_similarity(self, left: Sequence[StepFacts], right: Sequence[StepFacts]) -> list[Pair]:
        width = len(right) + 1
        above = [_GAP * column for column in range(width)]
        ways = [bytearray(b"\x02" * width)]  # 0: both, 1: left alone, 2: right alone
        for row, step in enumerate(left, 1):
            here, way = [_GAP * row], bytearray(b"\x01" * width)
            for column, other in enumerate(right, 1):
                alone, last = above[column] + _GAP, here[-1] + _GAP
                same = self._similarity(step, other)
                both = above[column - 1] + 2 * same - 1 if same >= 0 else -1e9
                if both >= alone and both >= last:
                    here.append(both)
                    way[column] = 0
                elif alone >= last:
                    here.append(alone)
                else:
                    here.append(last)
                    way[column] = 2
            above = here
            ways.append(way)
        found: list[Pair] = []
        row, column = len(left), len(right)
        while row or column:
            step_by = ways[row][column] if row else 2
            take_left, take_right = step_by != 2, step_by != 1
            found.append((left[row - 1] if take_left else None, right[column - 1] if take_right else None))
            row, column = row - take_left, column - take_right
        return found[::-1]

    def _blocks(self, pairs: list[Pair]) -> list[Pair]:
        """Pair what is left of two blocks that correspond, whatever the order in them."""
        partner = {left.number: right for left, right in pairs if left is not None and right is not None}
        alone: dict[int, list[StepFacts]] = defaultdict(list)
        for _, right in pairs:
            if _ is None and right is not None and right.by is not None:
                alone[right.by.number].append(right)
        moved: dict[int, StepFacts] = {}
        for left, right in pairs:
            if left is None or right is not None or left.by is None:
                continue
            by = partner.get(left.by.number)
            others = alone.get(by.number, []) if by is not None else []
            best = max(others, key=lambda each: self._similarity(left, each), default=None)
            if best is not None and self._similarity(left, best) >= 0:
                others.remove(best)
                moved[left.number] = best
        if not moved:
            return pairs
        taken = {step.number for step in moved.values()}
        return [
            (left, moved[left.number]) if left is not None and left.number in moved else (left, right)
            for left, right in pairs
            if left is not None or right is None or right.number not in taken
        ]


def _in_blocks(steps: Sequence[StepFacts]) -> list[StepFacts]:
    """Return the steps with the tools of each response in an order of their own."""
    found: list[StepFacts] = []
    start = 0
    while start < len(steps):
        end = start + 1
        while steps[start].block and end < len(steps) and steps[end].block == steps[start].block:
            end += 1
        block = steps[start:end]
        found += (
            sorted(block, key=lambda step: (step.name, step.args or b"", step.key))
            if end - start > 1
            else block
        )
        start = end
    return found


def _whole_turns(pairs: list[Pair]) -> list[Pair]:
    """Shift stretches of only one run that begin within a turn, where equal keys allow it.

    Of a call that was made twice, model call and tool are then one stretch.
    """
    for side in (0, 1):
        at = 1
        while at < len(pairs):
            first = pairs[at][side]
            if pairs[at][1 - side] is not None or first is None or pairs[at - 1][1 - side] is None:
                at += 1
                continue
            end = at
            while end < len(pairs) and pairs[end][1 - side] is None:
                end += 1
            begin = _shifted(pairs, side, at, end)
            if begin < at:
                own = [pair[side] for pair in pairs[begin:end]]
                others = [pair[1 - side] for pair in pairs[begin:at]]
                alone = [None] * (end - at)
                other_side = [*alone, *others]
                pairs[begin:end] = [
                    (one, other) if side == 0 else (other, one)
                    for one, other in zip(own, other_side, strict=True)
                ]
            at = end
    return pairs


def _shifted(pairs: list[Pair], side: int, at: int, end: int) -> int:
    """Return where a stretch of only one run may begin earlier, with a model call; else where it begins."""
    begin, last = at, end - 1
    while True:
        first = pairs[begin][side]
        if first is None or first.kind == MODEL:
            return begin
        before, other, tail = pairs[begin - 1][side], pairs[begin - 1][1 - side], pairs[last][side]
        if begin == 0 or before is None or other is None or tail is None or before.key != tail.key:
            return at
        begin, last = begin - 1, last - 1


def _by_position(left: Sequence[StepFacts], right: Sequence[StepFacts]) -> list[Pair]:
    found: list[Pair] = []
    for place in range(max(len(left), len(right))):
        one = left[place] if place < len(left) else None
        other = right[place] if place < len(right) else None
        if one is not None and other is not None and (one.kind, one.name) == (other.kind, other.name):
            found.append((one, other))
        else:
            found += [(one, None)] if one is not None else []
            found += [(None, other)] if other is not None else []
    return found


def match_lanes(
    left: dict[str, list[StepFacts]], right: dict[str, list[StepFacts]]
) -> list[tuple[str | None, str | None]]:
    """Return which lane corresponds to which: by what they share, then by name, then by order."""
    keys = {lane: {step.key for step in steps} for lane, steps in (*left.items(),)}
    others = {lane: {step.key for step in steps} for lane, steps in (*right.items(),)}
    main = next(iter(left), None), next(iter(right), None)
    scores = []
    if len(left) * len(right) <= 10_000:
        for a, lane in enumerate(left):
            for b, other in enumerate(right):
                shared = len(keys[lane] & others[other]) / max(1, len(keys[lane]), len(others[other]))
                score = shared + 0.01 * (lane == other) + _FIRST * ((lane, other) == main)
                scores.append((-score, abs(a - b), a, b, lane, other))
    found: dict[str, str] = {}
    for score, _, _, _, lane, other in sorted(scores):
        if score < 0 and lane not in found and other not in found.values():
            found[lane] = other
    rest = [lane for lane in left if lane not in found]
    free = [lane for lane in right if lane not in set(found.values())]
    found |= dict(zip(rest, free, strict=False))
    taken = set(found.values())
    return [
        *((lane, found.get(lane)) for lane in left),
        *((None, lane) for lane in right if lane not in taken),
    ]
