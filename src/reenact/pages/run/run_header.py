"""The head of a run's page: how it ended, its figures, and what deserves a look."""

from __future__ import annotations

from collections.abc import Sequence

from ...debugger.ending import died_without_a_word, ending_error, inside, open_calls
from ...debugger.story import Story
from ...money.prices import Bill
from ...recording.recording import Recording
from ...tracefile import status as states
from ...tracefile.events.event_text import error_text
from ...tracefile.events.text import compact, count, moment, plain, seconds
from ..html import Child, Html, line, tag

_WORDS = {states.ERROR: "FAILED"}
_SORTS = {
    states.OK: "good",
    states.RUNNING: "running",
    states.ERROR: "bad",
    states.KILLED: "bad",
    states.FOREIGN: "bad",
    states.UNREADABLE: "bad",
}
_MOST_FINDINGS = 6


def status_badge(status: str) -> Html:
    """Return a status as a badge; one that is no success is loud."""
    word = _WORDS.get(status, plain(status, 20).upper())
    return tag("span", word, class_=f"status {_SORTS.get(status, 'unsure')}")


def run_header(
    recording: Recording, story: Story | None, bill: Bill | None, *, id_: str | None = "head"
) -> Html:
    """Return the first lines of a run's page; without a story its last events are read if that is needed."""
    return tag(
        "div",
        tag("div", status_badge(recording.status), tag("h1", line(recording.name)), class_="title"),
        _ended(recording, story),
        tag("div", *_figures(recording, bill), class_="figures"),
        class_="run-head",
        id=id_,
    )


def _ended(recording: Recording, story: Story | None) -> Html | None:
    """Return what the run ended with: its error, else what it died inside of."""
    error = ending_error(recording)
    calls = open_calls(recording, None if story is None else [*story.calls, *story.derived])
    words = [inside(call, recording.status, recording.first_writer) for call in calls[-2:]]
    if error is not None and not (calls and died_without_a_word(recording)):
        words.insert(0, error_text(error))
    return tag("p", line(", ".join(words)), class_="ended") if words else None


def _figures(recording: Recording, bill: Bill | None) -> list[Child]:
    tot = recording.tot
    begin, end = recording.started, recording.ended
    took = seconds(end - begin) if begin is not None and end is not None and 0 <= end - begin < 1e9 else ""
    tokens = tot["in"] + tot["out"]
    figures = [
        (compact(tot["turns"]), "turn" if tot["turns"] == 1 else "turns", f"{tot['turns']:,}"),
        (compact(recording.count()), "events", f"{recording.count():,}"),
        (compact(tokens) if tokens else "", "tokens", f"{tot['in']:,} in, {tot['out']:,} out"),
        (bill.text() if bill is not None and bill.priced else "", "", "cost"),
        (took, "", f"began {moment(begin)}"),
    ]
    shown: list[Child] = [
        tag("span", tag("b", value), f" {name}" if name else None, title=more)
        for value, name, more in figures
        if value
    ]
    if tot["err"]:
        shown.append(
            tag(
                "span",
                tag("b", str(tot["err"])),
                count(tot["err"], "error").lstrip("0123456789,"),
                class_="bad",
            )
        )
    return shown


def findings_list(found: Sequence[tuple[str, str]]) -> Html:
    """Return what deserves a look, each with a link to its event."""
    items = [
        tag("li", tag("a", where, href=f"#/e/{where}") if where else None, " ", line(words))
        for where, words in found
    ]
    if not items:
        return tag("section", id="findings", class_="findings", hidden=True)
    more = items[_MOST_FINDINGS:]
    rest = tag("details", tag("summary", f"{len(more)} more"), tag("ul", *more)) if more else None
    return tag(
        "section",
        tag("h2", "To look at"),
        tag("ul", *items[:_MOST_FINDINGS]),
        rest,
        id="findings",
        class_="findings",
    )
