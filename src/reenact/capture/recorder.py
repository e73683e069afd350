"""The one way to record: every front end, hook and note comes through here.

Guarantees: an event is in the kernel's hands when emit() returns; nothing raised in here reaches the
agent; a run is ended once, by the writer that began it.
"""

from __future__ import annotations

import os
from _thread import RLock
from time import perf_counter

from .. import schema
from . import guard, registry
from .import_lock import import_lock
from .texts import CAP
from .writer import Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Recorder(Writer):
    """A writer that never raises: front ends share it, forks renew it, garbage collection ends it."""

    def __init__(self, *args: Any, **given: Any) -> None:
        self.exited = False
        super().__init__(*args, **given)
        try:
            registry.add(self)
        except BaseException:
            self.closed = True  # never begun, so there is nothing to end
            raise

    def emit(self, kind: str, fields: dict[str, Any], cap: int = CAP) -> bool:
        """Record one event; True if it is on its way to disk. Never raises."""
        begun = perf_counter()
        try:
            if self.closed:
                return self._too_late(kind)
            text, full, _ = self.texts.of(fields, cap, bool(self.listeners))
            return self.write(kind, fields, text, full)
        except Exception as exc:
            self.lost += 1
            guard.swallow(f"record a {kind}", exc)
            return False
        finally:
            self.overhead += perf_counter() - begun

    def emit_request(
        self, fields: dict[str, Any], body: Any, lane: str | Callable[[str | None], dict[str, Any]]
    ) -> bool:
        """Record a model.request, writing of the body only what is new. Never raises.

        ``lane`` is the lane, or a function that is told the lane of the conversation the request goes
        on with, if any, and returns the fields that come first: ``call``, ``lane`` and what else it knows.
        """
        begun = perf_counter()
        try:
            if self.closed:
                return self._too_late(schema.MODEL_REQUEST)
            if registry.exiting and self._is_stuck():
                return False
            with self.lock:
                if self.step == 0:
                    self._write_head()
                self._check_place()
                written = self.bodies().write_request(self, fields, body, lane)
                told = self._take_untold()
            if told:
                self._tell_listeners(told)
            return written
        except Exception as exc:
            self.lost += 1
            self.history = None  # after a failure the next request is written in full
            guard.swallow("record a model.request", exc)
            return False
        finally:
            self.overhead += perf_counter() - begun

    def emit_answer(
        self,
        fields: dict[str, Any],
        parts: list[tuple[str, dict[str, Any]]],
        raw: Callable[[bool], dict[str, Any] | None] | None = None,
    ) -> bool:
        """Record a model.response; ``parts`` of its body may come back in a later request. Never raises.

        ``raw`` keeps its stream and returns the reference to it; it is told whether something in the answer
        had to be changed, a secret for instance.
        """
        begun = perf_counter()
        try:
            if self.closed:
                return self._too_late(schema.MODEL_RESPONSE)
            text, full, touched = self.texts.of(fields, CAP, bool(self.listeners))
            kept = raw(touched) if raw is not None else None
            if kept is not None:  # not one of the agent's values: its ``$`` is ours
                told = self.texts.join({"raw": kept})
                text, full = text + told, full + told
            history = self.bodies()
            resets = history.resets
            written = self.write(schema.MODEL_RESPONSE, fields, text, full)
            if written and not touched:
                with self.lock:
                    if resets == history.resets:  # else it stands in a segment that is over
                        history.answers.add(fields["call"], parts)
            return written
        except Exception as exc:
            self.lost += 1
            guard.swallow("record a model.response", exc)
            return False
        finally:
            self.overhead += perf_counter() - begun

    def start(self) -> None:
        """Write the head now, so that a run killed before its first event is known too. Never raises."""
        try:
            with self.lock:
                if self.step == 0 and not self.closed:
                    self._write_head()
                told = self._take_untold()
            if told:
                self._tell_listeners(told)
        except Exception as exc:
            guard.swallow("begin a trace", exc)

    def note(self, what: str, **detail: Any) -> None:
        """Write down something about the recording itself. Never raises."""
        try:
            with self.lock:
                if self.closed:
                    return
                if self.step == 0:
                    self._write_head()
                self._note(what, **detail)
                told = self._take_untold()
            if told:
                self._tell_listeners(told)
        except Exception as exc:
            guard.swallow("write a note", exc)

    def close(self, status: str = "ok", **end: Any) -> None:
        """End the run (or this process' part of it) and give everything back. Never raises; twice is fine."""
        try:
            if registry.exiting and self._is_stuck():
                return
            with self.lock:
                self._close(status, end)
                told = self._take_untold()
            if told:
                self._tell_listeners(told)
        except Exception as exc:
            guard.swallow("end a trace", exc)

    def _close(self, status: str, end: dict[str, Any]) -> None:
        if self.closed:
            return
        if (self.step or self.parent_w is None) and not self.exited:
            self._write_end(status, end)
        self._end_again()
        self.closed = True
        self.history = None
        registry.remove(self)
        if self.sink is not None:
            self.sink.close()
            if self.parent_w is None and self.options.retain != "all":
                with import_lock:
                    from .retain import drop_unwanted

                drop_unwanted(self, status)

    def _write_end(self, status: str, end: dict[str, Any]) -> None:
        if self.step == 0:
            self._write_head()
        if self.sink is not None and self.sink.queue is not None:
            self.lost += self.sink.queue.take_lost()
        redactor = self.texts.redactor
        counters: dict[str, Any] = {
            "events": self.step + 1,
            "dropped": self.lost,
            "redacted": redactor.total if redactor is not None else 0,
            "unredacted_signed": redactor.unredacted_signed if redactor is not None else 0,
            "overhead_us": int(self.overhead * 1e6),
        }
        if registry.unseen is not None:
            counters["unseen"] = registry.unseen()
        kind = schema.RUN_END if self.parent_w is None else schema.PROC_END
        self._line(kind, {"status": status, **end, **counters})

    def conclude(self, status: str, end: dict[str, Any]) -> None:
        """Say how it ended, but stay usable for the tasks it has left behind; it closes with the last one."""
        self.exit(status, end, flush=0.0)
        self.concluded = (status, end, self.step)

    concluded: tuple[str, dict[str, Any], int] | None = None
    """How it ended by its own word, and the step at which it said so."""

    def _end_again(self) -> None:
        """Repeat how it ended below what came after that: the last word counts."""
        if self.concluded is not None and self.step > self.concluded[2]:
            self._write_end(*self.concluded[:2])
        self.concluded = None

    def exit(self, status: str, end: dict[str, Any], flush: float = 5.0) -> None:
        """At interpreter exit: say how it ended, but stay usable for exit handlers that run after ours."""
        try:
            with self.lock:
                self._end_again()
                if not self.closed and not self.exited and (self.step or self.parent_w is None):
                    self._write_end(status, end)
                    self.exited = True
                told = self._take_untold()
                if self.sink is not None and flush:
                    self.sink.flush(flush)
            if told:
                self._tell_listeners(told)
        except Exception as exc:
            guard.swallow("end a trace at exit", exc)

    def after_fork(self) -> None:
        """In a forked child: own writer, own file, the parent's run."""
        parent_w = self.w
        stem = self.run_stem
        if self.sink is not None:
            self.sink.after_fork()
            self.lock = self.sink.lock
        else:
            self.lock = RLock()
        self.lost, self.overhead = 0, 0.0  # the parent's are in the parent's file
        self._begin_writer()
        self.join(stem, parent_w)

    def join(self, stem: str, parent_w: str) -> None:
        """Write as a further process of the run whose files begin with ``stem``."""
        self.parent_w = parent_w
        self.run_stem = stem
        if self.sink is not None and self.sink.regular:
            self.stem = f"{stem}.p{self.w}"
            self.sink.move_to(f"{self.stem}.jsonl")

    def take_over(self, w: str) -> None:
        """Go on as the writer whose head the supervisor has written for this process."""
        self._begin_writer(w, step=1)
        if self.sink is not None:
            state = os.stat(self.sink.path)
            self.sink.identity, self.sink.size = (state.st_dev, state.st_ino), state.st_size
            self.sink.own_from_start = True

    def __del__(self) -> None:
        # Dropped unclosed, as the articles do it: the run is over, and we cannot know how it went.
        if not getattr(self, "closed", True) and (not self.exited or self.concluded is not None):
            self.dropped = True
            self.close("unclosed")
