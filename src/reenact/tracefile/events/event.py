"""Event: a read-only view of one line, the same whatever dialect it was written in.

Holds the envelope and a place; fields are parsed, bodies rebuilt and blobs fetched when needed.
A missing attribute is None, so that a filter works on events that lack the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ... import lines, schema
from ...shown import ShownAsHtml
from .. import dialects
from ..dialects import Envelope
from .event_source import Shelf
from .rebuilt_requests import DELTA_FIELDS
from .stored_values import fresh, restore

_RAW = "raw"
"""A reference to the bytes of a stream, which are not text to put in its place."""


Index = int | None | Callable[[], int | None]
"""Of an event; found out when needed, where that takes a look through the file."""


class ErrorText(str):
    """An error's message, with its type and frames where they were recorded."""

    __slots__ = ("frames", "type")

    type: str | None
    frames: list[str]

    def __new__(cls, message: str, kind: str | None = None, frames: list[str] | None = None) -> ErrorText:
        self = super().__new__(cls, message)
        self.type = kind
        self.frames = frames or []
        return self

    @property
    def message(self) -> str:
        return str(self)


class Event(ShownAsHtml):
    """One event of a run."""

    __slots__ = ("_envelope", "_fields", "_index", "_place", "_shelf")

    derived_number: int | None = None
    """Of an entry that only another event shows (``recording.derived_events``)."""

    _envelope: Envelope
    _fields: dict[str, Any] | None
    """All fields, where whoever made the event had them; else the shelf parses its line when needed."""
    _index: Index
    _place: int
    _shelf: Shelf

    def __init__(
        self, envelope: Envelope, fields: dict[str, Any] | None, place: int, shelf: Shelf, index: Index
    ) -> None:
        _set_envelope(self, envelope)
        _set_fields(self, fields)
        _set_index(self, index)
        _set_place(self, place)
        _set_shelf(self, shelf)

    @property
    def index(self) -> int | None:
        """0-based among the events that are not bookkeeping; None for those."""
        if callable(self._index):
            _set_index(self, self._index())
        return self._index  # type: ignore[return-value]

    @property
    def timestamp(self) -> float | None:
        return self._envelope.ts

    @property
    def kind(self) -> str:
        """As written."""
        return self._envelope.kind

    @property
    def event_type(self) -> str:
        """Normalised: ``model.request model.response tool.called tool.result``, else the kind."""
        kind = dialects.event_type(self._envelope.kind)
        return (
            schema.event_type(kind, self.stored_fields)
            if kind == schema.TOOL_CALL
            else schema.event_type(kind, {})
        )

    @property
    def run_id(self) -> str | None:
        return self._envelope.run

    @property
    def step(self) -> int | None:
        """1-based within its writer."""
        return self._envelope.step

    @property
    def writer(self) -> str:
        return self._envelope.w

    @property
    def is_bookkeeping(self) -> bool:
        return schema.is_bookkeeping(self._envelope.kind) and self._envelope.dialect == dialects.OURS

    @property
    def tool_name(self) -> str | None:
        return tool_of(self._envelope.kind, self.stored_fields)

    @property
    def args(self) -> Any:
        return self._first(dialects.ARGS_KEYS)

    @property
    def result(self) -> Any:
        return self._first(dialects.RESULT_KEYS[:3] if self.is_ours else dialects.RESULT_KEYS)

    @property
    def error(self) -> ErrorText | None:
        """None, or the error's text; anything but null is an error, an empty text too."""
        return error_of(self, self.stored_fields)

    @property
    def content(self) -> str | None:
        """The content as text, for every provider's shape."""
        from ...wire import reading

        fields = self.whole_fields
        provider = fields.get("provider")
        provider = provider if type(provider) is str else None
        if type(fields.get("body")) is dict:
            return reading.text(self._fresh_body(), provider)
        for key in ("content", "text"):
            value = fields.get(key)
            if value is not None:
                value = self.restore_value(value)
                if type(value) is str:
                    return value
                is_message = type(value) is dict and "content" in value
                return reading.text(value if is_message else {"role": "assistant", "content": value})
        return None

    @property
    def body(self) -> Any:
        """The provider's request or response, whole; None for other events."""
        return self._fresh_body()

    @property
    def payload(self) -> dict[str, Any]:
        """A fresh plain dict of all fields, requests whole, long texts put back."""
        fields = self.whole_fields
        if not self.is_ours:
            return dict(fresh(fields))
        result, blob = {}, self._shelf.blobs.opener()
        for key, value in fields.items():
            kind = type(value)
            if kind is dict or kind is list:
                value = self._fresh_body() if key == "body" else restore(value, blob)
            if key not in DELTA_FIELDS:
                result[lines.unescape_key(key)] = value
        return result

    @property
    def stored(self) -> dict[str, Any]:
        """A fresh dict of the fields as they stand in the file: deltas, references and all."""
        return dict(fresh(self.whole_fields))

    # How the event is stored, for the code of the reading side. The shelf holds the last few parsed lines,
    # so that an event itself stays small. The dicts are shared: nobody may change them.

    @property
    def stored_fields(self) -> dict[str, Any]:
        """The fields as they stand in the file, shared; of a line of many megabytes only the first ones."""
        if self._fields is not None:
            return self._fields
        parsed = self._shelf.parsed(self._place)
        return parsed.fields if parsed is not None else self._lost()

    @property
    def whole_fields(self) -> dict[str, Any]:
        """The fields as they stand in the file, shared, however long the line is."""
        if not self.is_partial:
            return self.stored_fields
        got = self._shelf.fields(self._place)
        return got[0] if got is not None else self._lost()

    @property
    def is_partial(self) -> bool:
        """True if the line is so long that ``stored_fields`` has only its first fields."""
        if self._fields is not None:
            return False
        parsed = self._shelf.parsed(self._place)
        return parsed is not None and parsed.is_partial

    @property
    def is_parsed(self) -> bool:
        """True if ``stored_fields`` costs nothing."""
        return self._fields is not None or self._shelf.holds(self._place)

    @property
    def stored_body(self) -> Any:
        """The body of a request or response, rebuilt but shared, with references to blobs in it."""
        fields = self.whole_fields
        if self._envelope.kind == schema.MODEL_REQUEST and self.is_ours:
            return self._shelf.history.body(fields)
        return fields.get("body")

    def stored_message(self, written: Any) -> Any:
        """Return a message of this request in stored form: what it stands for if it repeats another one."""
        return self._shelf.history.message(written, self.stored_fields)

    def restore_value(self, value: Any) -> Any:
        """Return a fresh copy of a stored value, with long texts put back."""
        return restore(value, self._shelf.blobs.opener()) if self.is_ours else fresh(value)

    @property
    def stored_head(self) -> Envelope:
        """The fields every line begins with."""
        return self._envelope

    @property
    def stored_in(self) -> Shelf:
        """The files of the run, their blobs and the requests that build on each other."""
        return self._shelf

    @property
    def stored_at(self) -> int:
        """The place of the line in ``stored_in``."""
        return self._place

    @property
    def is_ours(self) -> bool:
        """True if a recorder wrote the line, False for another dialect."""
        return self._envelope.dialect == dialects.OURS

    def summary(self) -> str:
        """Return one short line of plain printable text."""
        from .event_text import summary_line

        return summary_line(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = self.whole_fields.get(name)
        if name == _RAW:
            return fresh(value)
        return self.restore_value(value) if value is not None else None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"events are read-only; {name!r} cannot be set")

    def __repr__(self) -> str:
        number = "-" if self.index is None else self.index
        return f"<Event {number} {self.summary()}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return self._place == other._place and self._path() == other._path() and self.kind == other.kind

    def __hash__(self) -> int:
        return hash((self._place, self.kind))

    def _path(self) -> str:
        return self._shelf.sources[0].path

    def _fresh_body(self) -> Any:
        fields, shelf = self.whole_fields, self._shelf
        if self._envelope.kind == schema.MODEL_REQUEST and self.is_ours:
            return shelf.history.fresh(fields, shelf.blobs.opener())
        return self.restore_value(fields.get("body"))

    def _lost(self) -> dict[str, Any]:
        """The line is gone or damaged by now: say so once, and keep the envelope."""
        message = f"the event at byte {self._place & 0xFFFFFFFFFFFF:,} can no longer be read"
        self._shelf.note("unreadable", message)
        ts, run, w, step, kind, _ = self._envelope
        fields = {"ts": ts, "run": run, "w": w, "step": step, "kind": kind}
        _set_fields(self, fields)
        return fields

    def _first(self, keys: tuple[str, ...]) -> Any:
        fields = self.whole_fields
        for key in keys:
            if key in fields:
                return self.restore_value(fields[key])
        return None


# Events are read-only; these go round their __setattr__, at a third of the cost of object's.
_set_envelope, _set_fields, _set_index = (
    Event.__dict__[name].__set__ for name in ("_envelope", "_fields", "_index")
)
_set_place, _set_shelf = (Event.__dict__[name].__set__ for name in ("_place", "_shelf"))


def tool_of(kind: str, fields: dict[str, Any]) -> str | None:
    """Return the name of the tool in the fields of an event of some kind."""
    keys = dialects.TOOL_KEYS if "tool" in kind else dialects.TOOL_KEYS[:2]
    return next((fields[key] for key in keys if type(fields.get(key)) is str), None)


def error_of(event: Event, fields: dict[str, Any]) -> ErrorText | None:
    """Return the error of an event, from those of its fields that are at hand."""
    for key in dialects.ERROR_KEYS:
        if fields.get(key) is not None:
            return _error_text(event.restore_value(fields[key]))
    if dialects.event_type(event.kind) == schema.ERROR:
        return _error_text(event.restore_value(fields.get("message", fields.get("content", ""))))
    return None


def _error_text(value: Any) -> ErrorText:
    if type(value) is str:
        return ErrorText(value)
    if type(value) is not dict:
        return ErrorText("" if value is None else str(value))
    kind = value.get("type", value.get("name"))
    kind = kind if type(kind) is str else None
    message, frames = value.get("message"), value.get("frames")
    if message is None:
        message = value.get("$repr")  # an exception as a field
    if type(message) is not str:
        message = "" if message is None else str(message)
    frames = [frame for frame in frames if type(frame) is str] if type(frames) is list else []
    return ErrorText(message or kind or "", kind, frames)


# What the first bytes of a line show: call, lane, parent, tool, and whether it can be an error.
#
# Stepping and looking for breakpoints ask this of very many events, of which few are parsed whole. Safe on
# our own lines: only at their top level does a space follow the colon, and quotes in texts are escaped.

_WHOLE = 4096
"""Bytes of a line that are looked at; a shorter one is seen whole."""

_KEYS = ("call", "lane", "parent", "tool", "attempt")
_LINKS = lines.fields_named(*_KEYS, value=rb'(?:("[^"\\]*(?:\\.[^"\\]*)*")|(\d{1,9})[,}])')
_LARGE = lines.fields_named("body", "args", "result", "error", value=b"(?!null)")
"""Where values begin that may be long; the writer puts what links events before them."""

_NO_ERROR = lines.field_start("error") + b"null"
_MAY_BE_ERROR = lines.field_start("err").rstrip(b'": ')
"""Also of ``error`` and ``error_type``."""
_MODEL_BEGINS = frozenset((schema.MODEL_REQUEST, schema.LLM_CALL))
_TOOL_BEGINS = frozenset((schema.TOOL_CALLED, schema.TOOL_CALL))


def links_of(event: Event) -> dict[str, Any]:
    """Return those of ``call lane parent tool attempt`` that the event has."""
    if event.is_ours and not event.is_parsed:
        data = _head(event)
        large = _LARGE.search(data)
        data = data[: large.start()] if large is not None else data
        return {
            found[1].decode(): int(found[3]) if found[2] is None else _text(found[2])
            for found in _LINKS.finditer(data)
        }
    fields = event.stored_fields
    links = {key: fields[key] for key in _KEYS if type(fields.get(key)) in (str, int)}
    if (tool := event.tool_name) is not None:
        links["tool"] = tool
    return links


def _text(quoted: bytes) -> str:
    text = quoted[1:-1].decode("utf-8", "replace")
    if "\\" not in text:
        return text
    try:
        return str(json.loads(quoted))
    except ValueError:
        return text


def text_link(links: dict[str, Any], key: str) -> str | None:
    """Return a link that is a text and not empty."""
    value = links.get(key)
    return value if type(value) is str and value else None


def base_kind(event: Event) -> str:
    """Return the kind with the spellings of other dialects made one, without parsing the line."""
    return dialects.event_type(event.kind)


def is_model_begin(event: Event) -> bool:
    """True for a request and for a model call written as one line."""
    return base_kind(event) in _MODEL_BEGINS


def is_tool_begin(event: Event) -> bool:
    """True where a tool begins, or was called and ended in one line."""
    return base_kind(event) in _TOOL_BEGINS


def is_turn_begin(event: Event) -> bool:
    """True for the event that opens a turn: a model call that is not a retry."""
    return is_model_begin(event) and links_of(event).get("attempt") in (None, 1)


def is_error(event: Event) -> bool:
    """True if the event is an error; most are recognised by their first bytes."""
    if event.is_ours and not event.is_parsed and event.kind != schema.ERROR:
        data = _head(event)
        if _NO_ERROR in data or (len(data) < _WHOLE and _MAY_BE_ERROR not in data):
            return False
    return event.error is not None


def _head(event: Event) -> bytes:
    source, offset = event.stored_in.at(event.stored_at)
    return source.head(offset)
