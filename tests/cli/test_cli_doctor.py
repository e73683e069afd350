"""reenact doctor."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import reenact
from support.typed import record_steps, record_trip, snapshot, typed


@pytest.fixture
def trip(tmp_path):
    return record_trip(tmp_path / "trip.jsonl")


def codes(path, *options):
    return [finding["code"] for finding in typed("doctor", path, "--json", *options).rows[0]["findings"]]


def test_a_whole_trace_is_reported_as_whole_with_what_was_verified(trip):
    code, out, err = typed("doctor", trip)
    assert (code, err) == (0, "")
    assert (
        "nothing is damaged; 8 events can be read, 2 of 2 requests rebuilt and proved, 1 of 1 long text whole"
        in out
    )


def test_a_torn_tail_is_named_with_line_and_byte_and_what_holds(trip):
    data = trip.read_bytes()
    trip.write_bytes(data[:-20])
    code, out, err = typed("doctor", trip)
    assert code == 1
    last = data[:-1].rfind(b"\n") + 1
    assert f"line 8, byte {last:,}" in out and "[torn]" in out
    assert "7 events can be read" in out and "--repair OUT" in err


def test_a_missing_and_a_changed_long_text_are_distinguished(trip):
    (blob,) = (trip.parent / "trip.blobs").iterdir()
    blob.chmod(0o600)
    content = blob.read_bytes()
    blob.write_bytes(content[:-1] + b"X")
    assert codes(trip) == ["blob-damaged"]
    blob.unlink()
    assert codes(trip) == ["blob-missing"]
    elsewhere = trip.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / blob.name).write_bytes(content)
    assert codes(trip, "--blobs", elsewhere) == []


def test_a_changed_request_is_found_by_its_chain(trip):
    trip.write_bytes(trip.read_bytes().replace(b"Plan Lisbon", b"Plan Berlin", 1))
    report = typed("doctor", trip, "--json").rows[0]
    assert "chain" in [finding["code"] for finding in report["findings"]]
    assert report["requests"]["proved"] < report["requests"]["all"] == 2


def test_every_changed_request_counts_as_unproved_even_when_not_each_is_listed(tmp_path):
    path = tmp_path / "many.jsonl"
    with reenact.Tap(path) as tap:
        for number in range(60):
            tap.record_model_request({"model": "m", "messages": [f"question {number}"]}, lane=str(number))
    path.write_bytes(path.read_bytes().replace(b"question", b"quest10n"))
    (reported,) = typed("doctor", path, "--json").rows
    assert reported["requests"] == {"all": 60, "proved": 0}
    assert len(reported["findings"]) < 60


def test_a_request_without_a_chain_is_not_reported_as_verified(trip):
    trip.write_bytes(re.sub(rb' "chain": "[0-9a-f]+",', b"", trip.read_bytes()))
    (reported,) = typed("doctor", trip, "--json").rows
    assert reported["findings"] == [] and reported["requests"] == {"all": 2, "proved": 0}


def test_a_lost_event_is_a_gap(trip):
    lines = trip.read_bytes().splitlines(keepends=True)
    trip.write_bytes(b"".join(lines[:3] + lines[4:]))
    assert codes(trip) == ["gap"]


def test_repair_writes_a_clean_copy_and_leaves_the_input_alone(trip):
    lines = trip.read_bytes().splitlines(keepends=True)
    trip.write_bytes(lines[0] + lines[1].rstrip() + lines[2] + b"\0\0\0\n" + b"".join(lines[3:])[:-9])
    before = snapshot(trip.parent)
    code, _, err = typed("doctor", trip, "--repair", trip.parent / "out" / "clean.jsonl")
    assert code == 1 and "is unchanged" in err
    clean = trip.parent / "out" / "clean.jsonl"
    assert {path: state for path, state in snapshot(trip.parent).items() if "/out/" not in path} == before
    assert clean.read_bytes() == b"".join(lines[:-1])
    assert typed("doctor", clean).code == 0


def test_repair_overwrites_nothing(trip):
    target = trip.parent / "there.jsonl"
    target.write_text("mine")
    for out in (target, trip):
        code, _, err = typed("doctor", trip, "--repair", out)
        assert code == 2 and "is there already" in err
    assert target.read_text() == "mine"


WITH_A_LIMIT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))
from reenact.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_repair_that_finds_no_room_leaves_nothing_behind(trip):
    before = snapshot(trip.parent)
    assert trip.stat().st_size > 1500
    for out in (trip.parent / "clean.jsonl", trip.parent / "new" / "folder" / "clean.jsonl"):
        command = [sys.executable, "-c", WITH_A_LIMIT, "doctor", str(trip), "--repair", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"{out} cannot be written (file too large)" in done.stderr
        assert snapshot(trip.parent) == before
        assert not out.parent.exists() or out.parent == trip.parent


def test_several_files_are_repaired_into_a_folder(tmp_path):
    for name in "ab":
        record_steps(tmp_path / f"{name}.jsonl", 2)
    code, _, err = typed("doctor", tmp_path, "--repair", tmp_path / "one.jsonl")
    assert code == 2 and "name a folder" in err
    assert typed("doctor", tmp_path, "--repair", f"{tmp_path}/out/").code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.jsonl", "b.jsonl"]


def test_a_folder_is_checked_file_by_file_and_the_worst_decides(tmp_path):
    record_steps(tmp_path / "good.jsonl", 2)
    assert typed("doctor", tmp_path).code == 0
    torn = record_steps(tmp_path / "torn.jsonl", 2)
    torn.write_bytes(torn.read_bytes()[:-5])
    assert typed("doctor", tmp_path).code == 1
    (tmp_path / "bin.jsonl").write_bytes(b"\0\1\2")
    code, out, err = typed("doctor", tmp_path)
    assert code == 2 and "good.jsonl: nothing is damaged" in out and "is not a trace" in err


def test_a_folder_without_traces_and_no_run_at_all_are_unusable(tmp_path):
    assert typed("doctor", tmp_path).code == 2
    assert typed("doctor", cwd=tmp_path).code == 2


def test_json_says_the_same_for_programs(trip):
    report = json.loads(typed("doctor", trip, "--json").out)
    assert report["requests"] == {"all": 2, "proved": 2} and report["blobs"] == {"all": 1, "whole": 1}
    assert report["tot"] == {"turns": 2, "in": 52, "out": 31, "err": 1}


def test_secrets_in_an_older_trace_are_reported_by_kind_and_line_without_their_value(tmp_path):
    path = tmp_path / "old.jsonl"
    password, key, long_key = "zz9981-Tr0ub4dor", "sk-" + "ant-" + "aB3" * 12, "ghp" + "_" + "aB3" * 12
    with reenact.Trace(path, redact=False) as trace:
        trace.step("note", text="nothing here")
        trace.step("note", env=f"DB_PASS={password}", again=f"use {key}")
        trace.step("note", text="x" * 2_000_000 + f" {long_key} " + "y" * 200_000)
    code, out, err = typed("doctor", path)
    assert code == 1
    assert "line 3, byte" in out and "a secret by the rules of today: anthropic-key, password [secret]" in out
    assert "line 4, byte" in out and "github-token" in out
    assert "2 findings" in out and "change them" in err and "--repair" not in err
    assert not any(secret in out + err for secret in (password, key, long_key))
    assert codes(path) == ["secret", "secret"]


def test_a_redacted_trace_holds_no_secret_and_a_flood_of_them_is_counted(tmp_path):
    for redact, expected in ((True, 0), (False, 21)):
        path = tmp_path / f"{redact}.jsonl"
        with reenact.Trace(path, redact=redact) as trace:
            for number in range(50):
                trace.step("note", text=f"DB_PASS=zz9981-{number}", args=["--api-key", f"zz9981abc{number}"])
        assert len(codes(path)) == expected
    assert "30 more findings of this sort (secret)" in typed("doctor", path).out
