"""What one event of a stream pays for being recorded over the network, beside rivals; budgets: row ``instant``."""

from __future__ import annotations

from pathlib import Path

from ..harness import Table, best_p50, us
from ..wire.provider import provider
from ..wire.recording import RIVALS
from ..wire.team import Team

LONG, SHORT = 300, 30
"""Words of the two answers: what the longer one costs more is the cost of its further events."""
WAYS = ["bare", "wrap", "wrap, redact=False", "install", *RIVALS]


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    with Team(WAYS, folder) as team:
        for sdk in ("anthropic", "openai"):
            spent = {}
            for words in (LONG, SHORT):
                with provider() as url:
                    task = {"sdk": sdk, "url": f"{url}/s/long-{words}", "kb": 1, "stream": True}
                    results = team.rounds(3 if quick else 12, WAYS, calls=3, **task)
                spent[words] = {
                    way: (best_p50([told["cpu"] for told in rounds]), rounds[0]["events"])
                    for way, rounds in results.items()
                    if rounds
                }
            each = {
                way: (cost - spent[SHORT][way][0]) / (events - spent[SHORT][way][1])
                for way, (cost, events) in spent[LONG].items()
                if way in spent[SHORT]
            }
            for way, cost in each.items():
                if way != "bare":
                    table.add(
                        f"{sdk}, one streamed event: {way}",
                        (cost - each["bare"]) / 1e3,
                        unit="µs",
                        ours=us(cost),
                        against="bare",
                        theirs=us(each["bare"]),
                    )
        table.notes += [*team.notes, *team.failures()]
    table.notes.append(
        f"CPU time of a stream of {LONG} words less that of one of {SHORT}, by event; put together and on disk at its end"
    )
    return table
