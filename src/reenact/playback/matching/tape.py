"""A recording as a list of calls: the request of each, when it began and ended, its answer.

Only the list of calls is read at once; a body is rebuilt for its fingerprint and then dropped. Thread-safe.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any

from ... import schema
from ...capture.redact.redactor import Redactor
from ...lines import is_mark
from ...recording.calls import Call
from ...recording.recording import Recording
from ...tracefile.events.event import Event
from ...wire.json_values import string
from ...wire.reading import conversation_key
from .recorded_answers import ENDED_BY_AGENT, EXCEPTION, Answer, answer_of, outcome_of
from .request import HTTP, MODEL, TOOL, Fingerprint, Part, Request, element_part, is_beginning, of_parts

NEVER = float("inf")
_MOST_PARTS = 20_000


class _Parts:
    """Digests of recorded messages; requests rebuilt one after the other share message objects."""

    def __init__(self, policy: object) -> None:
        self._known: dict[int, tuple[Any, Part]] = {}
        self._rules = Redactor({}) if type(policy) is str and policy != Redactor.policy else None
        """For a recording by other rules than those that redact the requests of a replay."""

    def clean(self, value: Any, name: str) -> Any:
        """Return a recorded value as the rules of today leave it."""
        return value if self._rules is None else self._rules.clean(value, name)

    def of(self, element: Any, restored: Callable[[Any], Any]) -> Part:
        known = self._known.get(id(element))
        if known is not None and known[0] is element:
            return known[1]
        part = element_part(restored(element))
        if len(self._known) >= _MOST_PARTS:
            self._known.clear()
        self._known[id(element)] = element, part
        return part


class RecordedCall:
    """One call of a recording."""

    def __init__(
        self, call: Call, begin: Event, number: int, lock: RLock, parts: _Parts, process: str
    ) -> None:
        self._call = call
        self._parts = parts
        self._begin = begin
        self._lock = lock
        self.id = call.id or f"{begin.writer}:{begin.step}"
        self.number = number
        """Its place among the calls of the tape, from 0, in the order they began."""
        self.kind = call.kind
        self.begin: float = begin.index or 0
        end = call.end.index if call.end is not None else None
        self.end: float = NEVER if end is None else end
        """Positions among the recording's events: a call with an end before another's begin had finished by
        then."""
        self.ended_at: float = (call.end.timestamp or NEVER) if call.end is not None else NEVER
        """When, in seconds since the epoch."""
        self.parent = call.parent
        self.within = begin.stored_fields.get("within") if call.kind == TOOL else None
        """The tool that called this one."""
        tool_id = begin.stored_fields.get("tool_id") if call.kind == TOOL else None
        self.tool_id = tool_id if type(tool_id) is str else None
        who = begin.stored_fields.get("who")
        self.who = who if type(who) is str else None
        """The thread, task or work item that made it, None if that is not recorded."""
        done = begin.stored_fields.get("done")
        self.done = [each for each in done if type(each) is str] if type(done) is list else []
        """The threads and work items that had ended since the call before, in order."""
        self.attempt = call.attempt
        self.tool = call.tool
        self.process = process
        """The writer that stands for the process of the call."""
        # Other HTTP calls do not name their agent: they keep their order among themselves.
        self.lane = (begin.writer, HTTP if call.kind == HTTP else call.lane)

    @cached_property
    def size(self) -> int | None:
        """The number of messages, known without rebuilding them."""
        count = self._begin.stored_fields.get("n") if self.kind == MODEL else None
        return count if type(count) is int else None

    @cached_property
    def method(self) -> str:
        return string(self._begin.method) or "POST"

    @cached_property
    def url(self) -> str | None:
        return string(self._parts.clean(self._begin.url, "url"))

    @cached_property
    def provider(self) -> str | None:
        return string(self._begin.provider)

    @property
    def request(self) -> Request:
        """The rebuilt request."""
        with self._lock:
            if self.kind == TOOL:
                return Request.tool(self.tool or "", self._parts.clean(self._begin.args, "args"))
            body = self._parts.clean(self._begin.body, "body")
            return Request(self.kind, self.method, body, url=self.url, sent=self._sent())

    @cached_property
    def fingerprint(self) -> Fingerprint:
        if self.kind != MODEL:
            return self.request.fingerprint
        with self._lock:
            return self._of_stored()

    def _of_stored(self) -> Fingerprint:
        """Compute the fingerprint without copying the conversation: most of its parts are known already."""
        body = self._begin.stored_body
        key = conversation_key(body)
        if key is None or self._sent() is not None:
            return self.request.fingerprint

        def restored(element: Any) -> Any:
            return self._parts.clean(self._begin.restore_value(element), key)

        elements = [self._parts.of(element, restored) for element in body[key]]
        rest = self._begin.restore_value({name: value for name, value in body.items() if name != key})
        return of_parts(self.method, self.url, self._parts.clean(rest, "body"), key, elements)

    @cached_property
    def roles(self) -> tuple[str, ...]:
        return self.request.roles

    @property
    def is_stream(self) -> bool:
        return self.fingerprint.is_stream

    @cached_property
    def outcome(self) -> str:
        """How it ended: see ``recorded_answers``."""
        with self._lock:
            return outcome_of(self._call)

    @property
    def ends_by_itself(self) -> bool:
        """False if the agent or its death ended it: a replay returns what had arrived, and nothing more."""
        return self.end != NEVER and self.outcome not in ENDED_BY_AGENT

    @property
    def has_response(self) -> bool:
        """False if nothing had arrived when the agent cancelled it or died: nothing waits for it."""
        return self.ends_by_itself or bool(self.answer.pieces)

    @property
    def answer(self) -> Answer:
        """The recorded answer."""
        with self._lock:
            return answer_of(self._call, self.kind == MODEL and self.is_stream)

    def is_cut_upload_of(self, request: Request) -> bool:
        """True if it equals a request with an upload, but ended before all of its body was sent."""
        if request.sent is None or self.kind == TOOL:
            return False
        recorded = self.request
        cut = recorded.sent
        if cut is None and recorded.body is None and self.outcome in (*ENDED_BY_AGENT, EXCEPTION):
            cut = {}
        elif cut is None or cut.get("cut") is not True:
            return False
        return (
            recorded.without_upload().fingerprint.l1 == request.without_upload().fingerprint.l1
            and is_beginning(cut, request.sent)
        )

    @property
    def request_lossy(self) -> bool:
        """True if its request is recorded only in part, so nothing can equal it."""
        return self.kind != TOOL and _has_mark(self.request.body, 0)

    @property
    def duration(self) -> float:
        """Seconds between begin and end, 0 if not known."""
        return (self._call.duration_ms or 0) / 1000

    @property
    def event(self) -> Event:
        """The event it began with."""
        return self._begin

    @property
    def end_event(self) -> Event | None:
        """The event it ended with, None if it never did."""
        return self._call.end

    def label(self) -> str:
        """Return a short label: ``step 14: tool search``."""
        what = f"tool {self.tool}" if self.kind == TOOL else f"{self.kind} {self.fingerprint.site}"
        return f"step {self._begin.step}: {what}"

    def _sent(self) -> dict[str, Any] | None:
        """The description of a non-JSON body; in the answer's event if the answer came during the upload."""
        sent = self._begin.sent
        if sent is None and self._call.end is not None and self._begin.stored_fields.get("body") is None:
            sent = self._call.end.sent
        return sent if type(sent) is dict else None

    def __repr__(self) -> str:
        return f"<RecordedCall {self.id} {self.kind} [{self.begin}, {self.end}]>"


class Tape:
    """The calls of a recording, in the order they began."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.lock = RLock()
        parts = _Parts(recording.start_fields.get("policy"))
        self._processes = processes_of(recording)
        self.calls: list[RecordedCall] = []
        self.unusable: list[Call] = []
        """Calls without a recorded begin or request: no request can match them."""
        for call in recording.calls():
            begin = call.begin
            if begin is None or begin is call.end or begin.index is None:
                self.unusable.append(call)
            else:
                process = self.process_of(begin.writer)
                self.calls.append(RecordedCall(call, begin, len(self.calls), self.lock, parts, process))
        self._by_id = {call.id: call for call in self.calls}
        self._by_begin = {call.event.index: call for call in self.calls}

    @classmethod
    def load(cls, path: str, run: str | None = None) -> Tape:
        """Open one run of a file."""
        return cls(Recording.load(path, run))

    def process_of(self, writer: str) -> str:
        """Return the writer that stands for a writer's process: a run inside another has one of its own."""
        return self._processes.get(writer, writer)

    def call(self, id_: str) -> RecordedCall | None:
        """Return a call by its id."""
        return self._by_id.get(id_)

    def events_of(self, kind: str) -> list[Event]:
        """Return the events of a kind."""
        with self.lock:
            kinds = enumerate(self.recording.event_types())
            return [self.recording.events[at] for at, each in kinds if each == kind]

    def model_call_of(self, call: RecordedCall) -> RecordedCall | None:
        """Return the model call that led to a tool call, by the rules of the run's index."""
        begin = self.recording.index.request_of(call.event)
        return None if begin is None else self._by_begin.get(begin.index)

    def inside(self, tool: RecordedCall) -> list[RecordedCall]:
        """Return the calls made inside a tool: they are not repeated when its recorded result is returned.

        A model call names its tool; other HTTP calls do not, so all that began and ended meanwhile in the
        same process count as inside.
        """
        found, ids = [], {tool.id}
        for call in self.calls[tool.number + 1 :]:
            if call.begin > tool.end:
                break
            by_link = call.parent in ids or call.within in ids
            if by_link:
                ids.add(call.id)
            if by_link or (call.kind == HTTP and call.process == tool.process and call.end < tool.end):
                found.append(call)
        return found

    def lossy(self) -> list[tuple[RecordedCall, tuple[str, ...]]]:
        """Return the calls with incomplete answers and the reasons; this reads all answers."""
        answers = ((call, call.answer.lossy) for call in self.calls)
        return [(call, reasons) for call, reasons in answers if reasons]

    def __repr__(self) -> str:
        return f"<Tape of {len(self.calls)} calls of {self.recording.name}>"


def processes_of(recording: Recording) -> dict[str, str]:
    """Return, for each writer of a run inside the run, the writer that stands for its process."""
    if len(recording.writers) < 2:
        return {}
    found: dict[str, str] = {}
    by_pid: dict[int, str] = {}
    for at, kind in enumerate(recording.event_types(system=True)):
        if kind in (schema.RUN_START, schema.PROC_START):
            event = recording.lines[at]
            pid = event.stored_fields.get("pid")
            if type(pid) is not int:
                continue
            if kind == schema.RUN_START and event.run_id != recording.run_id:
                found[event.writer] = by_pid.setdefault(pid, event.writer)
            else:
                by_pid[pid] = event.writer
    return found


def _has_mark(value: Any, depth: int) -> bool:
    if type(value) is dict:
        return any(is_mark(key) for key in value) or any(
            _has_mark(item, depth + 1) for item in value.values()
        )
    return type(value) is list and depth < 200 and any(_has_mark(item, depth + 1) for item in value)
