"""What importing us costs a process that did not ask for much: modules loaded, time to the first event."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import reenact

from ..harness import Table, interleave, us

SOURCE = str(Path(reenact.__file__).resolve().parents[1])
FORBIDDEN = {"re", "json", "threading", "pathlib", "dataclasses"}
PROBE = """
import sys, time
sys.path.insert(0, {source!r})
before = set(sys.modules)
begin = time.perf_counter_ns()
{code}
spent = time.perf_counter_ns() - begin
names = sorted(set(sys.modules) - before)
import json
print(json.dumps([spent, names]))
"""


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    first = f"from reenact import Trace\nTrace({str(folder / 'first.jsonl')!r}).step('note', text='hello')"
    codes = {
        "import reenact": "import reenact",
        "from reenact import Trace": "from reenact import Trace",
        "first event": first,
        "import json": "import json",
        "import logging": "import logging",
        "import asyncio": "import asyncio",
    }
    rounds = interleave({name: lambda c=code: _probe(c) for name, code in codes.items()}, 5 if quick else 15)
    spent = {name: min(ns for ns, _ in results) for name, results in rounds.items()}
    loaded = {name: results[0][1] for name, results in rounds.items()}
    table.add("import reenact: modules", len(loaded["import reenact"]), unit="", budget=3)
    foreign = [name for name in loaded["from reenact import Trace"] if name.split(".")[0] != "reenact"]
    own = len(loaded["from reenact import Trace"]) - len(foreign)
    table.add(
        "from reenact import Trace: stdlib modules",
        len(foreign),
        unit="",
        budget=10,
        note=f"{', '.join(foreign) or 'none'}; besides {own} of ours",
    )
    bad = sorted(FORBIDDEN & set(foreign))
    table.add(
        "of these re json threading pathlib dataclasses", len(bad), unit="", budget=0, note=" ".join(bad)
    )
    for name, budget in (("first event", 2), ("from reenact import Trace", None), ("import reenact", None)):
        table.add(
            "start → first event" if name == "first event" else name,
            spent[name] / spent["import json"],
            budget=budget,
            ours=us(spent[name]),
            against="import json",
            theirs=us(spent["import json"]),
        )
    late = [name for name in loaded["first event"] if name not in loaded["from reenact import Trace"]]
    table.notes.append(f"loaded by the first event on top: {', '.join(late) or 'nothing'}")
    others = (f"{name} {us(spent[name])}" for name in ("import logging", "import asyncio"))
    table.notes.append(f"for comparison: {', '.join(others)}; python -I -S, lowest of the rounds")
    return table


def _probe(code: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-I", "-S", "-c", PROBE.format(source=SOURCE, code=code)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    spent, names = json.loads(done.stdout.splitlines()[-1])
    return spent, names
