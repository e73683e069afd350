"""What is told of a large file by looking at it lightly is what parsing all of it tells."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import Recording
from reenact.errors import ReenactError
from reenact.tracefile import columns, light_lines
from reenact.tracefile.records import parse
from support.written import Pen

CORPUS = Path(__file__).parents[2] / "corpus"
KINDS = (
    "model.request", "model.response", "tool.called", "tool.result", "tool_call", "tool_result", "llm_call",
    "error", "note", "final", "proc.note",
)  # fmt: skip
NEEDED = ("call", "parent", "lane", "attempt", "tool", "error", "err", "duration_ms", "usage")
SPELLINGS = (
    {"separators": (",", ":")},
    {"separators": (", ", ": ")},
    {"separators": (", ", ": "), "ensure_ascii": False},
)


def facts(recording: Recording):
    def fields(event):
        return None if event is None else (event.index, event.step, event.kind, event.payload)

    return {
        "types": recording.event_types(),
        "all types": recording.event_types(system=True),
        "totals": repr(recording.totals),
        "calls": [
            (c.kind, c.id, c.parent, c.lane, c.attempt, c.tool, c.error, c.duration_ms, fields(c.begin), fields(c.end))
            for c in recording.calls()
        ],
        "turns": [(t.number, len(t.attempts), len(t.tools), t.error) for t in recording.turns()],
        "ends": (fields(recording.start), fields(recording.end), recording.status, recording.name),
        "index": [event.index for event in recording.lines],
    }  # fmt: skip


def readable():
    """The files of the corpus that are traces, without unreadable lines: of a large file those are events
    until they are asked for."""
    for path in sorted(CORPUS.rglob("*.jsonl")):
        try:
            findings = Recording.load(path).findings
        except ReenactError:
            continue
        if not any(finding.code == "unreadable" for finding in findings):
            yield path


@pytest.mark.parametrize("path", list(readable()), ids=lambda path: path.name)
def test_every_file_of_the_corpus_gives_the_same(path, monkeypatch):
    parsed = Recording.load(path)
    monkeypatch.setattr(columns, "LARGE", 1)
    assert facts(Recording.load(path)) == facts(parsed)


def lines(seed, count):
    """Lines of one writer with every kind, and fields at any place with any value."""
    rng, pen = random.Random(seed), Pen()
    values = (
        None,
        1,
        "x",
        "",
        3.5,
        True,
        {"message": "m", "type": "T"},
        ["error"],
        'a, "error": 1',
        "\\u0065",
    )
    yield pen("run.start", v="1.0", name="n")
    for number in range(count):
        names = [*NEEDED, "name", "output", "result", "args", "body", "text", "tot"]
        rng.shuffle(names)
        fields = {name: rng.choice(values) for name in names[: rng.randrange(8)]}
        if rng.random() < 0.7:
            fields["call"] = f"c{rng.randrange(number // 4 + 1)}"
        yield pen(rng.choice(KINDS), **fields)


@pytest.mark.parametrize("seed", range(25))
def test_any_lines_tell_the_same(tmp_path, monkeypatch, seed):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines(seed, 60)))
    parsed = facts(Recording.load(path))
    monkeypatch.setattr(columns, "LARGE", 1)
    quick = Recording.load(path)
    assert quick.execution.is_gapless
    assert facts(quick) == parsed


@pytest.mark.parametrize("spelling", SPELLINGS, ids=str)
def test_lines_spelled_by_another_tool_tell_the_same(tmp_path, monkeypatch, spelling):
    path = tmp_path / "t.jsonl"
    text = "".join(json.dumps(json.loads(line), **spelling) + "\n" for line in lines(3, 80))
    path.write_text(text, "utf-8")
    parsed = facts(Recording.load(path))
    monkeypatch.setattr(columns, "LARGE", 1)
    assert facts(Recording.load(path)) == parsed


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(['", "error": "', ', "', "}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NEEDED, "x"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from([*NEEDED, "args", "body", "result", "tot", "e"]), json_values),
)
def test_light_fields_are_those_of_the_line(kind, fields):
    line = Pen()(kind, **fields).rstrip(b"\n")
    head = line.index(b'"kind": "') + len(kind) + 10
    whole, got = parse(line), light_lines.links_and_sums(line, kind, head)
    wanted = NEEDED if kind in light_lines.LARGEST or kind in light_lines.WHOLE else ("error", "err")
    assert {name: got[name] for name in wanted if name in got} == {
        name: whole[name] for name in wanted if name in whole
    }


def test_a_line_that_cannot_be_parsed_is_read_on_its_own(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "LARGE", 1)
    pen = Pen()
    start = pen("run.start", v="1.0")
    deep = b"[" * 100_000 + b"]" * 100_000
    begin, end = (
        pen("tool.called", call="a", tool="x", args={}),
        pen("tool.result", call="a", tool="x", result=1),
    )
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        start + begin + end.replace(b', "tool": "x"', b', "tool": "x", "u": ' + deep)
        + pen("note", x=1)
    )  # fmt: skip
    run = Recording.load(path)
    assert run.execution.is_gapless
    assert [call.is_open for call in run.calls()] == [True, False]  # which call it ended is not known
    assert run.totals.tool_calls == 1
    assert "unreadable" in {finding.code for finding in run.findings}


def test_where_model_calls_stand_is_known_once_they_are_joined(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "LARGE", 1)
    pen, path = Pen(), tmp_path / "t.jsonl"
    request, response = {"call": "a", "body": {"messages": []}}, {"call": "a", "body": {}}
    events = {"run.start": {"v": "1.0"}, "model.request": request, "model.response": response}
    path.write_bytes(b"".join(pen(kind, **fields) for kind, fields in events.items()))
    run = Recording.load(path)
    assert run.execution.is_gapless
    run.calls()
    path.rename(tmp_path / "elsewhere")  # nobody looks for them in the file again
    assert run.shelf.request_place("a") == run.execution.places[1]
