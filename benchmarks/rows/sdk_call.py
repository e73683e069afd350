"""What a call of a real SDK over the network pays for being recorded, all on disk when it returns, beside rivals.

The network and the scheduler vary by more than a recording costs: the budgets are in the row ``instant``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..harness import Table, best_p50, us
from ..wire.provider import provider
from ..wire.recording import RIVALS
from ..wire.team import Team

SIZES_KB = (1, 200)
OURS = ["bare", "wrap", "wrap, redact=False", "install", "install, redact=False"]


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    with Team([*OURS, *RIVALS], folder) as team:
        for sdk in ("anthropic", "openai"):
            for stream in (False, True):
                for kb in SIZES_KB:
                    what = f"{sdk}, {kb} KB, {'streamed' if stream else 'plain'}"
                    with provider() as url:
                        task = {"sdk": sdk, "url": f"{url}/s/text", "kb": kb, "stream": stream}
                        ours = team.rounds(2 if quick else 5, OURS, calls=12, **task)
                        rivals = team.rounds(1 if quick else 2, ["bare", *RIVALS], calls=3, **task)
                    _compare(table, what, ours)
                    _compare(table, what, rivals)
        table.notes += [*team.notes, *team.failures()]
    table.notes += [
        "measured is the CPU time of the agent's process for one call, less that of the bare call; ours and theirs on the clock",
        "the conversation grows by two messages a call; lowest of the rounds' medians; the provider is another process",
        "vcrpy writes nothing before it ends; OpenTelemetry (SDK instrumentation, SimpleSpanProcessor) keeps the text of messages, no wire",
    ]
    return table


def _compare(table: Table, what: str, results: dict[str, list[dict[str, Any]]]) -> None:
    least = best_p50([told["cpu"] for told in results["bare"]])
    clock = best_p50([told["wall"] for told in results["bare"]])
    for way, rounds in results.items():
        if way != "bare":
            added = best_p50([told["cpu"] for told in rounds]) - least if rounds else None
            table.add(
                f"{what}: {way}",
                None if added is None else added / 1e6,
                unit="ms",
                ours=us(best_p50([told["wall"] for told in rounds])) if rounds else "",
                against="bare",
                theirs=us(clock),
            )
