"""The page of all runs: its form keeps search, filters and sort order in the address."""

from __future__ import annotations

from ..tracefile.events.text import plain
from .document import RUNS_STYLE, served_document
from .html import Html, join, tag

_STATUSES = (("", "all"), ("failed", "failed"), ("running", "running"), ("ok", "ok"))


def runs_page(place: str, table: Html, *, q: str, status: str, sort: str) -> str:
    """Return the page of all runs; its form keeps filters in the address."""
    chips = [
        tag(
            "button",
            name,
            type="submit",
            name="status",
            value=value,
            aria_pressed=str(value == status).lower(),
        )
        for value, name in _STATUSES
    ]
    search = tag(
        "input",
        type="search",
        name="q",
        value=q,
        placeholder="search name, input, model, error",
        aria_label="search",
    )
    kept = join(  # Enter in the search keeps them: the first button is the one it presses
        tag("button", "search", type="submit", hidden=True),
        *(
            tag("input", type="hidden", name=name, value=value)
            for name, value in (("status", status), ("sort", sort))
        ),
    )
    group = tag("div", *chips, class_="chips", role="group", aria_label="status")
    form = tag("form", kept, search, group, id="filter")
    head = tag("header", tag("h1", "Runs"), tag("p", plain(place, 200), class_="soft"), class_="runs-head")
    body = tag("main", head, form, table, class_="runs-page")
    return served_document(
        f"runs of {plain(place, 80)}", body, script="runs.js", styles=(RUNS_STYLE,), page="runs"
    )
