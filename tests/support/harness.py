"""What the crash tests share: real child processes, counters that outlive them, and a plain reading of lines.

The reading is deliberately naive (json.loads per line), so that it cannot share a mistake with the reader.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

CHILDREN = Path(__file__).parents[1] / "crash" / "children"


class Counters:
    """Shared 8-byte counters in a file: a child's last write survives its SIGKILL, and costs next to nothing."""

    def __init__(self, path: Path, slots: int) -> None:
        path.write_bytes(bytes(8 * slots))
        self.path = path
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 8 * slots)
        self._view = memoryview(self._map).cast("Q")

    def values(self) -> list[int]:
        return list(self._view)

    def total(self) -> int:
        return sum(self._view)

    def close(self) -> None:
        self._view.release()
        self._map.close()


class Finished:
    """How a child ended, and what it said."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def ours(self) -> list[str]:
        """The lines on stderr that come from reenact."""
        return [line for line in self.err.splitlines() if line.startswith("reenact: ")]


def environment(**more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("REENACT_", "TRACEPARENT"))
    }
    return {**kept, "PYTHONUNBUFFERED": "1", **more}


def start(*command: object, cwd: Path | None = None, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=cwd,
        env=environment(**more),
        start_new_session=True,
    )


def finish(child: subprocess.Popen[str], timeout: float = 120) -> Finished:
    """Wait for a child; one that hangs is killed and fails the test."""
    try:
        out, err = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)  # its own children too, or they would keep the pipes open
        out, err = child.communicate()
        raise AssertionError(f"the child hung\n{out}\n{err}") from None
    return Finished(child.returncode, out, err)


def run_script(source: str, *args: object, cwd: Path, timeout: float = 120, **more: str) -> Finished:
    """Run a program as a child process in ``cwd``, from a file so that tracebacks have lines."""
    script = cwd / "agent.py"
    script.write_text(textwrap.dedent(source))
    return finish(start(script, *args, cwd=cwd, **more), timeout)


def wait_until(condition: Any, child: subprocess.Popen[str], timeout: float = 120) -> None:
    until = time.monotonic() + timeout
    while not condition():
        if child.poll() is not None:
            out, err = child.communicate()
            raise AssertionError(f"the child ended early ({child.returncode})\n{out}\n{err}")
        assert time.monotonic() < until, "the child never got there"
        time.sleep(0.0005)


class Lines:
    """A trace file line by line: what parses, and what does not.

    That a write was slow is noted in a line of its own, on any machine that is busy: `stalls` has it, not `events`.
    """

    def __init__(self, *paths: Path) -> None:
        self.all: list[dict[str, Any]] = []
        self.torn: list[bytes] = []
        for path in paths:
            for line in path.read_bytes().split(b"\n"):
                if not line:
                    continue
                try:
                    event = json.loads(line)
                    assert isinstance(event, dict)
                except (ValueError, AssertionError):
                    self.torn.append(line)
                else:
                    self.all.append(event)
        self.stalls = [event for event in self.all if event.get("what") == "queueing"]
        self.events = [event for event in self.all if event.get("what") != "queueing"]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["kind"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        found = self.of(kind)
        assert len(found) == 1, (
            f"{len(found)} events of kind {kind}: {[each['kind'] for each in self.events]}"
        )
        return found[0]

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    def user(self) -> list[dict[str, Any]]:
        """All but the recorder's own lines."""
        return [event for event in self.events if not event["kind"].startswith(("run.", "proc."))]

    def assert_gapless(self) -> None:
        """Within every writer the steps are 1, 2, 3 … in the order of the file."""
        steps = defaultdict(list)
        for event in self.all:
            steps[event["w"]].append(event["step"])
        for writer, found in steps.items():
            assert found == list(range(1, len(found) + 1)), f"writer {writer}: {found[:5]}…{found[-5:]}"


def lines(path: Path | str) -> Lines:
    return Lines(Path(path))


def only_file(folder: Path) -> Path:
    found = sorted(folder.glob("*.jsonl"))
    assert len(found) == 1, found
    return found[0]
