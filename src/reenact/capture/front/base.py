"""What Trace, StepLog and Tap have in common: where they write, how they end.

They are vocabularies, not writers: with a path they own a recorder, without one they join the run at hand.
"""

from __future__ import annotations

import sys

from ...errors import UsageError
from .. import guard
from ..calls.error_fields import failure
from ..import_lock import import_lock
from ..recorder.file import FileSink
from ..recorder.listeners import CallbackSink, MemorySink, TeeSink
from ..recorder.recorder import Recorder, begin_run
from ..runs import crashes
from ..runs.location import absolute
from .options import Options, check_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

__all__ = ["CallbackSink", "FileSink", "FrontEnd", "MemorySink", "TeeSink"]


class FrontEnd:
    """Base of the three front ends; a context manager."""

    def __init__(
        self, target: Any, options: dict[str, Any], run_id: str | None = None, writer: Any = None
    ) -> None:
        self._options = Options(**options)
        if options and target is None and writer is None and run_id is None:
            raise UsageError(
                f"{', '.join(options)}: without a path this joins the run at hand, whose options hold",
                hint="give the options to reenact.run(...), or give a path",
            )
        if run_id is not None and (not isinstance(run_id, str) or not run_id):
            raise UsageError(
                f"a run id is non-empty text, not {run_id!r}", hint='for example run_id="run-abc123"'
            )
        self._run_id = run_id
        self._own: Recorder | None = None
        self._borrowed = False
        if isinstance(target, Recorder):
            self._own, self._borrowed = target, True
        elif target is not None or writer is not None or run_id is not None:
            self._pending = (target, writer)
            split_target(target, writer, self._options)  # a wrong argument is reported here
            try:
                self._begin()
            except Exception as exc:
                guard.pass_on(exc)  # else no descriptors, no memory: tried again with the first event

    _pending: tuple[Any, Any] | None = None
    _missed = 0

    def _begin(self) -> None:
        """Make the recorder of our own and write its head."""
        if self._pending is None:
            return
        try:
            self._own = self._new_recorder(*self._pending)
        except Exception:
            self._missed += 1
            raise
        self._pending = None
        self._own.lost += max(0, self._missed - 1)  # the first attempt was the making, not an event
        self._own.start()

    def _new_recorder(self, target: Any, writer: Any) -> Recorder:
        options = self._options
        path, listeners = split_target(target, writer, options)
        run = _current_run()
        if run is not None and self._run_id == run.run_id and path is not None and not listeners:
            adopted: Recorder = run.adopt(path, options)
            self._borrowed = adopted is run.recorder()
            return adopted
        parent = run.id_for_inner_runs() if run is not None and self._run_id != run.run_id else None
        return begin_run(path, options, run_id=self._run_id, listeners=listeners, parent_run=parent)

    def recorder(self) -> Recorder:
        """Return the recorder for this very call: ours, or that of the run the caller is in."""
        if self._pending is not None:
            self._begin()
        if self._own is not None:
            return self._own
        with import_lock:
            from ..runs.current import current_recorder

        return current_recorder()

    @property
    def run_id(self) -> str:
        """The id of the run this writes to."""
        return self.recorder().run_id if self._pending is None else self._run_id or ""

    @property
    def path(self) -> str | None:
        """The file this writes to, None for a callback."""
        return self.recorder().path if self._pending is None else None

    @property
    def lost(self) -> int:
        """Events that could not be recorded."""
        return self.recorder().lost if self._pending is None else max(0, self._missed - 1)

    def _swallow(self, doing: str, exc: Exception) -> None:
        """Report and count an event that was lost before it came to the recorder."""
        guard.swallow(doing, exc)
        if self._own is not None:
            self._own.lost += 1

    def cite(self, claim: str, source: Any = None, **details: Any) -> None:
        """Record that a claim of the last answer has a source: a URL, a document, the id of a tool call.

        Details are ``quote span page confidence id metadata`` and ``call``, of another answer. Never raises.
        """
        try:
            with import_lock:
                from ..calls.citation_events import write_citation

            write_citation(self.recorder(), claim, source, **details)
        except Exception as exc:
            self._swallow("record a citation", exc)

    def close(self) -> None:
        """End what this began; a run that was joined continues."""
        if self._own is not None and not self._borrowed:
            self._own.close("ok")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, exc: BaseException | None, tb: object) -> None:
        if self._own is None or self._borrowed:
            return
        if exc is None:
            self._own.close("ok")
            return
        error = failure(exc)
        self._own.emit("error", {"where": "block", "error": error})
        crashes.seen(exc)
        self._own.close("error" if isinstance(exc, Exception) else "cancelled", error=error)


def split_target(target: Any, writer: Any, options: Options) -> tuple[str | None, tuple[Any, ...]]:
    """Return the file and the listeners that a front end gets."""
    targets = list(target.sinks) if isinstance(target, TeeSink) else [target]
    if writer is not None:
        targets.append(writer)
    path: str | None = None
    listeners: list[Any] = []
    for each in targets:
        if each is None:
            continue
        if hasattr(type(each), "receive"):
            listeners.append(each)
        elif isinstance(each, FileSink):
            path = each.path
        elif callable(each):
            listeners.append(CallbackSink(each, deltas=options.deltas))
        elif path is not None:
            raise UsageError(
                "two files for one recorder", hint="use two front ends, or one file and callbacks"
            )
        else:
            path = check_path(each)
    return path and absolute(path), tuple(listeners)


def _current_run() -> Any:
    """Return the run in this context; without loading the machinery if no run can exist yet."""
    current = getattr(sys.modules.get("reenact.capture.runs.current"), "current_run", None)
    return current.get() if current is not None else None
