"""Two sets of runs on a terminal: where the bad ones leave the path, and what separates them."""

from __future__ import annotations

from ...compare.report import DIFFERENT, SAME
from ...compare.run_sets import SetDiff
from ...tracefile.events.text import clean, count
from ..output import Cell, Output

_MOST = 8


def show_run_sets(diff: SetDiff, out: Output, *, full: bool = False, summary: bool = False) -> None:
    """Print a comparison of two sets of runs."""
    color = "green" if diff.verdict == SAME else "yellow"
    for name, text in zip(("leave the path", "what separates", "how sure"), diff.headline, strict=True):
        out.paragraph([(f"{name:16}", f"bold {color}"), (clean(text), "")])
    for text in diff.left_out:
        out.paragraph([("left out: ", "yellow"), (clean(text), "")])
    if summary:
        return
    good, bad = len(diff.good), len(diff.bad)
    if diff.departures:
        out.line()
        out.heading(f"where {count(bad, 'bad run')} leave the path of {clean(diff.reference or '')}")
        rows: list[list[Cell]] = []
        for each in diff.departures if full else diff.departures[:_MOST]:
            step = f"step {each.step.number}  {each.step.title}" if each.step is not None else "the end"
            rows.append(
                [(f"{each.bad}/{bad}", "red"), (f"{each.good}/{good}", "green"), (each.cause, ""), (step, "")]
            )
        out.table(["bad", "good", "cause", "step of the reference"], rows, flexible=3)
    if diff.separators:
        out.line()
        sure = "" if diff.verdict == DIFFERENT else " (not sure)"
        out.heading(f"what separates them{sure}")
        rows = []
        for found in diff.separators if full else diff.separators[:_MOST]:
            rows.append(
                [
                    (f"{found.bad}/{bad}", "red"),
                    (f"{found.good}/{good}", "green"),
                    (f"{found.confidence:.1%}", ""),
                    (found.what, ""),
                ]
            )
        out.table(["bad", "good", "confidence", "feature"], rows, flexible=3)
        more = len(diff.separators) - _MOST
        if more > 0 and not full:
            out.line(out.paint(f"… {count(more, 'more feature')}; --all shows them", "yellow"))
        best = diff.separators[0]
        place = f" --event {best.address}" if best.address is not None else ""
        out.line()
        out.line(out.paint(f"reenact show {clean(best.example)}{place}", "dim"))
