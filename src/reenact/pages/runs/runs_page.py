"""The page of all runs: its form keeps search, filters and sort order in the address."""

from __future__ import annotations

from collections.abc import Mapping

from ...tracefile.events.text import moment, plain
from ..document import RUNS_STYLE, served_document
from ..html import Html, join, tag

_STATUSES = (("", "all"), ("failed", "failed"), ("running", "running"), ("ok", "ok"))
_KEYS = (
    ("j k", "next, previous run"),
    ("Enter", "open the run"),
    ("x", "choose the run for a comparison"),
    ("c", "compare the two chosen"),
    ("/", "search"),
    ("Esc", "leave the search, close this"),
    ("?", "this list"),
)


def runs_page(
    place: str,
    table: Html,
    over_time: Html | None,
    summary: str,
    counts: Mapping[str, int],
    query: Mapping[str, str],
) -> str:
    """Return the page; ``query`` holds search, status, sort order and time of the address."""
    head = tag(
        "header",
        tag("h1", "Runs"),
        tag("p", plain(place, 200), class_="soft"),
        tag("button", "keys (?)", type="button", id="show-keys"),
        class_="runs-head",
    )
    body = tag(
        "main",
        head,
        _form(counts, query),
        tag("div", over_time, id="over-time"),
        tag("p", summary, id="summary", class_="soft", role="status"),
        tag("div", table, id="runs"),
        _picked(),
        tag("p", id="note", role="status", hidden=True),
        _keys(),
        class_="runs-page",
    )
    return served_document(
        f"runs of {plain(place, 80)}", body, script="runs.js", styles=(RUNS_STYLE,), page="runs"
    )


def _form(counts: Mapping[str, int], query: Mapping[str, str]) -> Html:
    chips = [
        tag(
            "button",
            name,
            tag("span", f" {counts.get(value, 0):,}", class_="soft"),
            type="submit",
            name="status",
            value=value,
            aria_pressed=str(value == query["status"]).lower(),
        )
        for value, name in _STATUSES
    ]
    search = tag(
        "input",
        type="search",
        name="q",
        value=query["q"],
        placeholder="search, or tokens>1000 environment=prod",
        aria_label="search",
        autocomplete="off",
    )
    kept = join(  # Enter in the search keeps them: the first button is the one it presses
        tag("button", "search", type="submit", hidden=True),
        *(
            tag("input", type="hidden", name=name, value=query[name])
            for name in ("status", "sort", "since", "until")
            if query[name]
        ),
    )
    group = tag("div", *chips, class_="chips", role="group", aria_label="status")
    return tag("form", kept, search, group, tag("span", period(query), id="period"), id="filter")


def period(query: Mapping[str, str]) -> Html:
    """Return the time that the list is reduced to, with a button that ends this."""
    ends = [moment(float(query[name])) if query[name] else "" for name in ("since", "until")]
    if not any(ends):
        return join("")
    return tag(
        "button",
        " – ".join(ends),
        " ✕",
        type="button",
        data_forget="period",
        aria_label=f"all times, not only {' to '.join(ends)}",
    )


def _picked() -> Html:
    compare = tag("a", "compare", href="/diff", id="compare")
    clear = tag("button", "clear", type="button", data_forget="picked")
    return tag("div", tag("span", id="picked-names"), compare, clear, id="picked", hidden=True, role="status")


def _keys() -> Html:
    rows = [join(tag("dt", tag("kbd", keys)), tag("dd", what)) for keys, what in _KEYS]
    return tag("dialog", tag("h2", "Keys"), tag("dl", *rows), id="keys", aria_label="keys")
