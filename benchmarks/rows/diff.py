"""Two long runs compared, against reading them with ``json.loads`` and against ``difflib`` on their lines."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path

from reenact import Tap

from ..harness import Table, size

_ANSWER = {"type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use"}
_CODE = """
import gc, resource, sys, time
gc.set_threshold(100_000)
from reenact import diff
began = time.process_time()
found = diff(*sys.argv[1:])
took = time.process_time() - began
print(took, len(found.differences), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    for events, budget_s in ((2_000, None),) if quick else ((20_000, 1.0), (200_000, 15.0)):
        changed = set(random.Random(7).sample(range(events // 4), 12))
        _compare(table, folder, events, changed, "12 differences", budget_s)
    events = 2_000 if quick else 20_000
    turns = events // 4
    _compare(table, folder, events, set(range(turns * 9 // 10, turns)), "different after 90 %")
    _compare(table, folder, events, set(range(turns)), "every result different")
    table.notes.append(
        "CPU time of the whole comparison; json.loads of both files, line by line, keeps nothing"
    )
    return table


def _compare(
    table: Table, folder: Path, events: int, changed: set[int], how: str, budget_s: float | None = None
) -> None:
    left, right = (folder / f"{side}-{events}-{len(changed)}.jsonl" for side in ("left", "right"))
    _record(left, events, set())
    _record(right, events, changed)
    printed = subprocess.run(
        [sys.executable, "-c", _CODE, left, right], capture_output=True, check=True, text=True
    )
    took, found, memory = map(float, printed.stdout.split())
    assert found >= min(len(changed), 500), printed.stdout
    parsing = _cpu(lambda: [None for path in (left, right) for line in path.open() if not json.loads(line)])
    table.add(
        f"diff of {events:,} events a side, {how}",
        took / parsing,
        ours=f"{took:.2f} s, {size(memory)}",
        against="json.loads of both",
        theirs=f"{parsing:.2f} s",
        budget=None if budget_s is None else budget_s / parsing,
    )
    if events <= 20_000 and len(changed) == 12:
        lines = [[_without_ids(line) for line in path.open()] for path in (left, right)]
        theirs = _cpu(lambda: SequenceMatcher(None, *lines, autojunk=False).get_opcodes())
        table.add(
            f"diff of {events:,} events a side",
            took / (theirs + parsing),
            ours=f"{took:.2f} s",
            against="json.loads and difflib on lines without ids",
            theirs=f"{theirs + parsing:.2f} s",
        )


def _without_ids(line: str) -> str:
    fields = json.loads(line)
    return json.dumps({key: fields[key] for key in ("kind", "body", "args", "result") if key in fields})


def _record(path: Path, events: int, changed: set[int]) -> None:
    """Conversations of fifty turns, as many as needed; each turn is four events."""
    with Tap(path, name="long") as tap:
        messages: list[dict[str, object]] = []
        for turn in range(events // 4):
            if turn % 50 == 0:
                messages = [{"role": "user", "content": f"Task {turn}: look at the next fifty files."}]
            body = {"model": "m", "max_tokens": 100, "messages": messages}
            call = tap.record_model_request(body, "anthropic")
            args = {"path": f"src/file_{turn}.py"}
            use = {"type": "tool_use", "id": f"toolu_{path.stem}_{turn}", "name": "read", "input": args}
            answer = {
                "id": f"msg_{path.stem}_{turn}",
                "content": [{"type": "text", "text": f"Next: {turn}"}, use],
            }
            tap.record_model_response(_ANSWER | answer, call=call)
            used = tap.record_tool_call("read", args, tool_id=use["id"])
            output = f"line {turn} of a file " * 20 + ("changed" if turn in changed else "")
            tap.record_tool_result("read", output, call=used)
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": output}
            messages += [
                {"role": "assistant", "content": answer["content"]},
                {"role": "user", "content": [result]},
            ]


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
