"""A run as a test fixture: only what a replay needs, redacted once more, nothing specific to this machine.

The same run gives the same bytes, so generating it again changes nothing in a repository.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator
from hashlib import blake2b, sha256
from itertools import count
from typing import Any

from .. import lines, schema
from ..capture.redact.redactor import Redactor
from ..playback.matching.tape import processes_of
from ..playback.replay.recorded_events import without_folders
from ..recording.calls import MODEL
from ..recording.recording import Recording
from ..tracefile.events.event import Event
from ..tracefile.events.rebuilt_requests import DELTA_FIELDS, PROOF_FIELDS
from ..tracefile.plain_files import create_private
from ..wire.equality_rules import PLACEHOLDER
from ..wire.reading import conversation_key, model_of

_KEPT = frozenset({
    schema.RUN_START, schema.RUN_END, schema.PROC_START, schema.PROC_END, schema.AMBIENT,
    schema.MODEL_REQUEST, schema.MODEL_RESPONSE, schema.TOOL_CALLED, schema.TOOL_RESULT,
    schema.HTTP_REQUEST, schema.HTTP_RESPONSE, schema.MCP_ANSWER, schema.SOCKET_MESSAGE,
})  # fmt: skip
_OF_HEADS = {
    schema.RUN_START: ("v", "name", "entry", "input", "command", "tools", "python", "policy"),
    schema.PROC_START: ("v", "parent_w", "command"),
    schema.RUN_END: ("status", "exit", "error", "http_status", "tot"),
    schema.PROC_END: ("status", "exit", "error", "tot"),
}
_OF_RUNS = (schema.RUN_START, schema.RUN_END)
_IN_LANES = (schema.MODEL_REQUEST, schema.TOOL_CALLED)
_AS_STORED = (*DELTA_FIELDS, *PROOF_FIELDS)

Line = tuple[Event, dict[str, Any]]


class Fixture:
    """The lines of one run and the runs inside it, as one run; ``secrets`` counts the secrets still found."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._processes = processes_of(recording)
        self._redactor = Redactor()
        self._redactor.numbers.update(_next_numbers(recording))  # recorded numbers keep their meaning
        self._blobs: dict[str, bytes] = {}
        self._events = list(self._cleaned(lambda event: event.stored))
        self.secrets = self._redactor.total
        if self.secrets:  # the digest of a changed line no longer matches references to it
            self._events = list(self._cleaned(_in_full))

    def write(self, path: str) -> None:
        """Write the file and its blobs."""
        folder = os.path.splitext(path)[0] + ".blobs"
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        for name, data in self._blobs.items():
            os.makedirs(folder, mode=0o700, exist_ok=True)
            with create_private(os.path.join(folder, name)) as file:
                file.write(data)
        with create_private(path) as file:
            file.writelines(line.encode("ascii") for line in self._lines())

    def _lines(self) -> Iterator[str]:
        steps: dict[str, int] = {}
        run = self._recording.run_id or ""
        for event, fields in self._events:
            writer = self._processes.get(event.writer, event.writer)
            steps[writer] = step = steps.get(writer, 0) + 1
            if event.kind in (schema.RUN_END, schema.PROC_END):
                fields = {**fields, "events": step, "dropped": 0}
                if self._processes:
                    fields.pop("tot", None)  # the sums of one writer alone
            yield lines.whole(event.timestamp or 0.0, run, writer, step, event.kind, fields)

    def _cleaned(self, fields_of: Callable[[Event], dict[str, Any]]) -> Iterator[Line]:
        last_ends = {event.writer: event for event in self._recording.lines if event.kind == schema.RUN_END}
        for event in self._recording.lines:
            is_repeated = event.kind == schema.RUN_END and event != last_ends[event.writer]
            is_inner = event.kind in _OF_RUNS and event.run_id != self._recording.run_id
            if event.kind not in _KEPT or not event.is_ours or is_repeated or is_inner:
                continue
            fields = {name: value for name, value in fields_of(event).items() if name not in schema.ENVELOPE}
            if event.writer in self._processes and event.kind in _IN_LANES:
                fields["lane"] = f"{fields.get('lane', 'main')}.{event.writer}"
            kept = _OF_HEADS.get(event.kind)
            if kept is not None:
                fields = self._without_places({name: fields[name] for name in kept if name in fields}, event)
            if event.kind == schema.MCP_ANSWER and type(fields.get("server")) is str:
                fields = {**fields, "server": without_folders(fields["server"])}
            fields = {
                name: value if name in ("tot", *_AS_STORED) else self._clean(name, value, event)
                for name, value in fields.items()
            }
            if fields_of is _in_full and event.kind == schema.MODEL_REQUEST:
                fields = {**fields, **_proved(fields.get("body"))}
            yield event, fields

    def _without_places(self, fields: dict[str, Any], event: Event) -> dict[str, Any]:
        if "command" in fields:
            fields["command"] = portable(fields["command"])
        if event.kind == schema.RUN_START:
            fields["fixture"] = provenance(self._recording)
        return fields

    def _clean(self, name: str, value: Any, event: Event) -> Any:
        if name == "raw":
            return self._stream(value, event)
        return self._with_blobs(self._redactor.clean(value, name), event)

    def _with_blobs(self, value: Any, event: Event) -> Any:
        """Return a stored value; keep redacted copies of its long texts."""
        if type(value) is list:
            return [self._with_blobs(item, event) for item in value]
        if type(value) is not dict:
            return value
        if type(value.get("$blob")) is not str:
            return {key: self._with_blobs(item, event) for key, item in value.items()}
        text = event.stored_in.blobs.text(value["$blob"])
        if text is None:
            return value
        clean = text if value.get("base64") else self._redactor.clean(text)
        return {**value, "$blob": self._keep(clean.encode("utf-8", "surrogatepass"))}

    def _stream(self, raw: Any, event: Event) -> Any:
        """Return the reference to a recorded stream; without its pieces if it contains a secret."""
        stream = event.stored_in.blobs.stream(raw.get("$blob")) if type(raw) is dict else None
        if stream is None:  # missing or damaged: the check of the fixture reports it
            return raw
        packed, data = stream[0], stream[1].partition(b"\n")[2]
        clean = self._redactor.clean(data)
        if clean is data:
            return {**raw, "$blob": self._keep(packed)}
        packed = zlib.compress(b'{"chunks":[]}\n' + clean, 1)
        return {**raw, "$blob": self._keep(packed), "bytes": len(packed), "form": "rebuilt"}

    def _keep(self, data: bytes) -> str:
        name = sha256(data).hexdigest()
        self._blobs[name] = data
        return f"sha256:{name}"


def provenance(recording: Recording) -> dict[str, Any]:
    """Return the origin of a fixture."""
    calls = [call for call in recording.calls() if call.kind == MODEL and call.begin is not None]
    requested = {model_of(call.begin.stored_body, call.begin.url) for call in calls if call.begin is not None}
    served = {call.end.model for call in calls if call.end is not None}
    heads = [call.begin.headers for call in calls if call.begin is not None]
    agents = [headers.get("user-agent") for headers in heads if type(headers) is dict]
    fields: dict[str, Any] = {
        "of": recording.run_id,
        "recorded": _day(recording.started or 0),
        "asked": sorted(name for name in requested if type(name) is str),
        "served": sorted(name for name in served if type(name) is str),
        "sdks": sorted({name for name in agents if type(name) is str}),
        "python": recording.start.python if recording.start is not None else None,
    }
    return {name: value for name, value in fields.items() if value}


def _day(when: float) -> str:
    """Return a date; empty for an impossible time."""
    return time.strftime("%Y-%m-%d", time.gmtime(when)) if abs(when) < 1e11 else ""


def portable(command: Any) -> list[str]:
    """Return a command without folders of this machine: the script first, no interpreter."""
    words = [word for word in command if type(word) is str] if type(command) is list else []
    if words and os.path.basename(words[0]).startswith(("python", "pypy")):
        words = words[1:]
    return [
        os.path.basename(word) if os.path.isabs(word) and at == 0 else word for at, word in enumerate(words)
    ]


def _next_numbers(recording: Recording) -> dict[str, count[int]]:
    """Return the first free number of each kind of secret."""
    found: dict[str, int] = {}
    for event in recording.lines:
        for kind, number in PLACEHOLDER.findall(lines.dumps(event.stored)):
            found[kind] = max(found.get(kind, 0), int(number[:9]))
    return {kind: count(number + 1) for kind, number in found.items()}


def _in_full(event: Event) -> dict[str, Any]:
    """Return the fields of an event, a request with its whole conversation."""
    fields = event.stored
    if event.kind == schema.MODEL_REQUEST:
        fields = {name: value for name, value in fields.items() if name not in _AS_STORED}
        fields["body"] = event.stored_body
    return fields


def _proved(body: Any) -> dict[str, Any]:
    key = conversation_key(body)
    if key is None:
        return {}
    chain = bytes(8)
    for element in body[key]:
        chain = blake2b(chain + lines.dumps(element).encode("ascii"), digest_size=8).digest()
    return {"n": len(body[key]), "chain": chain.hex()}
