from __future__ import annotations

import pytest

from reenact import read_events
from reenact.errors import NewerSchema, NoSuchRun, NotATrace
from reenact.tracefile import records
from support.written import HOTELS, RUN, TS, Pen, W, worked_example


def read(path, **options):
    found = []
    events = list(read_events(path, on_finding=found.append, **options))
    return events, [finding.code for finding in found]


def write(tmp_path, *parts, name="t.jsonl"):
    path = tmp_path / name
    path.write_bytes(b"".join(parts))
    return path


def story(pen, count=3):
    return [pen("run.start", v="1.0", name="t"), *(pen("note", n_=i) for i in range(count))]


def test_the_worked_example_is_read_with_its_second_process_in_time_order(tmp_path):
    events, codes = read(worked_example(tmp_path))
    assert [e.kind for e in events if e.writer == W][:3] == ["run.start", "model.request", "model.response"]
    assert [e.index for e in events] == [None, 0, 1, 2, 3, None, 4, 5, 6, None]
    assert events[5].kind == "proc.start"
    assert codes == []


def test_a_delta_request_is_returned_whole_with_the_whole_tool_output(tmp_path):
    events, codes = read(worked_example(tmp_path))
    body = events[6].payload["body"]
    assert body["model"] == "claude-sonnet-4-6"
    assert len(body["messages"]) == 3
    assert body["messages"][2]["content"][0]["content"] == HOTELS
    assert "base" not in events[6].payload
    assert codes == []


def test_torn_last_line_is_reported_and_the_rest_is_read(tmp_path):
    lines = story(Pen())
    path = write(tmp_path, *lines[:-1], lines[-1][:-30])
    found = []
    assert len(list(read_events(path, on_finding=found.append))) == 3
    assert [(f.code, f.line, f.byte) for f in found] == [("torn", 4, sum(map(len, lines[:-1])))]


def test_an_event_written_after_a_torn_one_on_its_line_is_recovered(tmp_path):
    lines = story(Pen(), 4)
    events, codes = read(write(tmp_path, *lines[:2], lines[2][:-20], *lines[3:]))
    assert [e.step for e in events] == [1, 2, 4, 5]
    assert sorted(codes) == ["fused", "gap"]


def test_two_whole_events_on_one_line_are_both_read(tmp_path):
    lines = story(Pen())
    events, codes = read(write(tmp_path, lines[0], lines[1].rstrip(), *lines[2:]))
    assert [e.step for e in events] == [1, 2, 3, 4]
    assert codes == ["fused"]


def test_nul_bytes_before_and_between_events_are_named(tmp_path):
    lines = story(Pen())
    events, codes = read(
        write(tmp_path, lines[0], b"\0" * 4096, lines[1], lines[2].rstrip(), b"\0" * 7, b"\n", lines[3])
    )
    assert [e.step for e in events] == [1, 2, 3, 4]
    assert codes == ["nul", "nul"]


def test_bom_crlf_and_blank_lines_are_tolerated(tmp_path):
    data = b"".join(story(Pen())).replace(b"\n", b"\r\n\r\n")
    events, codes = read(write(tmp_path, b"\xef\xbb\xbf", data))
    assert len(events) == 4
    assert sorted(codes) == ["bom", "crlf"]


def test_line_separators_of_unicode_inside_a_text_do_not_split_it(tmp_path):
    path = write(tmp_path, '{"ts": 1.0, "run": "r", "kind": "note", "text": "a\u2028b\x85c"}\n'.encode())
    events, codes = read(path)
    assert events[0].text == "a\u2028b\x85c"
    assert codes == []


def test_bytes_that_are_not_utf8_are_replaced_and_named(tmp_path):
    lines = story(Pen(), 1)
    broken = lines[1].replace(b'"n_": 0', b'"n_": "\xff\xfe"')
    events, codes = read(write(tmp_path, lines[0], broken))
    assert events[1].n_ == "\ufffd\ufffd"
    assert codes == ["encoding"]


def test_lines_that_are_no_events_are_skipped_and_named(tmp_path):
    lines = story(Pen(), 1)
    events, codes = read(
        write(tmp_path, lines[0], b"Traceback (most recent call last):\n", b'{"a": 1}\n', b"[1]\n", lines[1])
    )
    assert len(events) == 2
    assert codes == ["garbage", "foreign", "garbage"]


def test_a_flood_of_foreign_lines_is_summed_up(tmp_path):
    lines = story(Pen(), 1)
    found = []
    path = write(tmp_path, lines[0], b"print\n" * 1000, lines[1])
    assert len(list(read_events(path, on_finding=found.append))) == 2
    assert len(found) == 21
    assert "980 more" in found[-1].message


def test_a_lost_header_is_named(tmp_path):
    events, codes = read(write(tmp_path, *story(Pen())[1:]))
    assert len(events) == 3
    assert sorted(codes) == ["gap", "no-header"]


def test_missing_and_repeated_steps_are_named_per_writer(tmp_path):
    one, two = Pen(), Pen(w="00000002")
    a, b = story(one, 5), story(two, 5)
    found = []
    path = write(tmp_path, a[0], b[0], a[1], b[1], b[2], a[4], b[3], b[3], b[4])
    list(read_events(path, on_finding=found.append))
    assert sorted(f.code for f in found) == ["gap", "repeat"]
    assert f"2 events are missing: steps 3 to 4 of writer {W}" in {f.message for f in found}


def test_a_step_that_comes_a_little_late_is_neither_missing_nor_repeated(tmp_path):
    lines = story(Pen(), 50)
    lines[3], lines[4], lines[5] = lines[5], lines[3], lines[4]  # two handlers, one inside the other
    events, codes = read(write(tmp_path, *lines))
    assert len(events) == len(lines) and codes == []
    found = []
    list(read_events(write(tmp_path, *lines[:4], *lines[6:]), on_finding=found.append))
    assert [f.message for f in found] == [f"2 events are missing: steps 4 to 5 of writer {W}"]


def test_another_major_version_is_refused_and_a_newer_minor_is_not(tmp_path):
    pen = Pen()
    with pytest.raises(NewerSchema) as why:
        read(write(tmp_path, pen("run.start", v="2.0"), pen("note")))
    assert (why.value.found, why.value.supported) == ("2.0", "1.1")
    pen = Pen()
    events, codes = read(write(tmp_path, pen("run.start", v="1.9"), pen("hologram", x=1)))
    assert len(events) == 2
    assert codes == ["newer-minor"]


def test_an_empty_file_is_an_empty_trace(tmp_path):
    assert read(write(tmp_path)) == ([], ["empty"])


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0\0", b"hello\nworld\n", b'{"a": 1}\n', b"[1, 2]", b"\xff" * 99]
)
def test_a_file_without_a_single_event_is_refused_with_a_hint(tmp_path, data):
    with pytest.raises(NotATrace) as why:
        read(write(tmp_path, data))
    assert "importers" in why.value.hint


def test_a_file_torn_in_its_very_first_event_is_an_empty_trace(tmp_path):
    assert read(write(tmp_path, story(Pen())[0][:40])) == ([], ["torn"])


def test_segments_follow_the_file_they_continue(tmp_path):
    pen = Pen()
    write(tmp_path, *story(pen, 3), name="t.jsonl")
    write(tmp_path, pen("run.more", v="1.0", segment=1), pen("note"), name="t.s0001.jsonl")
    write(tmp_path, pen("run.more", v="1.0", segment=2), pen("note"), name="t.s0002.jsonl")
    write(tmp_path, *story(Pen(run="other")), name="tt.jsonl")
    events, codes = read(tmp_path / "t.jsonl")
    assert [e.step for e in events] == list(range(1, 9))
    assert codes == []


def test_a_lost_segment_shows_as_a_gap(tmp_path):
    pen = Pen()
    write(tmp_path, *story(pen, 3), name="t.jsonl")
    pen("run.more"), pen("note")
    write(tmp_path, pen("run.more", v="1.0", segment=2), pen("note"), name="t.s0002.jsonl")
    _, codes = read(tmp_path / "t.jsonl")
    assert codes == ["gap"]


def test_a_run_is_selected_by_a_unique_prefix_of_its_id(tmp_path):
    path = write(
        tmp_path, *story(Pen(run="aa11")), *story(Pen(run="aa22", w="2")), *story(Pen(run="bb", w="3"), 1)
    )
    assert {e.run_id for e in read(path)[0]} == {"aa11", "aa22", "bb"}
    events, _ = read(path, run="b")
    assert [e.run_id for e in events] == ["bb", "bb"]
    assert [e.index for e in events] == [None, 0]
    with pytest.raises(NoSuchRun, match="2 runs"):
        read(path, run="aa")
    with pytest.raises(NoSuchRun):
        read(path, run="zz")


def test_a_folder_gives_every_run_and_names_what_is_foreign(tmp_path):
    write(tmp_path, *story(Pen(run="r1")), name="a.jsonl")
    write(tmp_path, b"nothing of ours\n", name="b.jsonl")
    write(tmp_path, *story(Pen(run="r2")), name="c.jsonl")
    (tmp_path / "d.txt").write_text("ignored")
    events, codes = read(tmp_path)
    assert [e.run_id for e in events] == ["r1"] * 4 + ["r2"] * 4
    assert codes == ["garbage", "foreign"]
    assert {e.run_id for e in read(tmp_path, run="r2")[0]} == {"r2"}
    with pytest.raises(NoSuchRun):
        read(tmp_path, run="r3")


def test_a_line_beyond_the_limit_is_known_by_its_envelope_and_parsed_only_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "MAX_LINE", 3 << 20)
    pen = Pen()
    lines = [
        pen("run.start", v="1.0"),
        pen("tool.result", tool="big", error=None, text="x" * (5 << 20)),
        pen("note"),
    ]
    events, codes = read(write(tmp_path, *lines))
    assert [e.kind for e in events] == ["run.start", "tool.result", "note"]
    assert (events[1].tool_name, events[1].error) == ("big", None)
    assert "over 64 MB" in events[1].summary()
    assert "text" not in events[1].stored_fields
    assert len(events[1].payload["text"]) == 5 << 20
    assert "text" not in events[1].stored_fields
    assert codes == []
    _, codes = read(write(tmp_path, lines[0], lines[1][:-9]))
    assert codes == ["torn"]
    _, codes = read(write(tmp_path, lines[0], b"x" * (5 << 20), b"\n"))
    assert codes == ["long"]


def test_nesting_beyond_the_interpreters_depth_is_a_finding(tmp_path):
    lines = story(Pen(), 1)
    deep = b'{"ts": 1.0, "run": "r", "kind": "note", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    events, codes = read(write(tmp_path, lines[0], deep, lines[1]))
    assert len(events) == 2
    assert codes == ["unreadable"]


def test_a_number_of_ten_thousand_digits_does_not_stop_reading(tmp_path):
    lines = story(Pen(), 1)
    events, _ = read(
        write(tmp_path, lines[0], b'{"ts": 1.0, "run": "r", "kind": "note", "x": 1' + b"0" * 9999 + b"}\n")
    )
    assert [e.kind for e in events] == ["run.start", "note"]


def test_two_hundred_processes_are_merged_by_time(tmp_path):
    write(tmp_path, *story(Pen(), 2), name="t.jsonl")
    for i in range(200):
        pen = Pen(w=f"{i:08x}", ts=TS + 1 + i)
        write(
            tmp_path,
            pen("proc.start", v="1.0", parent_w=W),
            pen("note"),
            pen("proc.end"),
            name=f"t.p{i:08x}.jsonl",
        )
    events, codes = read(tmp_path / "t.jsonl")
    assert len(events) == 603
    assert [e.timestamp for e in events] == sorted(e.timestamp for e in events)
    assert codes == []
    assert {e.run_id for e in events} == {RUN}
