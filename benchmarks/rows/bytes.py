"""What a run leaves on disk, against every distinct message once."""

from __future__ import annotations

import json
from pathlib import Path

from ..baselines import available
from ..harness import Table, size
from ..ours import feed_baseline, feed_tap
from ..workload import TURNS, agent_run, distinct


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    turns = TURNS[:3] if quick else TURNS
    for t in turns:
        _messages(table, folder / f"t{t}", t)
    for t, big in ((200, False), (200, True)):
        _folder(table, folder / f"folder{t}{big}", t, big)
    for t in (10, 50) if quick else (10, 50, 200):
        _article(table, folder / f"article{t}.jsonl", t)
    table.notes += [
        "distinct: each different message once as compact UTF-8, a moved cache marker makes none new",
        "message bytes: the messages of model.request and role + content of model.response, as they stand in the lines",
    ]
    return table


def _messages(table: Table, home: Path, turns: int) -> None:
    home.mkdir()
    feed_tap(home / "run.jsonl", agent_run(turns))
    limit = distinct(agent_run(turns))
    content = lines = 0
    for line in (home / "run.jsonl").read_bytes().splitlines():
        event = json.loads(line)
        if event["kind"].startswith("model."):
            lines += len(line)
            content += _message_bytes(event)
    table.add(
        f"message content in model.* lines, T = {turns}",
        content / limit.messages,
        budget=1.15,
        ours=size(content),
        against="distinct messages",
        theirs=size(limit.messages),
        note=f"whole model.* lines {lines / (limit.messages + limit.other):.2f} x distinct content",
    )


def _message_bytes(event: dict) -> int:
    body = event.get("body", {})
    if event["kind"] == "model.request":
        return _ascii_bytes(body.get("messages", []))
    return _ascii_bytes({key: body[key] for key in ("role", "content") if key in body})


def _ascii_bytes(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":")))


def _folder(table: Table, home: Path, turns: int, big: bool) -> None:
    home.mkdir()
    feed_tap(home / "run.jsonl", agent_run(turns, big_results=big))
    limit = sum(distinct(agent_run(turns, big_results=big)))
    files = [path for path in home.rglob("*") if path.is_file()]
    total = sum(path.stat().st_size for path in files)
    table.add(
        f"whole folder, T = {turns}{', with results of 120 KB' if big else ''}",
        total / limit,
        budget=2,
        ours=size(total),
        against="distinct content",
        theirs=size(limit),
        note=f"{len(files)} files",
    )


def _article(table: Table, path: Path, turns: int) -> None:
    recorder = available(["article Trace"])[0]["article Trace"](path)
    feed_baseline(recorder, agent_run(turns))
    recorder.close()
    limit = sum(distinct(agent_run(turns)))
    total = path.stat().st_size
    table.add(
        f"for comparison, article Trace, T = {turns}",
        total / limit,
        ours=size(total),
        against="distinct content",
        theirs=size(limit),
    )
