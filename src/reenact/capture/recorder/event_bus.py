"""EventBus: hear of events as they are recorded, without slowing the agent.

Handlers run on one daemon thread of the bus, started with the first subscriber; the queue is bounded
and what does not fit is counted in ``dropped``.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

from ...errors import UsageError
from .. import guard

MAX_QUEUED = 10_000
Handler = Callable[[dict[str, Any]], Any]


class _Subscriber:
    def __init__(self, pattern: str, handler: Handler, once: bool) -> None:
        self.pattern = pattern
        self.parts = pattern.split(".")
        self.handler = handler
        self.once = once
        try:
            self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self.loop = None

    def wants(self, kind: str) -> bool:
        return matches(self.parts, kind.split("."))


class EventBus:
    """``bus.on("tool.*", handler)``; then ``Tap(path, bus=bus)`` or ``run(..., bus=bus)``."""

    def __init__(self, max_queued: int = MAX_QUEUED, *, deltas: bool = False) -> None:
        self.wants_full = not deltas
        self.dropped = 0
        self._max_queued = max_queued
        self._subscribers: list[_Subscriber] = []
        self._queue: deque[dict[str, Any]] = deque()
        self._wake = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._working = False
        _renew_in_children(self)

    def on(self, pattern: str, handler: Handler | None = None) -> Any:
        """Call ``handler(event)`` for every kind that fits: ``tool.called``, ``tool.*``, ``**``."""
        return self._add(pattern, handler, once=False)

    def once(self, pattern: str, handler: Handler | None = None) -> Any:
        """Like ``on``, for the next matching event only."""
        return self._add(pattern, handler, once=True)

    def _add(self, pattern: str, handler: Handler | None, *, once: bool) -> Any:
        if handler is None:
            return lambda each: self._add(pattern, each, once=once)
        if not isinstance(pattern, str) or not callable(handler):
            raise UsageError(
                "on() takes a pattern and a function", hint='for example bus.on("tool.*", print)'
            )
        with self._wake:
            self._subscribers.append(_Subscriber(pattern, handler, once))
            self._start()
        return handler

    def off(self, pattern: str, handler: Handler) -> bool:
        """Take a handler out; True if it was there."""
        with self._wake:
            for each in self._subscribers:
                if each.pattern == pattern and each.handler is handler:
                    self._subscribers.remove(each)
                    return True
        return False

    def emit(self, kind: str, **fields: Any) -> None:
        """Put an event of your own on the bus; it is not recorded."""
        self.receive({"ts": time.time(), "kind": kind, **fields})

    def receive(self, event: dict[str, Any]) -> None:
        """Queue an event for the handlers; called by recorders."""
        with self._wake:
            if not self._subscribers:
                return
            if len(self._queue) >= self._max_queued:
                self.dropped += 1
                return
            self._queue.append(event)
            self._start()
            self._wake.notify()

    def after_fork(self) -> None:
        """In a forked child: the thread, the lock and what was queued are the parent's."""
        self._wake = threading.Condition(threading.RLock())
        self._queue.clear()
        self._thread = None
        self._working = False

    def flush(self, timeout: float = 5.0) -> bool:
        """Wait until every queued event has been handled; False if the time ran out."""
        with self._wake:
            return self._wake.wait_for(lambda: not self._queue and not self._working, timeout)

    def _start(self) -> None:
        # A thread does not survive fork; is_alive() is False in the child and a new one is begun.
        if self._thread is None or not self._thread.is_alive():
            self._working = False
            self._thread = threading.Thread(target=self._work, name="reenact-bus", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            with self._wake:
                self._working = False
                self._wake.notify_all()
                self._wake.wait_for(lambda: bool(self._queue))
                event = self._queue.popleft()
                self._working = True
                wanted = [each for each in self._subscribers if each.wants(str(event.get("kind")))]
                for each in wanted:
                    if each.once:
                        self._subscribers.remove(each)
            for each in wanted:
                self._call(each, event)

    def _call(self, subscriber: _Subscriber, event: dict[str, Any]) -> None:
        try:
            result = subscriber.handler(event)
            if inspect.iscoroutine(result):
                loop = subscriber.loop
                if loop is not None and loop.is_running():
                    asyncio.run_coroutine_threadsafe(result, loop).result(timeout=60)
                else:
                    asyncio.run(result)
        except Exception as exc:
            guard.swallow(f"run a bus handler for {subscriber.pattern}", exc)


_buses: weakref.WeakSet[EventBus] = weakref.WeakSet()
_hooked = False


def _renew_in_children(bus: EventBus) -> None:
    """Remember a bus for forks; a child must not wait for a lock whose holder was not forked with it."""
    global _hooked
    _buses.add(bus)
    if not _hooked:
        _hooked = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    for bus in list(_buses):
        bus.after_fork()


def matches(pattern: list[str], kind: list[str]) -> bool:
    """True if dotted kind fits pattern: ``*`` is one segment, ``**`` the rest.

    >>> matches(["tool", "*"], ["tool", "called"]), matches(["**"], ["a", "b"]), matches(["*"], ["a", "b"])
    (True, True, False)
    """
    for index, part in enumerate(pattern):
        if part == "**":
            return True
        if index >= len(kind) or part not in ("*", kind[index]):
            return False
    return len(pattern) == len(kind)
