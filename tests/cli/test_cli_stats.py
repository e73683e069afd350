"""reenact stats."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import termios
import time

import pytest

import reenact
from support.typed import COMMAND, environment, record_steps, record_trip, typed


@pytest.fixture
def folder(tmp_path):
    """Three runs: one fine, one whose last model call failed, one of plain notes."""
    record_trip(tmp_path / "fine.jsonl", fails=False)
    record_trip(tmp_path / "fails.jsonl", meta={"environment": "dev"}, name="other")
    record_steps(tmp_path / "notes.jsonl", 3, name="notes")
    return tmp_path


def test_the_overview_says_what_all_runs_amount_to(folder):
    code, out, err = typed("stats", folder)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("3 runs: 3 ok  20")
    facts = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.startswith("  ")}
    assert facts["calls"] == "4 turns, 4 model calls (1 failed), 2 tool calls"
    assert facts["tokens"] == "156 in, 93 out"
    assert facts["cost"] == "$0.0019 + 1 call unknown"
    assert facts["prices"].startswith("genai-prices ") and "prices of 20" in facts["prices"]
    assert facts["stopped"] == "tool_use 2, end_turn 1"
    assert facts["errors"] == "1 (TimeoutError 1)"
    assert sum(line.startswith(("runs ", "model calls ", "tool calls ")) for line in lines) == 3
    assert next(line for line in lines if line.startswith("search")).split()[1:4] == ["2", "2", "0"]


def test_json_is_one_object_with_everything(folder):
    (reported,) = typed("stats", folder, "--json").rows
    assert reported["runs"] == 3 and reported["statuses"] == {"ok": 3}
    assert (reported["turns"], reported["llm_calls"], reported["tool_calls"], reported["errors"]) == (
        4,
        4,
        2,
        1,
    )
    assert reported["tokens"] == {"in": 156, "out": 93, "cache_read": 0, "cache_write": 0, "reasoning": 0}
    assert reported["cost"]["priced"] == 3 and sum(reported["cost"]["unknown"].values()) == 1
    assert reported["stop_reasons"] == {"tool_use": 2, "end_turn": 1}
    assert reported["error_types"] == {"TimeoutError": 1}
    for what in ("run", "model", "tool"):
        assert reported["durations_ms"][what]["p50"] <= reported["durations_ms"][what]["p99"]


def test_the_command_and_the_function_say_the_same(folder):
    (reported,) = typed("stats", folder, "--json").rows
    found = reenact.runs(folder)
    assert reported["durations_ms"]["tool"]["p95"] == round(found.p95("tool"), 3)
    assert reported["cost"]["usd"] == float(found.cost.usd)
    rows = typed("stats", folder, "--by", "run", "--json").rows
    assert [row["usd"] for row in rows] == [float(row.cost.usd) if row.cost.priced else None for row in found]


def test_seed_case_3_6_each_in_one_command(folder):
    rows = typed("stats", folder, "--where", 'stop_reason == "tool_use"', "--by", "run", "--json").rows
    assert [row["name"] for row in rows] == ["trip", "other"]
    assert all(row["usd"] > 0 and row["p95_ms"] >= 0 for row in rows)
    assert [row["tool"] for row in typed("stats", folder, "--by", "tool", "--json").rows] == ["search"]


@pytest.mark.parametrize(
    "by", ["model", "tool", "stop_reason", "day", "name", "status", "run", "meta.environment"]
)
def test_every_grouping_as_table_json_and_csv(folder, by):
    _, table, _ = typed("stats", folder, "--by", by)
    rows = typed("stats", folder, "--by", by, "--json").rows
    _, text, _ = typed("stats", folder, "--by", by, "--csv")
    sheet = list(csv.DictReader(io.StringIO(text)))
    assert [row[by] for row in sheet] == [row[by] for row in rows]
    assert table.splitlines()[0].split()[0] == by
    assert len(table.splitlines()) == 1 + len(rows) + (by != "tool")


def test_csv_without_a_key_is_a_row_for_each_run(folder):
    sheet = list(csv.DictReader(io.StringIO(typed("stats", folder, "--csv").out)))
    assert [row["name"] for row in sheet] == ["trip", "other", "notes"]


def test_a_spreadsheet_takes_no_name_for_a_formula(tmp_path):
    record_steps(tmp_path / "t.jsonl", 1, name='=HYPERLINK("x")\x1b[2J')
    out = typed("stats", tmp_path, "--csv").out
    assert "'=HYPERLINK" in out and "\x1b" not in out


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--where", "environment=prod"], ["trip"]),
        (["--where", "tokens>0", "--where", "name~t"], ["trip", "other"]),
        (["--since", "1h"], ["trip", "other", "notes"]),
        (["--since", "2999-01-01"], []),
        (["--failed"], []),
        (["--sort", "tokens", "--limit", "1"], ["trip"]),
        (["--sort", "name"], ["notes", "other", "trip"]),
        (["--limit", "2"], ["trip", "other"]),
    ],
)
def test_options_choose_and_order_the_runs(folder, options, names):
    code, out, err = typed("stats", folder, "--by", "run", "--json", *options)
    assert code == 0
    assert [json.loads(line)["name"] for line in out.splitlines()] == names
    assert bool(err) == (not names)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--by", "models"], "hint: there are model, tool"),
        (["--where", "environment"], "hint: write KEY=VALUE"),
        (["--where", "tokens>many"], "not a number"),
        (["--since", "yesterday"], "hint: write 30m, 2h"),
        (["--by", "model", "--sort", "price"], "hint: the columns are model"),
        (["--sort", "tokens"], "hint: add --by"),
        (["--limit", "2"], "hint: add --by"),
        (["--limit", "0", "--by", "run"], "1 or more"),
        (["--json", "--csv"], "exclude each other"),
    ],
)
def test_wrong_options_get_a_sentence(folder, options, says):
    code, out, err = typed("stats", folder, *options)
    assert (code, out) == (2, "")
    assert says in err


def test_nothing_recorded_gets_a_sentence(tmp_path):
    for words, cwd in ((["stats", tmp_path], None), (["stats"], tmp_path)):
        code, out, err = typed(*words, cwd=cwd)
        assert (code, out) == (0, "")
        assert "No run was recorded" in err and "hint: `reenact demo`" in err
    code, out, err = typed("stats", tmp_path / "nope.jsonl")
    assert (code, out) == (2, "") and "does not exist" in err


def test_files_that_are_no_traces_are_not_reported_as_nothing_recorded(tmp_path):
    (tmp_path / "other.jsonl").write_text("not a trace\n")
    for words in (["stats", tmp_path], ["stats", tmp_path / "other.jsonl", "--json"]):
        code, _, err = typed(*words)
        assert code == 2 and "left out: " in err and "not a trace" in err and "No run" not in err


def test_runs_without_such_calls_get_a_sentence(tmp_path):
    record_steps(tmp_path / "t.jsonl", 2)
    code, out, err = typed("stats", tmp_path, "--by", "tool")
    assert (code, out) == (0, "") and "None of the 1 run has a tool." in err
    assert typed("stats", tmp_path).out.splitlines()[3].split() == ["cost", "-"]


def test_what_was_left_out_and_what_is_damaged_is_reported(folder):
    for number in range(7):
        (folder / f"other-{number}.jsonl").write_text("not a trace\n")
    data = (folder / "notes.jsonl").read_bytes()
    (folder / "notes.jsonl").write_bytes(data[:-20])
    code, out, err = typed("stats", folder)
    assert code == 0 and out.startswith("3 runs")
    assert err.count("left out: ") == 6 and "left out: 2 more files" in err
    assert "damage was found in 1 file" in err and "notes.jsonl" in err


def test_hostile_texts_reach_no_terminal(tmp_path):
    evil = "evil\x1b[31m\x9b2J\nname\u202e"
    with reenact.StepLog(tmp_path / "a.jsonl", meta={"k": evil}) as log:
        log.record_llm_call(evil, 1, 1, evil)
        log.record_tool_call(evil, {}, None, f"{evil}: no", 5)
    for options in (
        [],
        ["--by", "model"],
        ["--by", "tool"],
        ["--by", "meta.k"],
        ["--csv", "--by", "tool"],
        ["--json"],
    ):
        _, out, err = typed("stats", tmp_path, *options)
        assert not {"\x1b", "\x9b", "\u202e"} & set(out + err), options


@pytest.mark.parametrize("width", [40, 60, 80])
def test_tables_fit_a_narrow_terminal(folder, width):
    for by in ("model", "tool", "run", "name", "day"):
        table = typed("stats", folder, "--by", by, COLUMNS=str(width)).out.splitlines()
        rows = [line for line in table if not line.startswith("prices:")]
        assert max(map(len, rows)) <= width, "\n".join(rows)
        assert rows[0].split()[0] == by


def test_ls_says_who_knows_what_it_does_not(folder):
    code, out, err = typed("ls", folder, "--where", "stop_reason=tool_use")
    assert (code, out) == (0, "")
    assert "`reenact stats --by run` knows stop_reason" in err


def test_progress_is_shown_on_a_terminal_only_and_taken_away():
    from reenact.cli.output import Output, Progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        progress = Progress(Output(io.StringIO(), stream))
        progress.show("reading … 0 of 9 files")
        assert stream.getvalue() == ""  # not in the first second
        progress._due = time.monotonic()
        progress.show("reading … 3 of 9 files, 123,456 events")
        progress.close()
        assert ("reading … 3 of 9 files, 123,456 events" in stream.getvalue()) is shown
        assert stream.getvalue().endswith("\r\x1b[K") is shown


def test_on_a_terminal_of_80_columns(folder):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen(
        [COMMAND, "stats", str(folder)],
        stdout=slave,
        stderr=slave,
        env=environment(TERM="xterm", NO_COLOR="1"),
    ) as child:
        os.close(slave)
        shown = b""
        try:
            while piece := os.read(master, 4096):
                shown += piece
        except OSError:
            pass
    os.close(master)
    assert child.returncode == 0
    lines = shown.decode().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("3 runs")


def test_a_model_that_only_the_url_names(tmp_path):
    with reenact.Tap(tmp_path / "a.jsonl") as tap:
        url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-lite-v1%3A0/converse"
        call = tap.record_model_request({"messages": []}, provider="bedrock", url=url)
        tap.record_model_response({"output": {"message": {"role": "assistant", "content": []}}}, call=call)
    assert "amazon.nova-lite-v1:0" in typed("stats", tmp_path, "--by", "model").out
