"""What the pages of comparisons have in common: the badge of the verdict, and what was left out."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .. import __version__
from ..compare.report import CANNOT_TELL, DIFFERENT, SAME
from .comparison.changed_text import LeftOut
from .html import Html, line, tag

_BADGES = {SAME: "same", DIFFERENT: "different", CANNOT_TELL: "unknown"}


def verdict_badge(verdict: str) -> Html:
    """Return the verdict as a badge."""
    return tag("span", verdict, class_=f"badge {_BADGES[verdict]}")


def way_back(*links: tuple[str, str]) -> Html:
    """Return the links to other pages of the viewer: words and paths."""
    return tag("nav", *(tag("a", words, href=path) for words, path in links), aria_label="viewer")


def foot(left_out: LeftOut, paths: Sequence[str], whole: str = "comparison") -> Html:
    """Return the end of a page: what it was made from, and what is not on it."""
    notes = left_out.notes
    missing = (
        [tag("p", "Left out of this page:"), tag("ul", *(tag("li", line(note)) for note in notes))]
        if notes
        else []
    )
    names = ", ".join(dict.fromkeys(map(os.path.basename, paths)))  # where they are is nobody else's business
    files = tag("p", f"Made by reenact {__version__} from ", tag("code", line(names)))
    complete = None if notes else tag("p", f"Nothing of the {whole} was left out.")
    return tag("footer", *missing, complete, files)
