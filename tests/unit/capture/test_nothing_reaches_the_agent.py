"""Odd objects and odd log records pass through us as if we were not there."""

from __future__ import annotations

import asyncio  # noqa: F401  (the recorder listens to its logger only if it is loaded)
import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap, Trace
from reenact.capture import guard
from reenact.capture.seams import coverage


class Unbound:
    """Like a web framework's proxy outside of a request: it answers no question, not even what it is."""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("working outside of request context")


def test_a_generator_tool_may_yield_what_hides_its_class() -> None:
    tap = Tap(writer=lambda event: None)

    @tap.tool
    def tool() -> Any:
        yield Unbound()

    assert [type(item) for item in tool()] == [Unbound]


def test_a_function_with_an_unreadable_signature_is_a_tool_too() -> None:
    class Shy:
        __name__ = "shy"

        @property
        def __signature__(self) -> Any:
            raise NameError("name 'OnlyForTypeCheckers' is not defined")

        def __call__(self, word: str) -> str:
            return word

    assert Tap(writer=lambda event: None).tool(Shy())("hello") == "hello"


def test_a_log_record_with_an_odd_exc_info_passes(tmp_path: Path) -> None:
    with Trace(tmp_path / "run.jsonl"):
        record = logging.makeLogRecord({"name": "asyncio", "exc_info": True, "levelno": 10})
        logging.getLogger("asyncio").filter(record)


DYING_THREADS = """
import threading, reenact
threading.excepthook = lambda args: None
def die():
    raise ValueError("in a thread")
with reenact.Trace("own.jsonl"):
    for _ in range(20):
        try:
            with reenact.run("trip"):
                raise ValueError("in a run")
        except ValueError:
            pass
        thread = threading.Thread(target=die)
        thread.start()
        thread.join()
"""


def test_an_error_that_got_the_id_of_a_dead_one_is_recorded(tmp_path: Path) -> None:
    # In a process of its own: which run a thread's error belongs to depends on the runs that are open.
    subprocess.run([sys.executable, "-c", DYING_THREADS], cwd=tmp_path, check=True)
    found = [json.loads(line) for line in (tmp_path / "own.jsonl").read_bytes().splitlines()]
    assert [event["error"]["message"] for event in found if event["kind"] == "error"] == ["in a thread"] * 20


def test_a_table_is_described_not_unpacked() -> None:
    class Table:
        """Like a data frame: millions of rows, a short repr, and a to_dict() that takes a minute."""

        def __array__(self) -> Any:
            raise AssertionError("not asked for")

        def to_dict(self) -> dict[str, Any]:
            raise AssertionError("not asked for")

        def __repr__(self) -> str:
            return "Table(1_000_000 rows)"

    events: list[dict[str, Any]] = []
    with Tap(writer=events.append) as tap:
        tap.record_tool_result("query", Table())
    assert events[1]["result"]["$repr"] == "Table(1_000_000 rows)"


def test_a_time_out_by_signal_while_we_write_to_stderr_is_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow:
        def write(self, text: str) -> None:
            signal.raise_signal(signal.SIGUSR1)

    def time_out(*_: object) -> None:
        raise TimeoutError("the agent's own")

    guard.forget()
    before = signal.signal(signal.SIGUSR1, time_out)
    monkeypatch.setattr("sys.stderr", Slow())
    try:
        trace = Trace(tmp_path / "run.jsonl")
        trace.close()
        with pytest.raises(TimeoutError, match="the agent's own"):
            trace.step("note")
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_time_out_by_signal_while_a_host_is_noted_is_the_agents() -> None:
    class Odd(str):
        def __str__(self) -> str:
            signal.raise_signal(signal.SIGUSR1)
            return "host"

    def time_out(*_: Any) -> None:
        raise TimeoutError("the agent's")

    before = signal.signal(signal.SIGUSR1, time_out)
    try:
        with pytest.raises(TimeoutError, match="the agent's"):
            coverage._audit("socket.getaddrinfo", (Odd("host"), 80))
    finally:
        signal.signal(signal.SIGUSR1, before)
    coverage._audit("socket.getaddrinfo", (b"\xff", 80))  # one that is nothing at all
