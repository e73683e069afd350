"""Percentiles by nearest rank: always a duration that was measured, exact over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..errors import UsageError


def nearest_rank(q: float, ordered: Sequence[float]) -> float | None:
    """Return the smallest value that at least ``q`` percent of the ordered values do not exceed.

    >>> nearest_rank(95, range(1, 101)), nearest_rank(50, [7]), nearest_rank(50, [])
    (95, 7, None)
    """
    if not isinstance(q, int | float) or not 0 < q <= 100:
        raise UsageError(f"{q!r} is no percentile", hint="it is a number above 0 and up to 100, such as 95")
    if not ordered:
        return None
    # Rounded first: 0.07 * 100 is a little more than 7, and the rank is not 8.
    rank = math.ceil(round(q * len(ordered) / 100, 9))
    return ordered[max(rank, 1) - 1]
