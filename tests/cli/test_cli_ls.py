"""reenact ls."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

import reenact
from support.typed import environment, obey_permissions, record_steps, record_trip, typed


def failing_run(folder, message="no rooms"):
    try:
        with reenact.run("fails", metadata={"environment": "dev"}):
            reenact.Trace().step("note", text="about to fail")
            raise RuntimeError(message)
    except RuntimeError:
        pass


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three runs: ok, failed, ok; oldest first."""
    monkeypatch.setenv("REENACT_DIR", str(tmp_path))
    record_trip(tmp_path / "first.jsonl", fails=False)
    time.sleep(0.01)
    failing_run(tmp_path)
    time.sleep(0.01)
    record_steps(tmp_path / "third.jsonl", 3, name="third")
    return tmp_path


def test_runs_are_listed_newest_first_with_their_facts(folder):
    code, out, err = typed("ls", folder)
    assert (code, err) == (0, "")
    head, *rows = out.splitlines()
    assert head.split() == [
        "status",
        "name",
        "turns",
        "steps",
        "tokens",
        "errors",
        "age",
        "id",
        "model",
        "input",
    ]
    assert [row.split()[:2] for row in rows] == [["ok", "third"], ["error", "fails"], ["ok", "trip"]]
    assert rows[2].split()[2:6] == ["2", "6", "166", "0"]


def test_json_has_one_object_a_run(folder):
    rows = typed("ls", folder, "--json").rows
    assert [row["name"] for row in rows] == ["third", "fails", "trip"]
    assert rows[2]["tokens"] == {"in": 104, "out": 62}
    assert rows[2]["meta"] == {"environment": "prod"}
    assert os.path.samefile(rows[2]["path"], folder / "first.jsonl")


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--failed"], ["fails"]),
        (["--limit", "2"], ["third", "fails"]),
        (["--where", "environment=prod"], ["trip"]),
        (["--where", "environment!=prod"], ["third", "fails"]),
        (["--where", "name~i"], ["third", "fails", "trip"]),
        (["--where", "name~i", "--where", "status=ok"], ["third", "trip"]),
        (["--where", "status=nope"], []),
    ],
)
def test_options_choose_among_the_runs(folder, options, names):
    code, out, err = typed("ls", folder, "--json", *options)
    assert code == 0
    assert [line.split('"name": "')[1].split('"')[0] for line in out.splitlines()] == names
    assert bool(err) == (not names)


@pytest.mark.parametrize("bad", ["environment", "=prod", "", "~x"])
def test_a_filter_that_compares_nothing_is_refused(folder, bad):
    code, out, err = typed("ls", folder, "--where", bad)
    assert (code, out) == (2, "")
    assert "hint: write KEY=VALUE" in err


def test_the_default_folder_is_the_recorders(folder):
    assert len(typed("ls", "--json", REENACT_DIR=str(folder)).rows) == 3
    os.rename(folder / "third.jsonl", folder / "x.jsonl")
    (folder / "work" / ".reenact").mkdir(parents=True)
    os.rename(folder / "x.jsonl", folder / "work" / ".reenact" / "x.jsonl")
    assert [row["name"] for row in typed("ls", "--json", cwd=folder / "work").rows] == ["third"]


def test_an_empty_folder_gets_a_sentence_and_a_hint(tmp_path):
    for words, cwd in ((["ls", tmp_path], None), (["ls"], tmp_path)):
        code, out, err = typed(*words, cwd=cwd)
        assert (code, out) == (0, "")
        assert "No run was recorded" in err and "hint: `reenact demo`" in err


def test_a_folder_that_is_not_there_is_unusable(tmp_path):
    code, out, err = typed("ls", tmp_path / "nope")
    assert (code, out) == (2, "")
    assert "does not exist" in err


def test_files_that_are_no_trace_are_listed_with_the_reason_and_break_nothing(folder):
    (folder / "binary.jsonl").write_bytes(bytes(range(256)) * 10)
    (folder / "code.jsonl").write_text('{"type":"user","uuid":"1","sessionId":"2"}\n')
    (folder / "empty.jsonl").write_text("")
    (folder / "newer.jsonl").write_text(
        '{"ts": 1.0, "run": "r", "w": "00000000", "step": 1, "kind": "run.start", "v": "9.0"}\n'
    )
    (folder / "gone.jsonl").symlink_to(folder / "nowhere")
    (folder / "folder.jsonl").mkdir()
    code, out, _ = typed("ls", folder)
    assert code == 0
    rows = {line.split()[1].strip("!") or line.split()[2]: line for line in out.splitlines()[1:]}
    assert {"trip", "fails", "third"} <= rows.keys()
    for name, reason in [
        ("binary", "it is binary"),
        ("code", "Claude Code"),
        ("newer", "9.0"),
        ("gone", "a link"),
    ]:
        line = next(line for line in out.splitlines() if name in line)
        assert reason in line


def test_a_file_nobody_may_read_is_listed_as_such(folder):
    (folder / "third.jsonl").chmod(0)
    code, out, _ = typed("ls", folder, start=obey_permissions)
    assert code == 0
    assert "Permission denied" in out


def test_a_killed_run_and_a_running_one_are_distinguished(tmp_path):
    agent = "import os, sys, reenact; t = reenact.Trace(sys.argv[1]); t.step('note'); print(1, flush=True); sys.stdin.read()"
    child = subprocess.Popen(
        [sys.executable, "-c", agent, str(tmp_path / "a.jsonl")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    with child:
        child.stdout.readline()
        assert typed("ls", tmp_path, "--json").rows[0]["status"] == "running"
        child.kill()
        child.wait()
        assert typed("ls", tmp_path, "--json", "--failed").rows[0]["status"] == "killed"


def test_hostile_names_reach_no_terminal(tmp_path):
    record_steps(tmp_path / "a\x1b]0;title\x07\x1b[2J.jsonl", 1, name="evil\x1b[31m\x9b2J\nname\u202e")
    (tmp_path / "b\x1b[2J.jsonl").write_bytes(b"\0\1")
    for words in (
        ["ls", tmp_path],
        ["ls", tmp_path, "--json"],
        ["grep", "x", tmp_path],
        ["doctor", tmp_path],
    ):
        _, out, err = typed(*words)
        assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out + err)
