"""``python -m benchmarks [names…] [--quick] [--json OUT]``: measure the rows, print the table.

Every row runs in an interpreter of its own, so that one row's modules, memory and threads do not
weigh on the next.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .harness import number, render
from .rows import NEEDS_FAST, ROWS, STDLIB_ONLY

FAST = ("orjson", "re2")
ROOT = Path(__file__).resolve().parents[1]
LONGEST = 1_800
"""Seconds one row may take, on a busy machine."""


def main(argv: list[str] | None = None) -> int:
    listing = "\n".join(f"  {name:14}{text}" for name, text in ROWS.items())
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure what recording and reading cost, as ratios against alternatives.",
        epilog=f"rows:\n{listing}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="row", help="rows to measure; all of them by default")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller files, under a minute")
    parser.add_argument("--json", metavar="OUT", type=Path, help="also write the figures to this file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    unknown = [name for name in args.names if name not in ROWS]
    if unknown:
        parser.error(f"no row called {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if args.child:
        return _measure_here(args.names[0], args.quick)
    return _measure_all(args.names or list(ROWS), args.quick, args.json)


def _measure_all(names: list[str], quick: bool, out: Path | None) -> int:
    from .workload import Text

    machine = f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {os.cpu_count()} cores"
    print(f"{machine}; texts: {Text().source}{'; quick' if quick else ''}", flush=True)
    tables: list[dict[str, Any]] = []
    began = time.monotonic()
    for name in names:
        print(f"… {name}: {ROWS[name]}", file=sys.stderr, flush=True)
        table = _measure_apart(name, quick)
        tables.append(table)
        print(render([table]), flush=True)
    verdicts = [figure["verdict"] for table in tables for figure in table["figures"]]
    missed = [
        f"{name}: {figure['what']}: {number(figure['value'])}, budget {number(figure['budget'])}"
        + (f", floor {number(figure['floor'])}" if figure["floor"] is not None else "")
        for name, table in zip(names, tables, strict=True)
        for figure in table["figures"]
        if figure["verdict"] == "MISSED"
    ]
    print(f"{verdicts.count('ok')} budgets met, {len(missed)} missed, {time.monotonic() - began:.0f} s")
    for what in missed:
        print(f"  MISSED  {what}")
    if out is not None:
        report = {"machine": machine, "texts": Text().source, "quick": quick, "tables": tables}
        out.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", "utf-8")
    # A missed budget is a finding to look at, not a failure of the command; a row that broke is one.
    return 1 if any(table.get("broken") for table in tables) else 0


def _measure_apart(name: str, quick: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks", name, "--child", *(["--quick"] if quick else [])]
    row = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        out, err = row.communicate(timeout=LONGEST)
        table: dict[str, Any] = json.loads(out.splitlines()[-1])
        return table
    except subprocess.TimeoutExpired:
        os.killpg(row.pid, signal.SIGKILL)  # with the agents and servers it has started
        row.wait()
        note = f"not done after {LONGEST} s"
    except (IndexError, ValueError):
        last = err.strip().splitlines()[-1:] or ["no output"]
        note = f"could not be measured (exit {row.returncode}): {last[0]}"
    return {"title": f"{name}: {ROWS[name]}", "figures": [], "notes": [note], "broken": True}


def _measure_here(name: str, quick: bool) -> int:
    if name in STDLIB_ONLY:
        sys.modules.update(dict.fromkeys(FAST))  # type: ignore[arg-type]  # makes `import orjson` an ImportError
    elif name in NEEDS_FAST:
        for library in FAST:
            importlib.import_module(library)
    for variable in [key for key in os.environ if key.startswith("REENACT")]:
        del os.environ[variable]
    row = importlib.import_module(f"benchmarks.rows.{name.replace('-', '_')}")
    with tempfile.TemporaryDirectory(prefix="reenact-bench-") as folder:
        table = row.measure(quick, Path(folder))
        table.title = f"{name}: {ROWS[name]}"
        print(json.dumps(table.as_json()), flush=True)
    sys.stdout.flush()
    os._exit(0)  # some alternatives wait at exit for a server that is not there


if __name__ == "__main__":
    sys.exit(main())
