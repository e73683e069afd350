"""reenact cat."""

from __future__ import annotations

import json
import resource
import subprocess

import pytest

import reenact
from support.typed import COMMAND, LONG, environment, record_steps, record_trip, run_bytes, typed


@pytest.fixture
def trip(tmp_path):
    return record_trip(tmp_path / "trip.jsonl")


def test_a_run_is_printed_byte_for_byte(trip):
    done = run_bytes("cat", trip)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == trip.read_bytes()


def test_events_of_a_kind_or_at_an_address_are_the_lines_of_the_file(trip):
    lines = trip.read_bytes().splitlines(keepends=True)
    assert run_bytes("cat", trip, "--kind", "model.request").stdout == lines[1] + lines[5]
    assert run_bytes("cat", trip, "4", "turn:2").stdout == lines[3] + lines[5]
    assert run_bytes("cat", "4", REENACT_DIR=str(trip.parent)).stdout == lines[3]


def test_full_requests_stand_alone(trip):
    rows = typed("cat", trip, "--full", "--kind", "model.request").rows
    assert [len(row["body"]["messages"]) for row in rows] == [1, 3]
    assert rows[1]["body"]["messages"][2]["content"][0]["content"] == LONG
    assert "base" not in rows[1] and "keep" not in rows[1]


def test_json_is_indented(trip):
    out = typed("cat", trip, "--json", "turn:1").out
    assert out.startswith("{\n  ") and json.loads(out)["kind"] == "model.request"


def test_equal_runs_give_equal_stable_text_and_different_ones_differ_where_they_do(tmp_path):
    paths = [record_trip(tmp_path / f"{name}.jsonl") for name in "ab"]
    other = record_trip(tmp_path / "c.jsonl", fails=False)
    for options in ([], ["--full"], ["--json"]):
        first, second, third = (typed("cat", path, "--stable", *options).out for path in [*paths, other])
        assert first == second != third
    same = zip(typed("cat", paths[0], "--stable").rows, typed("cat", other, "--stable").rows, strict=True)
    assert [one["step"] for one, two in same if one != two] == [7, 8]
    assert not {"ts", "run", "duration_ms", "pid", "host"} & set(typed("cat", other, "--stable").rows[0])


def test_one_run_of_a_shared_file_is_printed_alone(tmp_path):
    path = tmp_path / "shared.jsonl"
    for name in ("one", "two"):
        record_steps(path, 2, name=name)
    code, out, err = typed("cat", path)
    assert code == 0
    assert len(out.splitlines()) == 4 and '"name": "two"' in out and "the file holds 2 runs" in err
    assert run_bytes("cat", path, "--run", "*").stdout == path.read_bytes()


def test_a_line_of_200_mb_passes_through_in_bounded_memory(tmp_path):
    path = record_steps(tmp_path / "a.jsonl", 1)
    with open(path, "ab") as file:
        head = path.read_bytes().splitlines()[0]
        ts, rest = head.split(b', "w"', 1)[0], head.split(b'"w": ', 1)[1][:10]
        file.write(ts + b', "w": ' + rest + b', "step": 4, "kind": "note", "text": "')
        for _ in range(200):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n')
    size = path.stat().st_size
    limit = 400 << 20

    def confine():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    child = subprocess.Popen(
        [COMMAND, "cat", path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=confine,
    )
    with child:
        got = 0
        while block := child.stdout.read(1 << 20):
            got += len(block)
        error = child.stderr.read().decode()
    assert (got, child.returncode) == (size, 0), error


def test_floats_json_cannot_hold_stay_valid_json(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        trace.step("note", value=float("-inf"))
    row = typed("cat", tmp_path / "a.jsonl", "--full", "2").rows[0]
    assert row["value"] == {"$float": "-inf"}


def test_a_wrapped_and_a_fused_line_give_clean_lines_when_events_are_chosen(tmp_path):
    whole = record_steps(tmp_path / "a.jsonl", 4).read_bytes().splitlines()
    (tmp_path / "fused.jsonl").write_bytes(
        b"\n".join([whole[0], whole[1] + whole[2], whole[3], whole[4], whole[5]]) + b"\n"
    )
    code, out, err = typed("cat", tmp_path / "fused.jsonl", "--kind", "note")
    assert code == 0 and "fused" in err
    assert [json.loads(line)["number"] for line in out.splitlines()] == [0, 1, 2, 3]
