"""A provider for tests: real HTTP on loopback, every dialect, answers and faults by scenario.

    with Provider() as provider:
        client = anthropic.Anthropic(base_url=provider.url("tools-3"), api_key="none")

What it received stands in `provider.log`, byte for byte, and at `/_log` for other processes
(`python -m support.provider` serves until it is interrupted, and prints its URL first).
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

from .answers import Answer, Ask, json_answer
from .connection import Connection, Received
from .routes import answer_to

__all__ = ["Provider", "Received"]


class Provider:
    """The server, in a thread of its own from `start` to `stop`."""

    def __init__(self) -> None:
        self.log: list[Received] = []
        self.port = 0
        self._attempts: Counter[str] = Counter()
        self._connections = 0
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="provider", daemon=True)
        self._ready = threading.Event()

    def start(self) -> Provider:
        self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    __enter__ = start

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def url(self, scenario: str = "text", path: str = "") -> str:
        return f"http://127.0.0.1:{self.port}/s/{scenario}{path}"

    def reset(self) -> None:
        """Forget what was received; scenarios that count begin again."""
        with self._changed:
            self.log = []
            self._attempts.clear()

    def settled(self, timeout: float = 10.0) -> list[Received]:
        """What was received, once every answer is over: handed out, cut, or its client gone."""
        with self._changed:
            done = self._changed.wait_for(lambda: all(each.over for each in self.log), timeout)
            if not done:
                raise TimeoutError(f"still answering: {[each.target for each in self.log if not each.over]}")
            return list(self.log)

    def _serve(self) -> None:
        server = self._loop.run_until_complete(self._loop.create_server(self._connection, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        self._loop.run_until_complete(self._hang_up())
        self._loop.close()

    async def _hang_up(self) -> None:
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _connection(self) -> Connection:
        self._connections += 1
        return Connection(self._connections, self._note, self._answer, self._over)

    def _note(self, received: Received) -> int:
        """Log a request; which one of its scenario it is."""
        if received.target.startswith("/_"):
            return 0
        with self._changed:
            scenario = received.target.split("/")[2] if received.target.startswith("/s/") else ""
            self._attempts[scenario] += 1
            self.log.append(received)
            self._changed.notify_all()
            return self._attempts[scenario]

    def _over(self, received: Received) -> None:
        with self._changed:
            self._changed.notify_all()

    def _answer(self, ask: Ask) -> Answer:
        if ask.path == "/_log":
            return json_answer([_plain(received) for received in self.log])
        if ask.path == "/_reset":
            self.reset()
            return json_answer({})
        return answer_to(ask)


def _plain(received: Received) -> dict[str, Any]:
    """A request for other processes; bytes as Latin-1 text."""
    return {
        "connection": received.connection,
        "at": received.at,
        "method": received.method,
        "target": received.target,
        "headers": received.headers,
        "body": received.body.decode("latin-1"),
        "status": received.status,
        "sent": [[at, piece.decode("latin-1")] for at, piece in received.sent],
        "left": received.left,
        "over": received.over,
    }
