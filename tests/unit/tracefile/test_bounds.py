"""What a line may hold is bounded where it is read: times, steps, nesting, and the length of the line itself."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from reenact import Debugger, Recording, lines, read_events
from reenact.recording.listing import head_and_tail
from reenact.stats.many_runs import runs
from reenact.tracefile import records
from reenact.tracefile.dialects import recognise
from support.examples import long
from support.hostile import COMMANDS, command, rich_run
from support.written import Pen

OURS = {"ts": 1.0, "run": "r", "w": "00000001", "step": 1, "kind": "note"}
FAMILY = {"ts": 1.0, "run_id": "r", "step": 1, "kind": "note"}


@pytest.mark.parametrize("shape", [OURS, {**OURS, "w": None}, FAMILY])
@pytest.mark.parametrize("ts", [10**400, -(10**400), 1e308, float("nan"), float("inf"), 2**63 * 10**9])
def test_a_time_that_no_clock_shows_is_none(shape, ts):
    assert recognise({**shape, "ts": ts}).ts is None


@pytest.mark.parametrize("shape", [OURS, {**OURS, "w": None}, FAMILY])
@pytest.mark.parametrize("step", [10**400, -1, 1 << 63])
def test_a_step_that_no_writer_reaches_is_not_passed_on(shape, step):
    assert recognise({**shape, "step": step}).step in (0, None)


@pytest.mark.parametrize(
    ("field", "value"), [("ts", "1e400"), ("ts", "nan"), ("ts", "9" * 30), ("step", "9" * 30), ("step", "-1")]
)
def test_the_light_look_at_an_envelope_refuses_what_the_whole_one_does(field, value):
    line = lines.whole(1.0, "r", "00000001", 1, "note", {}).rstrip()
    assert lines.peek(line.encode()) is not None
    wrong = line.replace(
        {"ts": "1.000000", "step": '"step": 1'}[field], {"ts": value, "step": f'"step": {value}'}[field]
    )
    assert lines.peek(wrong.encode()) is None


def test_times_of_four_hundred_digits_in_two_processes_do_not_stop_the_merge(tmp_path):
    head, child = Pen(w="00000001"), Pen(w="00000002")
    files = {
        "t": head("run.start", v="1.0") + head("note") + head("run.end", status="ok"),
        "t.p00000002": child("proc.start", v="1.0", parent_w="00000001") + child("note") + child("proc.end"),
    }
    for name, data in files.items():
        wrong = data.replace(b'"ts": 1763200000.00', b'"ts": ' + b"9" * 400 + b".")
        (tmp_path / f"{name}.jsonl").write_bytes(wrong)
    path = tmp_path / "t.jsonl"
    assert len(list(read_events(path))) == 6
    debugger = Debugger.load(path)
    for event in debugger.all(system=True):
        debugger.state_at(event)
    assert head_and_tail(str(path))[0].started is None
    assert [row.started for row in runs(path)] == [None]


def nested(depth: int) -> object:
    value: object = 1
    for number in range(depth):
        value = [value] if number % 2 else {"content": value}
    return value


def depth_of(value: object) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max(map(depth_of, inner), default=0) if isinstance(value, dict | list) else 0


@pytest.mark.parametrize("depth", [lines.MAX_DEPTH, lines.MAX_NESTING - 1])
def test_what_a_recorder_nests_is_read_as_it_is(depth):
    fields = {**OURS, "x": nested(depth)}
    assert records.parse(json.dumps(fields).encode()) == fields == lines.parse(json.dumps(fields).encode())


@pytest.mark.parametrize("parse", [records.parse, lines.parse])
@pytest.mark.parametrize("depth", [lines.MAX_NESTING, 480, 900])
def test_what_is_nested_more_deeply_is_cut_and_the_rest_kept(parse, depth):
    fields = {**OURS, "x": [nested(depth), "beside it"], "y": nested(5), "z": [[]] * 200}
    found = parse(json.dumps(fields).encode())
    assert depth_of(found) == lines.MAX_NESTING + 1  # with the mark that stands for the rest
    assert found["x"][1] == "beside it" and found["y"] == fields["y"] and found["z"] == fields["z"]


def test_changes_of_a_reference_do_not_nest_a_request_more_deeply(tmp_path):
    pen, deep = Pen(), nested(100)
    way = "/0/content" * 49
    calls = [f"{number:016x}" for number in range(9)]
    rows = [
        pen("run.start", v="1.0"),
        pen("model.request", call=calls[0], body={"messages": [{"content": deep}]}),
    ]
    for before, call in zip(calls, calls[1:], strict=False):
        same = {"$same": [before, 0], "set": {f"/content/content{way}": deep}}
        rows.append(pen("model.request", call=call, body={"messages": [same]}))
    (tmp_path / "t.jsonl").write_bytes(b"".join(rows))
    recording = Recording.load(tmp_path / "t.jsonl")
    assert max(depth_of(event.stored_body) for event in recording.events) <= lines.MAX_NESTING + 4
    assert command("show", tmp_path / "t.jsonl", "--all").code == 0


@pytest.mark.parametrize("depth", [long(480), 900])
def test_every_command_shows_a_run_with_content_nested_hundreds_deep(tmp_path, monkeypatch, depth):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = rich_run(tmp_path / "t.jsonl")
    deep = json.dumps(nested(depth)).encode()
    data = path.read_bytes()
    for text in (b'"found "', b'"Plan "', b'"I look "', b'"note "', b'"no "', b'{"q":"h"}'):
        assert text in data
        data = data.replace(text, deep)
    path.write_bytes(data)
    for words in COMMANDS:
        done = command(*(path if word == "{path}" else word for word in words))
        assert "fault" not in done.err and done.code in (0, 1), (words, done.err)


@pytest.mark.long
def test_a_line_beyond_every_bound_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(records, "MAX_LINE", 256 << 10)
    monkeypatch.setattr(records, "MAX_WHOLE", 512 << 10)
    pen, size = Pen(), 48 << 20
    rows = [
        pen("run.start", v="1.0"),
        pen("tool.result", call="b" * 16, tool="big", result="@@"),
        pen("note"),
        pen("run.end"),
    ]
    path, copy = tmp_path / "t.jsonl", tmp_path / "copy.jsonl"
    with path.open("wb") as file:  # sparse: NULs inside of a text take no room on the disk
        begin, end = rows[1].split(b"@@")
        file.write(rows[0] + begin)
        file.seek(size, 1)
        file.write(end + rows[2] + rows[3])
    with copy.open("wb") as out:
        monkeypatch.setattr("reenact.cli.output.Output.raw", lambda self: out.write)
        tracemalloc.start()
        try:
            for words in COMMANDS:
                tracemalloc.reset_peak()
                done = command(*(path if word == "{path}" else word for word in words))
                assert "fault" not in done.err, done.err
                assert tracemalloc.get_traced_memory()[1] < size * 2 // 3, words
            out.truncate(0), out.seek(0)
            assert command("cat", path, "--kind", "tool.result").code == 0
        finally:
            tracemalloc.stop()
    assert copy.stat().st_size == len(begin) + size + len(end)
    recording = Recording.load(path)
    assert recording.events[0].payload["tool"] == "big" and "result" not in recording.events[0].payload
    assert "long" in [finding.code for finding in recording.findings]


def test_numbers_of_thousands_of_digits_at_the_prompt_are_an_error(tmp_path):
    pen = Pen()
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        pen("run.start", v="1.0") + pen("note", x=0).replace(b'"x": 0', b'"x": ' + b"7" * 3990) + pen("note")
    )
    for words in ("pp x*x", "p [x*x]", "p x+x*x", "p x*x*x*x", "p -x*x"):
        done = command("debug", path, "--at", "first", "-c", words)
        assert "fault" not in done.err and "more than 4,000 digits" in done.err, words
    for words in ("p x", "p x % 10", "p x // x", "pp -x", "p x - x", "p x * 0.5"):
        assert "fault" not in command("debug", path, "--at", "first", "-c", words).err
    assert command("debug", path, "-c", "b x*x > 5; c").err.count("digits") <= 2
