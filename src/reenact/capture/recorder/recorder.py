"""The one way to record: every front end, hook and note comes through here.

Guarantees: an event is in the kernel's hands when emit() returns; nothing raised in here reaches the
agent; a run is ended once, by the writer that began it. Everything that is written goes through ``_write``
or ``_line``, under one lock, with one write call; what is lost is counted and shows as a gap in ``step``.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock, get_ident
from time import perf_counter
from time import time as now

from ... import schema
from ...lines import kind_part, line, new_id, totals_field, writer_part
from ...totals import Totals
from .. import guard
from ..import_lock import import_lock
from ..redact.redactor import Redactor
from ..runs import crashes, exit_and_fork
from ..runs.location import how_started, new_file, start_fields
from . import listeners as listening
from .disk_space import drop_unwanted, over_quota
from .encode import CAP, RawStream, Texts
from .file import MAX_QUEUED_BYTES, MAX_QUEUED_EVENTS, FileSink

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..front.options import Options
    from .deltas import History, RequestDraft


CHECK_EVERY_BYTES = 4 << 20
"""Between two looks at the quota and the segment's size."""
ENDS = frozenset(
    (schema.MODEL_RESPONSE, schema.TOOL_RESULT, schema.LLM_CALL, schema.TOOL_CALL, schema.OLD_TOOL_RESULT,
     schema.ERROR, schema.RUN_END, schema.PROC_END)
)  # fmt: skip
"""Kinds that carry the running totals."""


class Recorder:
    """One writer of one run, to a file, or listeners, or both.

    Front ends share it, forks renew it, garbage collection ends it. Its public methods never raise.
    """

    def __init__(
        self,
        path: str | None,
        options: Options,
        *,
        run_id: str | None = None,
        head: dict[str, Any] | None = None,
        parent_w: str | None = None,
        listeners: tuple[Any, ...] = (),
    ) -> None:
        self.options = options
        self.run_id = run_id or new_id(16)
        self.head = head or {}
        self.parent_w = parent_w
        """Set in a further process of a run, which then writes ``proc.*``."""
        self.listeners = listeners if options.bus is None else (*listeners, options.bus)
        self.sink = FileSink(path, options.durability) if path is not None else None
        self.first_path = path
        self.stem = self.run_stem = path.removesuffix(".jsonl") if path is not None else ""
        """What the names of this writer's files begin with, and those of all files of the run."""
        self.lock = self.sink.lock if self.sink is not None else RLock()
        self.history: History | None = None
        self.lost = 0
        self.overhead = 0.0
        self.exited = False
        self.begin_writer()
        self.closed = False
        try:
            exit_and_fork.add(self)
            crashes.install()
        except BaseException:
            self.closed = True  # never begun, so there is nothing to end
            raise

    dropped = False
    """True in the finaliser of a writer that nobody closed."""

    def begin_writer(self, w: str | None = None, step: int = 0) -> None:
        """Start numbering: at construction, again in a forked child, and after a head written for us."""
        self.w = w or new_id(4)
        self.pid = os.getpid()
        self.step = step
        self.segment = 0
        self.began = time.monotonic()
        self.totals = Totals()
        self.history = None
        self.checked_bytes = self.check_at = 0
        self.pending: listening.Lines = []
        """Lines written under the lock that listeners have not received: whole, and as in the file."""
        self.notifying: set[int] = set()
        """Threads inside a listener; what a listener records is not handed on, or it would never end."""
        self.is_queue_noted = self.over_quota = False
        self.calls: Any = None
        """Open calls and requested tools; created by the Tap that needs it."""
        self._writer_part = writer_part(self.run_id, self.w)
        redactor = Redactor() if self.options.redact else None
        folder = self.run_stem + ".blobs" if self.sink else None
        self.texts = Texts(self.options.content, redactor, folder, self.options.durability == "fsync")

    @property
    def path(self) -> str | None:
        """The file written to right now."""
        return self.sink.path if self.sink is not None else None

    def emit(
        self, kind: str, fields: dict[str, Any], cap: int = CAP, more: tuple[Any, ...] | None = None
    ) -> bool:
        """Record one event; True if it is on its way to disk.

        The one way in: nothing raised here reaches the agent, losses and time are counted. ``more`` is what
        ``emit_request`` and ``emit_answer`` know beside the fields.
        """
        begun = perf_counter()
        try:
            if self.closed:
                return self._too_late(kind)
            if exit_and_fork.exiting and self._is_stuck():
                return False
            if more is not None:
                record = self._request if kind == schema.MODEL_REQUEST else self._answer
                return record(fields, *more)
            text, full, _ = self.texts.of(fields, cap, bool(self.listeners))
            return self._write(kind, fields, text, full)
        except Exception as exc:
            self.lost += 1
            guard.swallow(f"record a {kind}", exc)
            return False
        finally:
            self.overhead += perf_counter() - begun

    def emit_request(
        self,
        fields: dict[str, Any],
        body: Any,
        lane: str,
        draft: RequestDraft | None = None,
        *,
        is_held: bool = False,
    ) -> bool:
        """Record a model.request, writing of the body only what is new.

        ``is_held``: the caller holds ``requesting()`` and calls ``notify_listeners`` once it has let go.
        """
        return self.emit(schema.MODEL_REQUEST, fields, CAP, (body, lane, draft, is_held))

    def emit_answer(
        self,
        fields: dict[str, Any],
        parts: list[tuple[str, dict[str, Any]]],
        stream: RawStream | None = None,
    ) -> bool:
        """Record a model.response; ``parts`` of its body may come back in a later request, ``stream`` is
        the response as it came."""
        return self.emit(schema.MODEL_RESPONSE, fields, CAP, (parts, stream))

    def requesting(self) -> Any:
        """Return what to hold from ``draft`` to ``emit_request``, so that no other request comes between."""
        return _NO_LOCK if exit_and_fork.exiting and self._is_stuck() else self.lock

    def notify_listeners(self) -> None:
        """Hand on what was written while the caller held ``requesting()``."""
        try:
            if self.listeners and not (exit_and_fork.exiting and self._is_stuck()):
                with self.lock:
                    pending = self._take_pending()
                self._notify(pending)
        except Exception as exc:
            guard.swallow("tell listeners of a request", exc)

    def draft(self, body: Any) -> RequestDraft | None:
        """Find the conversation that a request continues; its ``body`` is the caller's alone."""
        try:
            return self._bodies().draft(self.texts, body, is_fresh=True)
        except Exception as exc:
            guard.swallow("look at a model.request", exc)
            return None

    def _request(
        self, fields: dict[str, Any], body: Any, lane: str, draft: RequestDraft | None, is_held: bool
    ) -> bool:
        try:
            with self.lock:
                if self.step == 0:
                    self._write_head()
                self._check_place()
                history = self._bodies()
                draft = draft or history.draft(self.texts, body, is_fresh=False)
                text, full, _ = self.texts.of(fields, CAP, bool(self.listeners))
                if self.listeners:
                    full += draft.for_listeners()
                text += history.encode(draft, fields["call"], lane)
                resets = history.resets
                written = self._write(schema.MODEL_REQUEST, fields, text, full, held=True)
                if not written:
                    history.reset()
                elif resets == history.resets:  # else its segment is over, and nothing may refer to it
                    history.remember(draft)
                pending = None if is_held else self._take_pending()
        except BaseException:
            self.history = None  # the next request is written in full
            raise
        self._notify(pending)
        return written

    def _answer(
        self, fields: dict[str, Any], parts: list[tuple[str, dict[str, Any]]], stream: RawStream | None
    ) -> bool:
        text, full, redacted = self.texts.of(fields, CAP, bool(self.listeners))
        if stream is not None:
            raw = self.texts.keep_stream(stream, secret=redacted is not None and "body" in redacted)
            if raw is not None:  # not one of the agent's values: its ``$`` is ours
                reference = self.texts.join({"raw": raw})
                text, full = text + reference, full + reference
        history = self._bodies()
        resets = history.resets
        written = self._write(schema.MODEL_RESPONSE, fields, text, full)
        if written and redacted is None:
            with self.lock:
                if resets == history.resets:  # else it stands in a segment that is over
                    history.answers.add(fields["call"], parts)
        return written

    def start(self) -> None:
        """Write the head now, so that a run killed before its first event is known too."""
        try:
            with self.lock:
                if self.step == 0 and not self.closed:
                    self._write_head()
                pending = self._take_pending()
            self._notify(pending)
        except Exception as exc:
            guard.pass_on(exc)  # the first event tries again, and reports what fails then

    def note(self, what: str, **detail: Any) -> None:
        """Write down something about the recording itself."""
        try:
            with self.lock:
                if self.closed:
                    return
                if self.step == 0:
                    self._write_head()
                self._note(what, **detail)
                pending = self._take_pending()
            self._notify(pending)
        except Exception as exc:
            guard.swallow("write a note", exc)

    def close(self, status: str = "ok", **end: Any) -> None:
        """End the run (or this process' part of it) and give everything back. Twice is fine."""
        try:
            if exit_and_fork.exiting and self._is_stuck():
                return
            with self.lock:
                self._close(status, end)
                pending = self._take_pending()
            self._notify(pending)
        except Exception as exc:
            guard.swallow("end a trace", exc)

    def _close(self, status: str, end: dict[str, Any]) -> None:
        if self.closed:
            return
        if (self.step or self.parent_w is None) and not self.exited:
            self._write_end(status, end)
        self._repeat_end()
        self.closed = True
        self.history = None
        exit_and_fork.remove(self)
        if self.sink is not None:
            self.sink.close()
            if self.parent_w is None and self.options.retain != "all":
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
        if exit_and_fork.unseen is not None:
            counters["unseen"] = exit_and_fork.unseen()
            uses = self.calls.uses_counted() if self.calls is not None else None
            if uses is not None:
                counters["tool_uses"] = uses
        kind = schema.RUN_END if self.parent_w is None else schema.PROC_END
        self._line(kind, {"status": status, **end, **counters})

    def conclude(self, status: str, end: dict[str, Any]) -> None:
        """Say how it ended, but stay usable for the tasks it has left behind; it closes with the last one."""
        self.exit(status, end, flush=0.0)
        self.concluded = (status, end, self.step)

    concluded: tuple[str, dict[str, Any], int] | None = None
    """The status it reported at its end, and the step of that report."""

    def _repeat_end(self) -> None:
        """Repeat how it ended below what came after that: the last word counts."""
        if self.concluded is not None and self.step > self.concluded[2]:
            self._write_end(*self.concluded[:2])
        self.concluded = None

    def exit(self, status: str, end: dict[str, Any], flush: float = 5.0) -> None:
        """At interpreter exit: say how it ended, but stay usable for exit handlers that run after ours."""
        try:
            with self.lock:
                self._repeat_end()
                if not self.closed and not self.exited and (self.step or self.parent_w is None):
                    self._write_end(status, end)
                    self.exited = True
                pending = self._take_pending()
                if self.sink is not None and flush:
                    self.sink.flush(flush)
            self._notify(pending)
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
        self.begin_writer()
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
        self.begin_writer(w, step=1)
        if self.sink is not None:
            state = os.stat(self.sink.path)
            self.sink.identity, self.sink.size = (state.st_dev, state.st_ino), state.st_size
            self.sink.own_from_start = True

    def __del__(self) -> None:
        # Dropped unclosed, as the articles do it: the run is over, and we cannot know how it went.
        if not getattr(self, "closed", True) and (not self.exited or self.concluded is not None):
            self.dropped = True
            self.close("unclosed")

    def _write(self, kind: str, fields: dict[str, Any], text: str, full: str, *, held: bool = False) -> bool:
        """Number, stamp and write one event under the lock; notify listeners after it.

        ``held``: the caller has the lock and notifies the listeners once it has released it.
        """
        pending = None
        # "with", not acquire(): an exception from a signal handler must not come between lock and release.
        with self.lock:
            if self.closed:  # by another thread, while this one waited
                return self._too_late(kind)
            if self.step == 0:
                self._write_head()
            self.step = step = self.step + 1
            self.totals.add(kind, fields)
            written = self._put(kind, step, text, full)
            if self.listeners and not held:
                pending = self._take_pending()
        if pending is not None:  # seldom: most writers have no listeners
            self._notify(pending)
        return written

    def _too_late(self, kind: str) -> bool:
        self.lost += 1
        guard.tell("closed", f"a {kind} came after close() and is lost. Your agent is unaffected.")
        return False

    def _kind_text(self, kind: str) -> str:
        """Return the kind's part of the envelope, remembered for the kinds that come up again and again."""
        clean = self.texts.name(kind)
        text = kind_part(clean)
        if clean is kind and len(_kinds) < 1_000:
            _kinds[kind] = text
        return text

    def _put(self, kind: str, step: int, text: str, full: str) -> bool:
        """Stamp a line and give it to the file; a failure is counted and reported once."""
        if kind in ENDS:
            t = self.totals
            sums = totals_field(t.turns, t.tokens_in, t.tokens_out, t.errors)
            text, full = text + sums, full + sums
        ts, kind_text = now(), _kinds.get(kind) or self._kind_text(kind)
        written = line(ts, self._writer_part, step, kind_text, text)
        if self.listeners:
            self.pending.append((line(ts, self._writer_part, step, kind_text, full), written))
        sink = self.sink
        if sink is None:
            return True
        try:
            lost = sink.write(written.encode("ascii"))
        except OSError as exc:
            return self._failed(sink, exc)
        if lost or sink.renewed:
            self._lost_before(lost)
        if sink.size > self.check_at or sink.queue is not None:
            self._look_around(sink)
        return True

    def _check_place(self) -> None:
        """Before a request refers to what the file holds: see that it is still there."""
        sink = self.sink
        if sink is not None and sink.fd >= 0 and sink.queue is None:
            lost = sink.look()
            if lost or sink.renewed:
                self._lost_before(lost)

    def _lost_before(self, lost: int) -> None:
        """Count events that went down with a file; what is written next can refer to nothing in it."""
        self.lost += lost
        if self.sink is not None:
            self.sink.renewed = False
        self.texts.forget_blobs()  # their folder may have gone the same way
        self._forget_history()

    def _failed(self, sink: FileSink, exc: OSError) -> bool:
        guard.pass_on(exc)
        self.lost += 1
        self._forget_history()
        guard.tell(
            f"write:{exc.errno}:{os.path.dirname(sink.path)}",
            f"could not write to {guard.shown(sink.path)} ({guard.explain(exc)}). Your agent is unaffected; "
            "events are being lost and counted.",
        )
        return False

    def _look_around(self, sink: FileSink) -> None:
        """Now and then: whether the device stalls, the quota, and the segment's size."""
        if sink.queue is not None:
            self._note_queueing()
            return
        wrote, self.checked_bytes = sink.size - self.checked_bytes, sink.size
        limit = self.options.segment_bytes or sys.maxsize
        self.check_at = sink.size + CHECK_EVERY_BYTES
        if sink.size < limit < self.check_at:
            self.check_at = limit
        self._check_quota(wrote)
        if sink.size > limit and sink.regular and not sink.is_shared():
            self.segment += 1
            self.check_at = sys.maxsize  # the head itself must not be moved on, however small a segment is
            self._forget_history()
            sink.move_to(f"{self.stem}.s{self.segment:04d}.jsonl")
            self._line(schema.RUN_MORE, {"v": schema.VERSION, "segment": self.segment})
            self.checked_bytes = self.check_at = 0

    def _note_queueing(self) -> None:
        if not self.is_queue_noted:
            self.is_queue_noted = True
            self._note("queueing", at_risk_events=MAX_QUEUED_EVENTS, at_risk_bytes=MAX_QUEUED_BYTES)

    def _check_quota(self, wrote: int) -> None:
        reason = over_quota(os.path.dirname(self.stem), self.options, wrote)
        was, self.over_quota = self.over_quota, reason is not None
        self.texts.limit(self.over_quota)
        if reason is not None and not was:
            guard.tell(
                f"quota:{os.path.dirname(self.stem)}", f"{reason}: only metadata is recorded from here on."
            )
            if self.step:
                self._note("quota", detail=reason)

    def _write_head(self) -> None:
        """Begin the file: ``run.start`` by the writer that starts the run, ``proc.start`` by any other."""
        if self.sink is not None:
            self._check_quota(0)
        if self.step:
            return  # a signal handler of this thread has recorded meanwhile
        self.step = 1
        if self.parent_w is not None:
            proc = {"v": schema.VERSION, "pid": self.pid, "parent_w": self.parent_w}
            self._line(schema.PROC_START, {**proc, **how_started()}, step=1)
            return
        head = {"v": schema.VERSION, **self.head, "pid": self.pid}
        if self.texts.redactor is not None:
            head["policy"] = self.texts.redactor.policy
        self._line(schema.RUN_START, head, step=1)

    def _note(self, what: str, **detail: Any) -> None:
        self._line(schema.PROC_NOTE, {"what": what, **detail})

    def _line(self, kind: str, fields: dict[str, Any], *, step: int = 0) -> None:
        """Write one of our own bookkeeping lines; the lock is held."""
        if not step:
            self.step = step = self.step + 1
        text, full = self.texts.of_ours(fields)
        self._put(kind, step, text, full)

    def _bodies(self) -> History:
        if self.history is None:
            with import_lock:
                from .deltas import History

            self.history = History()
        return self.history

    def _forget_history(self) -> None:
        if self.history is not None:
            self.history.reset()

    def _is_stuck(self) -> bool:
        """True if a thread that was frozen by the interpreter's shutdown holds the lock for ever."""
        if not sys.is_finalizing() or self.lock.acquire(blocking=False):
            if sys.is_finalizing():
                self.lock.release()
            return False
        self.lost += 1
        return True

    def _notify(self, lines: listening.Lines | None) -> None:
        """Hand events to callbacks and buses; outside the lock, and never inside a garbage collection."""
        if not lines:
            return
        if self.dropped:
            listening.keep(self.listeners, lines)
            return
        thread = get_ident()
        if thread in self.notifying:
            return
        self.notifying.add(thread)
        try:
            listening.catch_up()
            self.lost += listening.notify(self.listeners, lines)
        finally:
            self.notifying.discard(thread)

    def _take_pending(self) -> listening.Lines:
        lines, self.pending = self.pending, []
        return lines


def begin_run(
    path: str | None,
    options: Options,
    *,
    name: str | None = None,
    run_id: str | None = None,
    listeners: tuple[Any, ...] = (),
    **head: object,
) -> Recorder:
    """Begin a run in the file or the folder of this path, else in the default folder, one file per run.

    Listeners alone need no file.
    """
    run_id = run_id or new_id(16)
    name = name or options.name
    if path is not None or not listeners:
        path = new_file(path, name, run_id)
    fields = start_fields(name, options, **head)
    return Recorder(path, options, run_id=run_id, head=fields, listeners=listeners)


_kinds: dict[str, str] = {}


class _NoLock:
    """For a thread that finds the lock held for ever: its request is counted as lost by emit_request."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


_NO_LOCK = _NoLock()
