"""Whatever bytes are changed, reading goes on and what was not touched is read."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reenact import Recording, read_events
from reenact.errors import NewerSchema, NotATrace
from reenact.recording.listing import head_and_tail
from reenact.tracefile.repair import repair
from support.examples import up_to
from support.written import Pen, worked_example

with tempfile.TemporaryDirectory() as folder:
    WHOLE = worked_example(Path(folder)).read_bytes()
LINES = WHOLE.splitlines(keepends=True)

ROOMY = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}

small = st.integers(0, len(WHOLE) - 1)
flips = st.tuples(st.just("flip"), small, st.binary(min_size=1, max_size=8))
cuts = st.tuples(st.just("cut"), small, st.integers(1, 400))
inserts = st.tuples(
    st.just("insert"),
    small,
    st.one_of(
        st.binary(max_size=40),
        st.sampled_from([b"\n", b"\0" * 64, b'{"ts": ', b"\xef\xbb\xbf", b"\r\n", b"}", b'"']),
    ),
)
tears = st.tuples(st.just("tear"), small, st.just(0))
damages = st.lists(st.one_of(flips, cuts, inserts, tears), min_size=1, max_size=4)


def damaged(data: bytes, how: list) -> bytes:
    for what, at, arg in how:
        if what == "flip":
            data = data[:at] + arg + data[at + len(arg) :]
        elif what == "cut":
            data = data[:at] + data[at + arg :]
        elif what == "insert":
            data = data[:at] + arg + data[at:]
        else:
            data = data[:at]
    return data


def is_object(line: bytes) -> bool:
    """True if the line reads as JSON; a cut that happens to leave one cannot be told from a short line."""
    try:
        return type(json.loads(line)) is dict
    except ValueError:
        return False


@given(damages)
@settings(up_to(300), **ROOMY)
def test_byte_damage_never_raises_and_never_loses_an_undamaged_line(tmp_path_factory, how):
    path = tmp_path_factory.mktemp("d") / "trip.jsonl"
    data = damaged(WHOLE, how)
    path.write_bytes(data)
    found = []
    try:
        events = list(read_events(path, on_finding=found.append))
        for event in events:
            assert event.payload is not None
            assert event.summary().isprintable()
            _ = event.content, event.error, event.args, event.result, event.event_type
        run = Recording.load(path)
        run.calls(), run.turns(), run.status, run.totals
    except NewerSchema:
        assert b'"v": "1.0"' not in data
        return
    except NotATrace:
        events = []
    row, *_ = head_and_tail(str(path))
    whole = set(data.split(b"\n")[:-1])
    kept = {event.step for event in events}
    for number, line in enumerate(LINES, start=1):
        if line[:-1] in whole:
            assert number in kept
    if not all(is_object(line) for line in data.split(b"\n") if line.strip()):
        assert found or not events


@given(st.binary(max_size=300))
@settings(up_to(300), **ROOMY)
def test_any_bytes_at_all_are_read_or_refused(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("d") / "t.jsonl"
    path.write_bytes(data)
    try:
        list(read_events(path))
    except (NotATrace, NewerSchema):
        pass
    head_and_tail(str(path))


@given(damages)
@settings(up_to(60), **ROOMY)
def test_a_repaired_copy_reads_as_the_damaged_file_did(tmp_path_factory, how):
    folder = tmp_path_factory.mktemp("d")
    path = folder / "trip.jsonl"
    path.write_bytes(damaged(WHOLE, how))
    try:
        before = [event.stored for event in read_events(path)]
    except (NotATrace, NewerSchema):
        return
    repair(path, folder / "out.jsonl")
    assert [event.stored for event in read_events(folder / "out.jsonl")] == before


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "call",
                "base",
                "keep",
                "n",
                "chain",
                "body",
                "error",
                "tot",
                "usage",
                "attempt",
                "lane",
                "tool",
                "args",
                "result",
                "v",
                "parent_w",
                "status",
                "pid",
                "name",
                "meta",
            ]
        ),
        json_values,
    ),
    st.sampled_from(
        [
            "model.request",
            "model.response",
            "tool.called",
            "tool.result",
            "tool_call",
            "tool_result",
            "llm_call",
            "error",
            "final",
            "run.start",
            "run.end",
            "proc.start",
            "note",
        ]
    ),
)
@settings(up_to(300), **ROOMY)
def test_fields_of_any_type_are_read(tmp_path_factory, fields, kind):
    path = tmp_path_factory.mktemp("d") / "t.jsonl"
    pen = Pen()
    fields = {key: value for key, value in fields.items() if key != "v" or type(value) is not str}
    path.write_bytes(
        pen("run.start", v="1.0")
        + pen(kind, **fields)
        + pen("model.request", call="a", base="b", keep={"messages": 1}, body=fields)
        + pen("note")
    )
    for event in read_events(path):
        _ = (
            event.payload,
            event.summary(),
            event.error,
            event.content,
            event.tool_name,
            event.args,
            event.result,
        )
    run = Recording.load(path)
    run.calls(), run.turns(), run.status, run.name, run.meta, run.totals, run.error
    for event in run.events:
        run.context_at(event)
    head_and_tail(str(path))
