"""Results in a notebook: a run, an event, a call or a comparison as one piece of HTML without script.

It brings its own small style sheet and takes its colours from the page around it, light or dark. A notebook
keeps it in its file, so it is short; the viewer and ``write_html`` have all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .. import schema
from ..compare.comparison import cause_line, where
from ..compare.moments import MomentsDiff, PromptChange
from ..compare.report import Change, RunDiff
from ..compare.words import GONE, NEW
from ..debugger.debugger import Debugger
from ..debugger.run_findings import run_findings
from ..debugger.story import bill_of, story_of
from ..money.ledger import Ledger
from ..recording.calls import Call
from ..recording.prompt import answer_pieces
from ..recording.recording import Recording
from ..tracefile.events.event import ErrorText, Event
from ..tracefile.events.event_text import address, describe, error_text
from ..tracefile.events.text import count, milliseconds, plain
from .comparison.changed_text import LeftOut, both_sides, folded, marked, value_text
from .document import asset
from .frame import verdict_badge
from .html import Child, Html, join, line, tag
from .run.event_card import piece_html
from .run.json_tree import json_tree
from .run.run_header import run_header

_MOST_EVENTS = 16
_MOST_PARTS = 6
_MOST_TEXT = 2_000
_HIDDEN = frozenset((*schema.ENVELOPE, "body", "chain", "tot", "frames"))


def html_of(value: object) -> str:
    """Return what a notebook shows of a result; an error of ours is shown in its place."""
    try:
        body = join(*_body(value))
    except Exception as why:  # its file may have gone
        body = tag("p", line(f"{type(value).__name__}: cannot be shown ({type(why).__name__}: {why})"))
    return tag("div", tag("style", Html(asset("notebook.css"))), body, class_="reenact")


def _body(value: object) -> Iterator[Child]:
    if isinstance(value, Debugger):
        value = value.recording
    if isinstance(value, Recording):
        yield from _recording(value)
    elif isinstance(value, Event):
        yield from _event(value)
    elif isinstance(value, Call):
        yield from _call(value)
    elif isinstance(value, RunDiff):
        yield from _run_diff(value)
    elif isinstance(value, MomentsDiff):
        yield from _moments(value)


# A run.


def _recording(recording: Recording) -> Iterator[Child]:
    story = story_of(recording)
    yield run_header(recording, story, bill_of(story, Ledger()), id_=None)
    found = [words for _, words in run_findings(recording)]
    if found:
        yield tag("p", tag("b", "To look at"))
        yield tag("ul", *(tag("li", line(words)) for words in found[:_MOST_PARTS]))
    total, root = recording.count(), recording.first_writer
    half = _MOST_EVENTS // 2
    rows = list(_rows(recording.events[0 : min(half, total)], root))
    between = total - 2 * half
    if between > 0:
        cells = [tag("td"), tag("td"), tag("td", f"… {count(between, 'event')}", class_="soft")]
        rows.append(tag("tr", *cells, tag("td")))
    rows += _rows(recording.events[max(total - half, half) : total], root)
    yield tag("table", tag("tbody", *rows))


def _rows(events: Iterable[Event], root: str | None) -> Iterator[Html]:
    for event in events:
        found = describe(event)
        words = plain(" ".join(part for part in (found.text, found.error) if part), 160)
        figures = "  ".join(part for part in (found.tokens, found.duration) if part)
        cells = [tag("td", address(event, root), class_="soft"), tag("td", found.sign), tag("td", words)]
        sort = "failed" if event.error is not None else None
        yield tag("tr", *cells, tag("td", figures, class_="soft"), class_=sort)


# One event, one call.


def _event(event: Event) -> Iterator[Child]:
    found = describe(event)
    facts = [plain(event.kind, 60), f"{found.tokens} tokens" if found.tokens else "", found.duration]
    yield _title(found.sign, found.text or event.kind, facts)
    yield _failed(event.error)
    left_out = LeftOut()
    for piece in answer_pieces(event)[:_MOST_PARTS] if not event.is_partial else ():
        yield piece_html(piece._replace(text=left_out.cut(piece.text, _MOST_TEXT)), left_out)
    fields = {} if event.is_partial else event.stored_fields
    yield json_tree({key: _short(value) for key, value in fields.items() if key not in _HIDDEN})


def _call(call: Call) -> Iterator[Child]:
    took = milliseconds(call.duration_ms) if call.duration_ms is not None else "not ended"
    lane = f"lane {plain(call.lane, 60)}" if call.lane != "main" else ""
    attempt = f"attempt {call.attempt}" if call.attempt > 1 else ""
    yield _title("", call.tool or f"{call.kind} call", [call.kind if call.tool else "", took, lane, attempt])
    yield _failed(call.error)
    left_out = LeftOut()
    if call.args is not None:
        yield join(tag("h3", "Arguments"), _value(call.args))
    if call.result is not None:
        yield join(tag("h3", "Result"), _value(call.result))
    if call.args is None and call.end is not None and not call.end.is_partial:
        for piece in answer_pieces(call.end)[:_MOST_PARTS]:
            yield piece_html(piece._replace(text=left_out.cut(piece.text, _MOST_TEXT)), left_out)


def _title(sign: str, words: str, facts: list[str]) -> Html:
    soft = [tag("span", fact, class_="soft") for fact in facts if fact]
    return tag("div", tag("b", f"{sign} " if sign else None, line(plain(words, 160))), *soft, class_="facts")


def _failed(error: ErrorText | None) -> Html | None:
    return None if error is None else tag("p", line(error_text(error)), class_="ended")


def _short(value: object) -> object:
    """Return a value of a field: a long text without its end."""
    return LeftOut().cut(value, _MOST_TEXT) if isinstance(value, str) else value


def _value(value: object) -> Html:
    if isinstance(value, dict | list) and value:
        return json_tree(value)
    return folded(LeftOut().cut(value_text(value), _MOST_TEXT), LeftOut())


# Comparisons.


def _run_diff(diff: RunDiff) -> Iterator[Child]:
    names = dict.fromkeys((diff.left.name, diff.right.name))
    yield tag("div", verdict_badge(diff.verdict), tag("b", line(" and ".join(names))), class_="facts")
    for words in filter(None, diff.headline):
        yield tag("p", line(words))
    for at, each in enumerate(diff.roots[:_MOST_PARTS]):
        if at > 0:  # the lines above are about the first
            yield tag("p", tag("b", f"{each.number} "), line(where(each)))
            yield tag("p", line(cause_line(each)), class_="soft")
        yield from map(_change, each.changes[:3])
    yield _more(len(diff.roots) - _MOST_PARTS, "root")
    for note in diff.notes:
        yield tag("p", line(note), class_="soft")


def _change(change: Change) -> Html:
    left_out = LeftOut()
    old, new = (left_out.cut(value_text(value), _MOST_TEXT) for value in (change.left, change.right))
    if change.has_left and change.has_right:
        sides = both_sides(old, new, left_out)
    else:
        missing = tag("span", "not there", class_="soft")
        sides = (tag("pre", old), missing) if change.has_left else (missing, tag("pre", new))
    name = tag("p", tag("code", line(f"{change.part} {change.path}")), class_="soft")
    return tag("div", name, tag("div", *(tag("div", side) for side in sides), class_="pair"))


def _moments(diff: MomentsDiff) -> Iterator[Child]:
    title = f"{diff.name}: turn {diff.then.turn} and turn {diff.now.turn}"
    yield tag("div", verdict_badge(diff.verdict), tag("b", line(title)), class_="facts")
    yield tag("p", line(diff.headline))
    yield from map(_seen, diff.changes[: 2 * _MOST_PARTS])
    yield _more(len(diff.changes) - 2 * _MOST_PARTS, "change")


def _seen(change: PromptChange) -> Html:
    part = change.now or change.then
    assert part is not None
    sign = {GONE: "−", NEW: "+"}.get(change.sort, "~")
    head = tag("p", tag("b", f"{sign} ", line(part.role)), tag("span", f" {change.sort}", class_="soft"))
    if change.words:
        return join(head, marked(change.words))
    return join(head, folded(LeftOut().cut(part.text, _MOST_TEXT), LeftOut()))


def _more(number: int, what: str) -> Html | None:
    return tag("p", f"… {count(number, f'more {what}')}", class_="soft") if number > 0 else None
