"""What the machine does to times: json.dumps of the 200 KB body, beside which times of other machines stand."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from statistics import median

from ..harness import Table, timed, us
from ..workload import agent_run, wire_bytes

SIZE = 200_000


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    bodies = (step.fields["body"] for step in agent_run(1_000) if step.kind == "request")
    body = next(body for body in bodies if wire_bytes(body) >= SIZE)
    spent = timed([partial(json.dumps, body)] * 5)
    table.add("json.dumps of a request of 200 KB", median(spent) / 1e3, unit="µs", ours=us(min(spent)))
    table.notes.append("CPU time, median of 5; under `ours` the lowest")
    return table
