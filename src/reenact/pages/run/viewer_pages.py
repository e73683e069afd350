"""The pages of the viewer: their frames, into which the script puts what is in sight."""

from __future__ import annotations

from collections.abc import Sequence

from ..document import served_document
from ..html import Html, join, line, tag

_SCRIPT = "viewer.js"
_CHIPS = (("", "all"), ("errors", "errors"), ("tools", "tools"), ("model", "model"))
_KEYS = (
    ("j k", "next, previous event"),
    ("n p", "next, previous event of this lane"),
    ("] [", "next, previous turn"),
    ("e", "the failure"),
    ("g G", "first, last event"),
    ("d", "only what is new in the context"),
    ("s", "play the stream of a response"),
    ("l t", "lanes, plots of the turns"),
    ("+ - 0", "zoom lanes and plots, where they have the focus"),
    ("c", "compare this turn with the one before"),
    ("/", "search"),
    ("f", "follow a running run"),
    ("Esc", "leave the search, close this"),
    ("?", "this list"),
)


def run_page(name: str, head: Html, *, key: str, opens_at: str, is_live: bool) -> str:
    """Return the frame of a run's page."""
    chips = [
        tag("button", word, type="button", data_show=value, aria_pressed=str(value == "").lower())
        for value, word in _CHIPS
    ]
    lane = tag(
        "button", type="button", id="clear-lane", class_="lane-chip", title="list all lanes", hidden=True
    )
    bar = tag(
        "div",
        tag("input", type="search", id="search", placeholder="search  ( / )", aria_label="search events"),
        tag("div", *chips, lane, class_="chips", role="group", aria_label="which events"),
        class_="bar",
    )
    count = tag("p", id="count", class_="soft", role="status")
    rows = tag(
        "div",
        tag("div", tag("div", id="window"), id="spacer"),
        id="list",
        role="listbox",
        tabindex="0",
        aria_label="events of the run",
    )
    left = tag("section", bar, count, rows, class_="left", aria_label="timeline")
    copies = [
        tag("button", f"copy {word}", type="button", data_copy=form)
        for form, word in (("json", "JSON"), ("curl", "cURL"), ("python", "Python"))
    ]
    event = tag("section", tag("div", *copies, class_="copies"), tag("div", id="event"), class_="event-pane")
    new = tag("button", "only new (d)", type="button", id="only-new", aria_pressed="false")
    turns = tag("button", "compare with turn before (c)", type="button", id="compare")
    context = tag(
        "section",
        tag("div", tag("h2", "What the model saw"), new, turns, class_="pane-head"),
        tag("div", id="context"),
        class_="context-pane",
    )
    right = tag(
        "div", event, context, class_="right", tabindex="0", role="region", aria_label="event and context"
    )
    body = [
        tag("a", "Skip to the event", href="#event", class_="skip"),
        tag(
            "header",
            _nav(is_live),
            tag("div", head, id="top"),
            tag("div", id="found"),
            _charts(),
            class_="top",
        ),
        tag("main", left, right, class_="panes"),
        tag("p", id="note", role="status", hidden=True),
        _keys(),
    ]
    live = "1" if is_live else ""
    return served_document(name, *body, script=_SCRIPT, page="run", key=key, at=opens_at, live=live)


def _nav(is_live: bool) -> Html:
    toggles = [
        tag("button", f"{name} ({key})", type="button", id=f"show-{name}", aria_pressed="false")
        for name, key in (("lanes", "l"), ("plots", "t"))
    ]
    follow = tag("button", "follow (f)", type="button", id="follow", aria_pressed="false", hidden=not is_live)
    keys = tag("button", "keys (?)", type="button", id="show-keys")
    return tag("nav", tag("a", "all runs", href="/"), *toggles, follow, keys, aria_label="viewer")


def _charts() -> Html:
    """Return the places of lanes and plots, which the script fills when they are opened."""
    chips = [
        tag("button", name, type="button", data_by=name, aria_pressed=str(name == "duration").lower())
        for name in ("duration", "tokens", "money")
    ]
    group = tag("div", *chips, class_="chips", role="group", aria_label="what the bars show")
    return join(_chart("lanes", group), _chart("plots", None))


def _chart(name: str, chips: Html | None) -> Html:
    zoom = [
        tag("button", sign, type="button", data_zoom=times, title=f"{words} ({key})", aria_label=words)
        for sign, times, key, words in (
            ("+", "0.5", "+", "zoom in"),
            ("\N{MINUS SIGN}", "2", "-", "zoom out"),
            ("all", "0", "0", "show all turns"),
        )
    ]
    head = tag("div", chips, tag("div", *zoom, class_="chips"), class_="chart-head")
    return tag(
        "section", head, tag("div", id=f"{name}-body"), id=name, class_="chart", hidden=True, aria_label=name
    )


def _keys() -> Html:
    rows = [join(tag("dt", tag("kbd", keys)), tag("dd", what)) for keys, what in _KEYS]
    return tag("dialog", tag("h2", "Keys"), tag("dl", *rows), id="keys", aria_label="keys")


def message_page(sentences: Sequence[str]) -> str:
    """Return a page that only says why there is nothing to see."""
    words = [tag("p", line(each)) for each in sentences]
    body = tag("main", tag("h1", "Nothing to show here"), *words, tag("p", tag("a", "all runs", href="/")))
    return served_document("reenact", body, script=_SCRIPT, page="message")
