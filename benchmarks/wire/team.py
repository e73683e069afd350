"""Callers in processes of their own, one for each way of recording, that work in turn."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NEEDS = {"reeltime": "reeltime", "vcrpy": "vcr", "OpenTelemetry": "opentelemetry.instrumentation.anthropic"}


class Caller:
    """One process; ``failed`` says why it can do nothing."""

    def __init__(self, way: str, home: Path) -> None:
        self.way = way
        self.failed = ""
        command = [sys.executable, "-m", "benchmarks.wire.caller", way, str(home)]
        if way == "reeltime":
            tape = [str(Path(sys.executable).parent / "tape"), "--tape-dir", str(home / "tape")]
            command = [*tape, "run", *command]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def do(self, **task: Any) -> dict[str, Any] | None:
        """Have it done; None if it could not be, from then on too."""
        if self.failed:
            return None
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            line = next(each for each in self.process.stdout if each.startswith("RESULT "))
        except (OSError, StopIteration):
            self.failed = f"the process ended with exit {self.process.wait()}"
            return None
        told: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
        self.failed = told.get("failed", "")
        return None if self.failed else told

    def end(self) -> None:
        """Let it finish and write what it has not written yet."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
            self.process.wait(120)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Team:
    """All callers of a row."""

    def __init__(self, ways: list[str], folder: Path) -> None:
        self.notes = [f"{way} is not installed" for way in ways if not _is_there(way)]
        present = [way for way in ways if _is_there(way)]
        self.callers = {way: Caller(way, folder / str(at)) for at, way in enumerate(present)}

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for caller in self.callers.values():
            caller.end()

    def rounds(self, count: int, ways: list[str], **task: Any) -> dict[str, list[dict[str, Any]]]:
        """Everybody does the task once a round, beginning with another one each round."""
        ways = [way for way in ways if way in self.callers]
        results: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
        for turn in range(count):
            for way in ways[turn % len(ways) :] + ways[: turn % len(ways)]:
                told = self.callers[way].do(**task)
                if told is not None:
                    results[way].append(told)
        return results

    def failures(self) -> list[str]:
        """Who could not do it, and why."""
        return [
            f"{way} cannot do this: {caller.failed}" for way, caller in self.callers.items() if caller.failed
        ]


def _is_there(way: str) -> bool:
    try:
        return way not in NEEDS or importlib.util.find_spec(NEEDS[way]) is not None
    except ModuleNotFoundError:
        return False
