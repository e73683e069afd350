"""How much work a piece of code does, counted rather than timed: a busy machine gives the same answer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType


def calls_of(work: Callable[[], object], only: CodeType | Callable[..., object] | None = None) -> int:
    """Return how many functions of Python the work calls; ``only``: how often that one, or a built-in one."""
    count = 0

    def look(frame: FrameType, event: str, built_in: object) -> None:
        nonlocal count
        if event == "call":
            count += only is None or frame.f_code is only
        elif event == "c_call":
            count += built_in is only

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count
