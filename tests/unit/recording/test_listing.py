from __future__ import annotations

import json
import os

import pytest

from reenact import Recording, Trace
from reenact.errors import NoSuchRun
from reenact.recording.listing import head_and_tail, list_runs
from reenact.recording.run_addresses import default_folder, find_run
from reenact.tracefile import columns, file_ends
from support.written import RUN, TS, Pen, W, worked_example


def write(folder, name, *lines):
    path = folder / name
    path.write_bytes(b"".join(lines))
    return str(path)


def tot(turns, err=0):
    return {"turns": turns, "in": 10 * turns, "out": turns, "err": err}


def long_run(pen, turns, **start):
    yield pen("run.start", v="1.0", **start)
    for i in range(turns):
        yield pen("model.request", call=f"{i:x}", body={"messages": ["x" * 200]})
        usage = {"input": 10, "output": 1}
        yield pen(
            "model.response", call=f"{i:x}", usage=usage, error=None, tot=tot(i + 1), body={"x": "y" * 200}
        )


def test_the_row_of_the_worked_example(tmp_path):
    (row,) = head_and_tail(str(worked_example(tmp_path)))
    assert (row.id, row.name, row.status, row.turns, row.steps) == (RUN, "trip", "error", 2, 7)
    assert (row.tokens_in, row.tokens_out, row.errors) == (52, 31, 2)
    assert row.meta["environment"] == "prod"
    assert row.failed
    assert row.size == sum(p.stat().st_size for p in tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize("turns", [1, 10, 1000])
def test_a_row_is_what_reading_all_of_the_run_gives(tmp_path, turns):
    pen = Pen()
    lines = list(long_run(pen, turns, name="t", pid=1, host="elsewhere"))
    rest = [
        pen("tool.called", call="t1", tool="x"),
        pen("model.request", call="z", body={}),
        pen("error", error="x"),
    ]
    path = write(tmp_path, "t.jsonl", *lines, *rest)
    (row,) = head_and_tail(path)
    run = Recording.load(path)
    assert (row.turns, row.errors, row.tokens_in, row.tokens_out) == (turns + 1, 1, 10 * turns, turns)
    assert {**run.tot} == row.totals.as_tot()
    assert row.steps == run.count()
    assert (
        (row.started, row.ended, row.status)
        == (run.started, run.ended, run.status)
        == (lines and run.started, run.ended, "unknown")
    )


def test_a_retry_after_the_last_sum_takes_its_error_back(tmp_path):
    pen = Pen()
    path = write(
        tmp_path, "t.jsonl", pen("run.start", v="1.0"), pen("model.request", call="a", body={}),
        pen("model.response", call="a", error={"type": "x"}, tot=tot(1, 1)), pen("model.request", call="b", attempt=2, body={}),
    )  # fmt: skip
    assert head_and_tail(path)[0].errors == 0


def test_segments_and_processes_are_summed(tmp_path):
    pen, child = Pen(), Pen(w="0c0c0c0c")
    path = write(tmp_path, "t.jsonl", *long_run(pen, 5, name="t"))
    usage = {"input": 10, "output": 1}
    write(
        tmp_path,
        "t.s0001.jsonl",
        pen("run.more", v="1.0", segment=1),
        pen("model.request", call="q", body={}),
        pen("model.response", call="q", usage=usage, error=None, tot=tot(6)),
        pen("run.end", status="ok", tot=tot(6)),
    )
    write(
        tmp_path,
        "t.p0c0c0c0c.jsonl",
        child("proc.start", v="1.0", parent_w=W),
        child("model.request", call="c", body={}),
        child("model.response", call="c", usage=usage, error=None, tot=tot(1)),
        child("proc.end", tot=tot(1)),
    )
    (row,) = head_and_tail(path)
    run = Recording.load(path)
    assert row.totals.as_tot() == run.totals.as_tot() == {"turns": 7, "in": 70, "out": 7, "err": 0}
    assert row.status == run.status == "ok"
    assert row.steps == run.count() == 14
    assert len(list_runs(str(tmp_path))) == 1


def test_runs_that_share_a_file_have_a_row_each(tmp_path):
    one, two = Pen(run="r1", w="1"), Pen(run="r2", w="2")
    path = write(
        tmp_path,
        "t.jsonl",
        one("run.start", v="1.0", name="a"),
        two("run.start", v="1.0", name="b"),
        two("llm_call", input_tokens=3, output_tokens=4),
        one("run.end", status="ok"),
        two("run.end", status="error"),
    )
    rows = head_and_tail(path)
    assert [(row.id, row.name, row.status, row.turns, row.tokens_in) for row in rows] == [
        ("r1", "a", "ok", 0, 0),
        ("r2", "b", "error", 1, 3),
    ]


def test_one_bad_file_never_breaks_the_list(tmp_path):
    pen = Pen()
    write(tmp_path, "good.jsonl", pen("run.start", v="1.0", name="good"), pen("run.end", status="ok"))
    write(tmp_path, "empty.jsonl")
    write(tmp_path, "binary.jsonl", bytes(range(256)) * 99)
    write(tmp_path, "text.jsonl", b"hello\n" * 9)
    write(
        tmp_path, "claude.jsonl", json.dumps({"type": "user", "uuid": "u", "sessionId": "s"}).encode() + b"\n"
    )
    write(tmp_path, "future.jsonl", Pen()("run.start", v="9.0"))
    write(tmp_path, "torn.jsonl", Pen()("run.start", v="1.0")[:50])
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    write(tmp_path, "damaged.jsonl", pen("note")[:-9], b"\n", pen("note"), b"\0\0\0\n")
    rows = {row.name: row.status for row in list_runs(str(tmp_path))}
    assert rows == {
        "good": "ok", "empty": "unknown", "binary": "foreign", "text": "foreign", "claude": "foreign",
        "future": "unreadable", "torn": "unknown", "folder": "unreadable", "loop": "unreadable", "damaged": "unknown",
    }  # fmt: skip
    reasons = {row.name: row.reason for row in list_runs(str(tmp_path))}
    assert "Claude Code" in reasons["claude"]


def test_a_torn_tail_is_counted_as_a_finding(tmp_path):
    pen = Pen()
    path = write(
        tmp_path, "t.jsonl", pen("run.start", v="1.0", pid=1, host="elsewhere"), pen("note"), pen("note")[:-9]
    )
    (row,) = head_and_tail(path)
    assert (row.findings, row.steps) == (1, 1)


def test_article_files_are_listed(tmp_path):
    write(
        tmp_path,
        "old.jsonl",
        b'{"ts": 1.0, "run": "abc", "kind": "llm_call", "usage": {"input_tokens": 3, "output_tokens": 4}}\n',
    )
    (row,) = list_runs(str(tmp_path))
    assert (row.id, row.name, row.status, row.turns, row.tokens_in) == ("abc", "old", "unknown", 1, 3)


@pytest.fixture
def three(tmp_path):
    for i, (name, status) in enumerate([("plan", "ok"), ("book", "error"), ("pay", "ok")]):
        pen = Pen(run=f"{i}" * 32, ts=TS + i)
        write(
            tmp_path, f"{name}-{i}.jsonl", pen("run.start", v="1.0", name=name), pen("run.end", status=status)
        )
    return str(tmp_path)


def test_runs_are_found_by_path_id_name_and_alias(three):
    expected = {
        "@last": "pay",
        "@prev": "book",
        "@failed": "book",
        None: "pay",
        "": "pay",
        "plan": "plan",
        "000": "plan",
        "1" * 32: "book",
        f"{three}/book-1.jsonl": "book",
        "book-1.jsonl": "book",
        three: "pay",
    }
    assert {reference: find_run(reference, three).name for reference in expected} == expected


def test_replays_and_forks_and_what_is_inside_them_are_not_the_last_run(three, tmp_path):
    of = "2" * 32
    made = [
        ("replayed", {"meta": {"replay_of": of}}),
        ("inside", {"parent_run": "3" * 32}),
        ("forked", {"parent_run": of, "fork": {"of": of}}),
    ]
    for i, (name, more) in enumerate(made, 3):
        pen = Pen(run=f"{i}" * 32, ts=TS + i)
        start = pen("run.start", v="1.0", name=name, **more)
        write(tmp_path, f"{name}.jsonl", start, pen("run.end", status="error"))
    expected = {
        "@last": "pay",
        None: "pay",
        "@prev": "book",
        "@failed": "book",
        "@replay": "replayed",
        "@fork": "forked",
        "inside": "inside",
    }
    assert {reference: find_run(reference, three).name for reference in expected} == expected
    for path in tmp_path.glob("*-?.jsonl"):
        path.unlink()
    assert find_run("@last", three).name == "forked"  # there is nothing else


@pytest.mark.parametrize("reference", ["@first", "paly", "777", "@", "@fork"])
def test_a_run_that_is_not_there_is_answered_with_what_is(three, reference):
    with pytest.raises(NoSuchRun) as why:
        find_run(reference, three)
    assert why.value.hint
    assert why.value.asked == reference


def test_an_ambiguous_id_names_the_candidates(tmp_path):
    for i in "ab":
        pen = Pen(run="00" + i * 30)
        write(tmp_path, f"{i}.jsonl", pen("run.start", v="1.0", name=i), pen("run.end", status="ok"))
    with pytest.raises(NoSuchRun, match="2 runs") as why:
        find_run("00", str(tmp_path))
    assert "00aaa" in why.value.hint


def test_the_folder_is_the_one_the_environment_names(monkeypatch, three):
    monkeypatch.setenv("REENACT_DIR", three)
    assert find_run().name == "pay"
    monkeypatch.delenv("REENACT_DIR")
    assert default_folder() == ".reenact"
    with pytest.raises(NoSuchRun, match="does not exist"):
        find_run("x", os.path.join(three, "none"))


def test_a_last_segment_without_sums_takes_those_of_the_segments_before_it(tmp_path):
    pen = Pen()
    path = write(tmp_path, "t.jsonl", *long_run(pen, 5))
    for number in (1, 2):
        more = pen("run.more", v="1.0", segment=number)
        write(tmp_path, f"t.s000{number}.jsonl", more, pen("model.request", call=f"q{number}", body={}))
    (row,) = head_and_tail(path)
    assert row.totals.as_tot() == Recording.load(path).totals.as_tot() == tot(7) | {"in": 50, "out": 5}


def test_sums_out_of_sight_of_a_large_file_s_end_are_counted_instead(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "LARGE", 1)
    monkeypatch.setattr(file_ends, "_FAR", 1)
    pen = Pen()
    path = write(tmp_path, "t.jsonl", *long_run(pen, 2), *(pen("note", x="y" * 5000) for _ in range(40)))
    assert Recording.load(path).tot == tot(2)


def test_the_ends_of_a_closed_run_suffice_even_if_segments_hold_no_sums(tmp_path):
    path = tmp_path / "notes.jsonl"
    with Trace(path, segment_bytes=10 << 20, redact=False) as trace:
        for number in range(600):
            trace.step("note", number=number, text="x" * 60_000)
    assert len(list(tmp_path.glob("*.s*.jsonl"))) >= 2
    before = bytes_read()
    (row,) = list_runs(str(tmp_path))
    assert bytes_read() - before < 2 << 20  # of 36 MB
    assert (row.status, row.steps, row.size) == (
        "ok",
        600,
        sum(file.stat().st_size for file in tmp_path.iterdir()),
    )
    (named,) = head_and_tail(str(path))
    assert (named.id, named.steps, named.ended) == (row.id, row.steps, row.ended)


def bytes_read():
    """Return how much this process has read."""
    with open("/proc/self/io", "rb") as file:
        return int(file.readline().split()[1])
