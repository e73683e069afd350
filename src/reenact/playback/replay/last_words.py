"""The traceback of a run that ends because its recording does not answer: the agent's frames, no others.

Where the agent asked is what matters; how the question went on through its SDK and through us says nothing,
and hides the report that follows.
"""

from __future__ import annotations

import sys
from types import TracebackType

from ...capture.failure import is_agents
from ...errors import Diverged, Halted


def shorten() -> None:
    """From now on print such an exception with the agent's part of its traceback."""
    previous = sys.excepthook

    def hook(kind: type[BaseException], exc: BaseException, tb: TracebackType | None) -> None:
        if isinstance(exc, Diverged | Halted):
            tb = agents_part(tb)
            exc = exc.with_traceback(tb)
        previous(kind, exc, tb)

    sys.excepthook = hook


def agents_part(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the agent's outermost frame to its innermost; all of it if it has none."""
    first = last = None
    each = tb
    while each is not None:
        if is_agents(each.tb_frame.f_code.co_filename):
            first, last = first or each, each
        each = each.tb_next
    if last is None:
        return tb
    last.tb_next = None
    return first
