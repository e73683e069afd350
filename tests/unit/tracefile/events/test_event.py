from __future__ import annotations

import json

import pytest

from reenact import Recording
from reenact.tracefile.events.event import ErrorText
from reenact.tracefile.events.event_text import error_text
from support.written import Pen, store_blob, worked_example


def load(tmp_path, *lines):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    return Recording.load(path)


def test_a_missing_attribute_is_none_and_a_user_field_is_an_attribute(tmp_path):
    pen = Pen()
    event = load(tmp_path, pen("run.start", v="1.0"), pen("note", colour="red", fields={"call": 3})).events[0]
    assert event.colour == "red"
    assert event.fields == {"call": 3}
    assert (event.nothing, event.tool_name, event.args, event.result, event.error, event.content) == (
        None,
    ) * 6
    assert (event.call, event.parent, event.lane) == (None, None, None)
    with pytest.raises(AttributeError):
        _ = event._private
    with pytest.raises(AttributeError):
        event.colour = "blue"


def test_error_is_text_with_type_and_frames(tmp_path):
    run = Recording.load(worked_example(tmp_path))
    error = run.event("7").error
    assert isinstance(error, str)
    assert error == error.message == "overloaded"
    assert (error.type, error.frames) == ("overloaded_error", ["agent.py:41 in plan"])
    assert run.event("5").error is None


@pytest.mark.parametrize(
    ("recorded_error", "text", "kind"),
    [
        ("", "", None),
        (False, "False", None),
        ({}, "", None),
        ("boom", "boom", None),
        ({"type": "T", "message": ""}, "T", "T"),
        ({"message": 7, "frames": "x"}, "7", None),
        ([1], "[1]", None),
    ],
)
def test_anything_but_null_is_an_error(tmp_path, recorded_error, text, kind):
    pen = Pen()
    error = (
        load(
            tmp_path, pen("run.start", v="1.0"), pen("tool.result", call="a", tool="x", error=recorded_error)
        )
        .events[0]
        .error
    )
    assert error is not None
    assert (str(error), error.type) == (text, kind)


def test_content_is_text_for_the_shapes_of_several_providers(tmp_path):
    pen = Pen()
    bodies = [
        {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
        {"choices": [{"message": {"role": "assistant", "content": "hello"}}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}}]},
    ]
    run = load(
        tmp_path,
        pen("run.start", v="1.0"),
        *(pen("model.response", call=str(i), error=None, body=b) for i, b in enumerate(bodies)),
    )
    assert [event.content for event in run.events] == ["hello"] * 3
    assert (
        load(tmp_path, pen("llm_call", content=[{"type": "text", "text": "hello"}])).events[0].content
        == "hello"
    )


def test_a_payload_is_fresh_plain_and_complete(tmp_path):
    pen = Pen()
    blob = store_blob(tmp_path / "t.jsonl", "long\ud800")
    run = load(
        tmp_path, pen("run.start", v="1.0"),
        pen("note", text=blob, odd={"$float": "-inf"}, deep={"$$float": "nan", "list": [{"$bytes": "AA==", "bytes": 1}]}, **{"$$top": 1}),
    )  # fmt: skip
    payload = run.events[0].payload
    assert payload["text"] == "long\ud800"
    assert payload["odd"] == float("-inf")
    assert payload["deep"] == {"$float": "nan", "list": [{"$bytes": "AA==", "bytes": 1}]}
    assert payload["$top"] == 1
    assert payload["kind"] == "note"
    payload["deep"]["list"].clear()
    assert run.events[0].payload["deep"]["list"]
    assert run.findings == []


def test_missing_and_changed_blobs_keep_their_head_and_are_named(tmp_path):
    pen = Pen()
    path = tmp_path / "t.jsonl"
    gone, changed = store_blob(path, "gone " * 99), store_blob(path, "kept " * 99)
    blobs = tmp_path / "t.blobs"
    (blobs / gone["$blob"][7:]).unlink()
    (blobs / changed["$blob"][7:]).write_text("other")
    evil = {"$blob": "sha256:../../../etc/passwd", "bytes": 3, "head": "e"}
    run = load(tmp_path, pen("run.start", v="1.0"), pen("note", a=gone, b=changed, c=evil))
    payload = run.events[0].payload
    assert (payload["a"], payload["b"], payload["c"]) == (gone, changed, evil)
    assert [f.code for f in run.findings] == ["blob-missing", "blob-damaged", "blob-missing"]


def test_blobs_are_sought_in_a_further_folder_too(tmp_path):
    pen = Pen()
    blob = store_blob(tmp_path / "t.jsonl", "long " * 99)
    (tmp_path / "t.blobs").rename(tmp_path / "elsewhere")
    (tmp_path / "t.jsonl").write_bytes(pen("run.start", v="1.0") + pen("note", a=blob))
    run = Recording.load(tmp_path / "t.jsonl", blobs=str(tmp_path / "elsewhere"))
    assert run.events[0].payload["a"] == "long " * 99


def test_a_summary_is_one_printable_line(tmp_path):
    pen = Pen()
    evil = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b5mtext\r\n\x00\x08\u202e" + "x" * 9999
    run = load(
        tmp_path, pen("run.start", v="1.0", name=evil),
        pen("tool.called", call="a", tool=evil, args={evil: evil}),
        pen("tool.result", call="a", tool="t", result=evil, error={"type": evil, "message": evil}),
        pen(evil, a=evil), pen("model.response", call=evil, body={"role": "assistant", "content": evil}, error=None),
        pen("model.request", body={"model": evil, "messages": 3}), pen("llm_call", duration_ms="x", output_tokens=3),
    )  # fmt: skip
    for event in run.lines:
        text = event.summary()
        assert text.isprintable()
        assert len(text) <= 160
        assert "[31m" not in text and "title" not in text
    assert "red" in run.events[0].summary()


def test_deeply_nested_values_are_cut_instead_of_raising(tmp_path):
    pen = Pen()
    value = current = []
    for _ in range(450):
        current.append([])
        current = current[0]
    run = load(tmp_path, pen("run.start", v="1.0"), pen("note", x=value))
    assert "$cut" in json.dumps(run.events[0].payload)
    assert run.events[0].summary()


def test_events_are_equal_when_they_are_the_same_line(tmp_path):
    run = Recording.load(worked_example(tmp_path))
    assert run.events[3] == run.events[3]
    assert run.events[3] != run.events[2]
    assert len({*run.events, *run.events}) == 7


def test_the_last_line_of_a_long_error_is_in_its_text():
    text = "Error executing the code:\n" + "  a frame of a library\n" * 60 + "KeyError: 'beta'\n"
    assert error_text(ErrorText(text, "AgentError")).endswith("… KeyError: 'beta'")
    one_line = error_text(ErrorText("x" * 900 + " the cause", "AgentError"))
    assert one_line.endswith("the cause") and len(one_line) < 450
    assert error_text(ErrorText("short", "ValueError")) == "ValueError: short"
