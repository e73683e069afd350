"""Going once through all lines of a large recording: their kinds, their sums, the events of its calls.

Only what links and sums need is parsed, found by the spelling of our lines (see ``lines``); any other line
is parsed whole.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from sys import intern
from typing import TYPE_CHECKING, Any

from .. import lines, schema
from ..totals import Totals
from ..tracefile import dialects, raw_lines
from ..tracefile.dialects import OURS, Envelope
from ..tracefile.event import Event
from ..tracefile.event_source import PLACE_BITS
from ..tracefile.records import parse

if TYPE_CHECKING:
    from .run_lines import RunLines

_OFFSET = (1 << PLACE_BITS) - 1
_BLOCK = 1 << 20
_decode = json.JSONDecoder().raw_decode

_LARGEST = {
    schema.MODEL_REQUEST: lines.field_start("body"),
    schema.MODEL_RESPONSE: lines.field_start("body"),
    schema.TOOL_CALLED: lines.field_start("args"),
    schema.TOOL_RESULT: lines.field_start("result"),
}
"""The field that the recorder writes last in such a line, but for its sums."""
_SUMS, _FIELD = lines.field_start("tot"), lines.field_start("")[:3]

_WHOLE = frozenset((schema.LLM_CALL, schema.TOOL_CALL, schema.OLD_TOOL_RESULT, schema.ERROR))
_ERROR = (b'"err', b"\\u006", b"\\u007")
"""Without these no key of a line is ``error`` or ``err``, however it is spelled."""
_FINISHED = (b'"output"', b'"error"', b'"duration_ms"', b"\\u00")

Seen = tuple[int, "re.Match[bytes] | None", bytes]
"""An event's position, its head (ts, step, kind) if it is as the recorder writes it, and its line."""


def each_line(recording: RunLines) -> Iterator[Seen]:
    """Yield every line of a recording in order, read in blocks."""
    run, writer = recording.run_id or "", recording.writers[0]
    head = lines.heads(rb'([^"\\]*)', run, writer)
    block, at, number = b"", 0, -1
    for position, place in enumerate(recording.execution.places):
        begin = (place & _OFFSET) - at
        if place >> PLACE_BITS != number:
            number, block = place >> PLACE_BITS, b""
        end = block.find(b"\n", begin) if 0 <= begin < len(block) else -1
        if end < 0:
            at, begin = place & _OFFSET, 0
            block = recording.shelf.sources[number].block(at, _BLOCK)
            end = block.find(b"\n")
        line = block[begin:end] if end >= 0 else block
        yield position, head.match(line) if len(line) <= raw_lines.MAX_LINE else None, line


def light(line: bytes, kind: str, at: int) -> dict[str, Any]:
    """Return the fields after ``at``, where the envelope ends; those that neither link nor count may miss."""
    largest = _LARGEST.get(kind)
    if largest is not None:
        cut = line.find(largest, at)
        more = line.find(_FIELD, cut + len(largest))
        if cut > 0 and (more < 0 or (line.startswith(_SUMS, more) and line.find(_FIELD, more + 1) < 0)):
            fields: dict[str, Any] = _decode(f"{{{line[at + 2 : cut].decode()}}}")[0]
            if kind != schema.MODEL_RESPONSE or "usage" in fields:
                return fields  # else the tokens may stand in the body
    elif kind not in _WHOLE and not any(needle in line for needle in _ERROR):
        return {}
    return parse(line)


def event_types(recording: RunLines) -> list[str]:
    """Return the normalised type of every line."""
    known: dict[bytes, str] = {}
    found = []
    for position, head, line in each_line(recording):
        if head is None:
            found.append(intern(recording.event_at(position).event_type))
            continue
        kind = known.get(head[3])
        if kind is None:
            kind = schema.event_type(dialects.event_type(head[3].decode()), {})
            if head[3] != schema.TOOL_CALL.encode():
                known[head[3]] = kind = intern(kind)
            elif any(needle in line for needle in _FINISHED):
                kind = intern(recording.event_at(position).event_type)
        found.append(kind)
    return found


def totals(recording: RunLines) -> Totals:
    """Return the exact sums over all lines."""
    sums = Totals()
    for position, head, line in each_line(recording):
        fields = _light_fields(head, line)
        if head is not None and fields is not None:
            sums.add(dialects.event_type(head[3].decode()), fields)
        else:
            event = recording.event_at(position)
            sums.add(dialects.event_type(event.kind), event.stored_fields)
    return sums


def events_of_calls(recording: RunLines) -> Iterator[tuple[Event, dict[str, Any]]]:
    """Yield the events, each with those of its fields that tell which call it is of."""
    run, writer, shelf = recording.run_id, recording.writers[0], recording.shelf
    places, book = recording.execution.places, set(recording.execution.book)
    number = -1
    for position, head, line in each_line(recording):
        if position in book:
            continue
        number += 1
        fields = _light_fields(head, line)
        if head is not None and fields is not None:
            kind = intern(head[3].decode())
            envelope = Envelope(float(head[1]), run, writer, int(head[2]), kind, OURS)
            yield Event(envelope, None, places[position], shelf, number), fields
        else:
            event = recording.event_at(position)
            yield event, event.stored_fields


def _light_fields(head: re.Match[bytes] | None, line: bytes) -> dict[str, Any] | None:
    """Return what is needed of a line's fields; None if the event has to be asked itself."""
    try:
        return light(line, head[3].decode(), head.end()) if head is not None else None
    except (ValueError, RecursionError):  # damaged
        return None


@contextmanager
def nothing_to_collect() -> Iterator[None]:
    """While very many objects are made that all stay, looking for garbage takes a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
