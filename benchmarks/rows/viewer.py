"""The run page of ``reenact view``: first paint and the jump to the last event, beside loading the file whole."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from ..harness import Table, size
from ..large_runs import large_run

_TICKS = os.sysconf("SC_CLK_TCK")


def measure(quick: bool, folder: Path) -> Table:
    table = Table("")
    for events in (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000):
        path = folder / "run.jsonl"
        large_run(path, events)
        _row(table, path, events, folder / f"cache-{events}")
        path.unlink()
    table.notes.append(
        "CPU time of the server for what the browser asks: page, place, rows, event and context; on an idle "
        "machine it is the time on the clock. Cold: nothing kept from an earlier look, the file in the page cache"
    )
    return table


def _row(table: Table, path: Path, events: int, cache: Path) -> None:
    whole = _loaded(path)
    what = f"{events:,} events, {size(path.stat().st_size)}"
    theirs = {"against": "json.loads of every line", "theirs": f"{whole:.2f} s", "unit": "s CPU"}
    with _viewer(path, cache) as server:
        paint = server.spent(server.first_paint)
        table.add(f"first paint, cold, {what}", paint, budget=1, **theirs)
        until = server.spent(server.index)
        jump = server.spent(lambda: server.show("last"))
        table.add(f"jump to the last event, {what}", jump, budget=1, **theirs)
        middle = server.spent(lambda: server.show(f"turn:{events // 10}"))
        table.add(
            f"jump to a turn in the middle, {what}", middle, budget=1, note=f"index {until:.1f} s", **theirs
        )
        rest = server.spent(server.figures)
    with _viewer(path, cache) as server:
        again = server.spent(server.first_paint) + server.spent(server.figures)
        note = f"the first time {rest:.1f} s, in the background"
        table.add(
            f"first paint and the figures of all turns, warm, {what}", again, budget=1, note=note, **theirs
        )


def _loaded(path: Path) -> float:
    begin = time.process_time()
    with open(path, "rb") as file:
        for line in file:
            json.loads(line)
    return time.process_time() - begin


class _Server:
    """A viewer in a process of its own, asked what the page's script asks."""

    def __init__(self, pid: int, address: str) -> None:
        parts = urlsplit(address)
        self._pid, self._path = pid, parts.path
        self._connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=600)
        self._cookie = f"reenact-{parts.port}={parts.query.removeprefix('token=')}"

    def get(self, path: str) -> str:
        self._connection.request("GET", self._path + path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, (path, answer.status, text[:300])
        return text

    def first_paint(self) -> None:
        found = re.search(r'data-at="([^"]*)"', self.get(""))
        assert found is not None
        self.show(found[1])

    def show(self, at: str) -> None:
        found = json.loads(self.get(f"/go?at={quote(at)}"))
        first = found["row"] // 100 * 100
        rows = json.loads(self.get(f"/rows?from={first}&n=100"))["rows"]
        assert rows[found["row"] - first][0] == found["at"]
        assert "message" in self.get(f"/event/{found['at']}") + self.get(f"/context/{found['at']}")

    def index(self) -> None:
        while not json.loads(self.get("/work"))["indexed"]:
            pass

    def figures(self) -> None:
        while not json.loads(self.get("/work"))["done"]:
            pass

    def spent(self, ask: Callable[[], None]) -> float:
        """Return the CPU seconds of the server while something is asked."""
        begin = self._cpu()
        ask()
        return self._cpu() - begin

    def _cpu(self) -> float:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(") ")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS


@contextmanager
def _viewer(path: Path, cache: Path) -> Iterator[_Server]:
    command = [sys.executable, "-m", "reenact", "view", str(path), "--no-open"]
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)
    assert child.stdout is not None
    try:
        yield _Server(child.pid, child.stdout.readline().strip())
    finally:
        child.send_signal(signal.SIGINT)
        child.wait()
