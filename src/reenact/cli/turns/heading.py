"""The line a turn begins with: number, lane, when, model; tokens, money and time at the right edge."""

from __future__ import annotations

from ...money.ledger import Ledger
from ...tracefile.calls import Turn
from ..eventline import offset_text
from ..output import Output
from ..text import compact, cut, milliseconds, plain, width_of
from .facts import spent_ms, tokens

_NARROW = 8
"""Columns in which no name can be read."""


def heading(turn: Turn, lane: str | None, ledger: Ledger, started: float | None, out: Output) -> None:
    """Write the heading of a turn."""
    left = f"turn {turn.number}"
    lane = f"  [{plain(lane, 24)}]" if lane is not None else ""
    right = _fitting(_numbers(turn, ledger), out.width - width_of(left + lane) - 2)
    room = out.width - width_of(left + lane + right) - 4
    offset, model = offset_text(turn.request.timestamp, started), plain(ledger.model_of(turn.call) or "", 60)
    about = "  ".join(part for part in (offset, model) if part)
    if width_of(about) > room:
        about = cut(model or offset, max(room, 0)) if room > _NARROW else ""
    space = " " * (out.width - width_of(left + lane + about + right) - 2)
    out.line(out.cells([(left, "bold"), (lane, "cyan"), ("  " + about, "dim"), (space + right, "")]).rstrip())


def _fitting(cells: list[str], room: int) -> str:
    """Return the cells in one text; the first ones give way where there is no room."""
    while cells and width_of("  ".join(cells).lstrip()) > room:
        del cells[0]
    return "  ".join(cells).lstrip()


def _numbers(turn: Turn, ledger: Ledger) -> list[str]:
    """Return cached tokens, tokens in and out, money and time, each as wide as its column."""
    totals, bill = tokens(turn.attempts), ledger.bill(turn.attempts)
    cached = f"{compact(totals.cache_read)} cached" if totals.cache_read else ""
    spent = totals.tokens_in or totals.tokens_out
    used = f"{compact(totals.tokens_in)}+{compact(totals.tokens_out)}" if spent else ""
    is_replayed = all(call.end is not None and call.end.replayed is not None for call in turn.attempts)
    money = (
        "replayed"
        if is_replayed
        else bill.text()
        if bill.priced
        else "$?"
        if bill.unknown and ledger.has_prices
        else ""
    )
    return [f"{cached:>12}", f"{used:>11}", f"{money:>8}", f"{milliseconds(spent_ms(turn)):>7}"]
