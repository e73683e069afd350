"""The page of two moments of one run: what the model could see then and cannot see now, and what is new."""

from __future__ import annotations

from ...compare.moments import EDITED, MomentsDiff, PromptChange, SeenPart
from ...compare.words import GONE, NEW
from ...recording.kept_conversations import NOT_SENT
from ...tracefile.events.text import compact
from ..document import document
from ..frame import foot, verdict_badge, way_back
from ..html import Html, join, line, tag
from .changed_text import LeftOut, folded, marked

_SIGNS = {GONE: "−", EDITED: "~", NEW: "+"}


def moments_page(diff: MomentsDiff, run: str | None = None, turns: int = 0) -> str:
    """Return the page; ``run`` is the path of the run in the viewer, if it is part of that."""
    left_out = LeftOut()
    then, now = f"turn {diff.then.turn}", f"turn {diff.now.turn}"
    title = f"{diff.name}: {then} and {now}"
    headings = {
        GONE: f"Seen in {then}, not in {now}",
        EDITED: f"Edited since {then}",
        NEW: f"New in {now}",
    }
    sections = [_section(headings[sort], diff.of(sort), now, left_out) for sort in headings if diff.of(sort)]
    head = tag(
        "header",
        tag("p", "What the model saw, compared", class_="eyebrow"),
        tag("h1", line(title)),
        tag("div", verdict_badge(diff.verdict), tag("span", diff.headline), class_="facts"),
        *(tag("p", line(note), class_="soft") for note in diff.notes),
    )
    nav = _nav(diff, run, turns) if run is not None else None
    return document(title, nav, head, tag("div", *sections, id="differences"), foot(left_out, [diff.path]))


def _nav(diff: MomentsDiff, run: str, turns: int) -> Html:
    """Return the links back, and to the pairs of turns before and after."""
    links = [("all runs", "/"), ("the run", f"{run}#/e/{diff.now.address}")]
    for first in (diff.then.turn - 1, diff.now.turn):
        if 0 < first < turns:
            links.append((f"turns {first} and {first + 1}", f"{run}/turns?then={first}&now={first + 1}"))
    return way_back(*links)


def _section(heading: str, changes: list[PromptChange], now: str, left_out: LeftOut) -> Html:
    count = tag("small", f" {len(changes)}")
    return tag("section", tag("h2", heading, count), *(_change(change, now, left_out) for change in changes))


def _change(change: PromptChange, now: str, left_out: LeftOut) -> Html:
    part = change.now or change.then
    assert part is not None
    if change.words:
        body = marked(change.words)
    elif change.fields:
        body = tag("p", line(f"The text is the same; other fields differ: {', '.join(change.fields)}"))
    else:
        body = folded(part.text, left_out)
    quoted = None
    if change.quoted_in is not None:
        quoted = tag("p", f"Its text still stands in message {change.quoted_in} of {now}.", class_="soft")
    return tag("article", _facts(change, part), quoted, body, class_=f"card message {change.sort}")


def _facts(change: PromptChange, part: SeenPart) -> Html:
    number = "" if part.number is None else f"message {part.number}"
    share = f"{part.share:.0%}"
    size = share if part.tokens is None else f"~{compact(part.tokens)} tokens, {share}"
    meter = tag("meter", value=f"{part.share:.3f}", min="0", max="1", aria_label=f"{share} of the prompt")
    facts = [number, f"from {' '.join(part.origin)}" if part.origin else "", "" if part.is_sent else NOT_SENT]
    return tag(
        "div",
        tag("span", _SIGNS[change.sort], class_="sign", aria_hidden="true"),
        tag("h3", line(part.role)),
        *(tag("span", line(fact), class_="soft") for fact in facts if fact),
        join(tag("span", meter, f" {size}", class_="soft")),
        class_="facts",
    )
