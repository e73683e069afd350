"""What 200 turns through the wire leave on disk: lines, blobs and raw streams, against every distinct value once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..harness import Table, size
from ..wire.agent import SYSTEM_AND_TOOLS
from ..wire.provider import provider
from ..wire.recording import RIVALS
from ..wire.team import Team

OURS = ["wrap", "install"]


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    turns = 50 if quick else 200
    with Team([*OURS, *RIVALS], folder) as team:
        for stream in (False, True):
            done = {}
            with provider() as url:
                for way, caller in team.callers.items():
                    home = folder / str(list(team.callers).index(way))
                    before = _bytes(home)
                    task = {"sdk": "anthropic", "url": f"{url}/s/tools-{turns}", "kb": 0, "stream": stream}
                    done[way] = caller.do(**task, calls=turns, tools=True), home, before
            # vcrpy and reeltime may write the last of it when their block, or their process, is over
            for way, (told, home, before) in done.items():
                if told is None:
                    table.add(f"{way}, {turns} turns", None, against="distinct content")
                    continue
                limit = _distinct(told["messages"])
                total = _bytes(home) - before
                table.add(
                    f"{way}, {turns} turns {'streamed' if stream else 'plain'}",
                    total / limit,
                    budget=2 if way in OURS else None,
                    ours=size(total),
                    against="distinct content",
                    theirs=size(limit),
                )
        table.notes += [*team.notes, *team.failures()]
    table.notes.append(
        "distinct content: system prompt, tools and each message of the conversation once, as compact JSON; "
        "ours holds headers, usage, times and, of streams, the bytes as they came on top of it"
    )
    return table


def _distinct(messages: list[dict[str, Any]]) -> int:
    return len(json.dumps(SYSTEM_AND_TOOLS, separators=(",", ":"))) + sum(
        len(json.dumps(message, separators=(",", ":"))) for message in messages
    )


def _bytes(home: Path) -> int:
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
