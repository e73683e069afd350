"""``write_html``: a comparison as one self-contained page."""

from __future__ import annotations

import os

from ...compare.moments import MomentsDiff
from ...compare.report import RunDiff
from ...errors import UsageError
from ..document import write_page
from .moments_page import moments_page
from .run_diff_page import run_diff_page


def write_html(diff: RunDiff | MomentsDiff, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a comparison of two runs or of two turns as an HTML file that opens from disk and loads nothing.

    A file that is there and is not a page of reenact is only replaced with ``force``.
    """
    if isinstance(diff, RunDiff):
        page = run_diff_page(diff)
    elif isinstance(diff, MomentsDiff):
        page = moments_page(diff)
    else:
        raise UsageError(
            f"{type(diff).__name__} is not a comparison", hint="diff() and diff_turns() return one"
        )
    write_page(os.fspath(path), page, force=force)
