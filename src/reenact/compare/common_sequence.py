"""What two sequences have in common, in order."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Sequence

_MOST_EQUAL = 2_000_000
"""Pairs of equal keys; with more of them, in loops, the n-th of a key corresponds to the n-th."""


def anchors(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence, without ties to what is far away.

    >>> anchors("abcd", "axcd")
    [(0, 0), (2, 2), (3, 3)]
    """
    first, most = 0, min(len(left), len(right))
    while first < most and left[first] == right[first]:
        first += 1
    last = 0
    while last < most - first and left[-1 - last] == right[-1 - last]:
        last += 1
    middle = _common(left[first : len(left) - last], right[first : len(right) - last])
    ends = [(len(left) - n, len(right) - n) for n in range(last, 0, -1)]
    return [*((n, n) for n in range(first)), *((first + i, first + j) for i, j in middle), *ends]


def _common(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return a longest common subsequence (Hunt and Szymanski)."""
    places: dict[Hashable, list[int]] = defaultdict(list)
    for place, key in enumerate(right):
        places[key].append(place)
    if sum(len(places[key]) for key in left if key in places) > _MOST_EQUAL:
        return _common(_numbered(left), _numbered(right))
    ends: list[int] = []
    chains: list[tuple[int, int, int]] = []
    """(place left, place right, the chain before), linked by number."""
    tops: list[int] = []
    for place, key in enumerate(left):
        for other in reversed(places.get(key, ())):
            length = bisect_left(ends, other)
            before = tops[length - 1] if length else -1
            if length == len(ends):
                ends.append(other)
                tops.append(len(chains))
            elif other < ends[length]:
                ends[length], tops[length] = other, len(chains)
            else:
                continue
            chains.append((place, other, before))
    found, at = [], tops[-1] if tops else -1
    while at >= 0:
        place, other, at = chains[at]
        found.append((place, other))
    return found[::-1]


def _numbered(keys: Sequence[Hashable]) -> list[Hashable]:
    often: dict[Hashable, int] = defaultdict(int)
    found: list[Hashable] = []
    for key in keys:
        often[key] += 1
        found.append((key, often[key]))
    return found
