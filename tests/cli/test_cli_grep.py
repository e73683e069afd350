"""reenact grep."""

from __future__ import annotations

import os
from functools import partial

import pytest

import reenact
from reenact.cli.main import main
from support.typed import record_steps, record_trip, typed
from support.work import calls_of


@pytest.fixture
def folder(tmp_path):
    record_trip(tmp_path / "trip.jsonl")
    record_steps(tmp_path / "notes.jsonl", 3)
    return tmp_path


def addresses(result):
    return [(row["kind"], row["address"]) for row in result.rows]


def test_a_match_is_printed_with_its_run_step_and_kind(folder):
    code, out, err = typed("grep", "Plan L.sbon", folder)
    assert (code, err) == (0, "")
    assert out == f"{folder / 'trip.jsonl'}:2  model.request  Plan Lisbon\n"


def test_a_text_inside_a_long_result_is_found_where_it_was_new_and_only_there(folder):
    result = typed("grep", "needle", folder, "--json")
    assert addresses(result) == [("tool.result", "5")]
    assert result.rows[0]["match"] == "needle" and "very end" in result.rows[0]["context"]
    assert addresses(typed("grep", "-F", "Hotel Lisboa, 82 EUR", folder, "--json")) == [("tool.result", "5")]


def test_nothing_found_is_exit_1(folder):
    assert typed("grep", "no such text", folder) == (1, "", "")


def test_case_fixed_text_kind_and_tool_narrow_the_search(folder):
    assert typed("grep", "plan lisbon", folder).code == 1
    assert typed("grep", "-i", "plan lisbon", folder).code == 0
    assert typed("grep", "-F", "L.sbon", folder).code == 1
    assert addresses(typed("grep", "hotels", folder, "--kind", "tool.called", "--json")) == [
        ("tool.called", "4")
    ]
    assert {kind for kind, _ in addresses(typed("grep", ".", folder, "--tool", "search", "--json"))} == {
        "tool.called",
        "tool.result",
    }


def test_files_and_counts(folder):
    assert typed("grep", "-l", "number", folder).out == f"{folder / 'notes.jsonl'}\n"
    counts = typed("grep", "-c", "number", folder).out.splitlines()
    assert counts == [f"{folder / 'notes.jsonl'}:3", f"{folder / 'trip.jsonl'}:0"]


def test_the_line_as_written_is_searched_too(folder):
    assert typed("grep", '"kind": "tool.called"', folder).code == 0
    assert typed("grep", "-c", "-F", '"number": 1', folder / "notes.jsonl").out.endswith(":1\n")


def test_letters_beyond_ascii_quotes_and_line_ends_are_found_as_they_were(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        trace.step("note", text='São Paulo said "olá"\nand left 🦀')
    for pattern in ("São", 'said "olá"', "^and left", "🦀$", "SÃO"):
        options = ["-i"] if pattern.isupper() else []
        assert typed("grep", *options, pattern, tmp_path).code == 0


@pytest.mark.parametrize("pattern", ["(", "[a", "a{2,1}", "(?P<x"])
def test_a_pattern_that_is_none_is_a_sentence(folder, pattern):
    code, out, err = typed("grep", pattern, folder)
    assert (code, out) == (2, "")
    assert "not a regular expression" in err and "hint: -F" in err
    assert typed("grep", "-F", pattern, folder).code == 1


def test_the_match_is_highlighted_where_there_is_colour(folder):
    assert "\x1b[1;31mLisbon\x1b[0m" in typed("grep", "Lisbon", folder, FORCE_COLOR="1").out


def test_all_runs_of_the_default_folder_are_searched(folder):
    assert typed("grep", "-l", "run.start", REENACT_DIR=str(folder)).out.count("\n") == 2
    code, _, err = typed("grep", "x", REENACT_DIR=str(folder / "nope"))
    assert code == 2 and "nothing was recorded yet" in err


def test_a_foreign_file_in_a_folder_is_left_out_and_one_that_was_named_is_refused(folder):
    (folder / "bin.jsonl").write_bytes(b"\0\1\2\3")
    code, out, err = typed("grep", "Plan", folder)
    assert code == 0 and out.count("\n") == 1 and "it is left out" in err
    code, _, err = typed("grep", "Plan", folder / "bin.jsonl")
    assert code == 2 and "is not a trace" in err


def test_a_word_is_no_part_of_an_id(tmp_path):
    line = '{"ts": 1.0, "run": "r", "w": "b3ec1f89", "step": %d, "kind": "tool.called", "call": "b3ec1f8900000001", "args": {"n":%d}}\n'
    (tmp_path / "run.jsonl").write_text(line % (1, 7) + line % (2, 8900))
    assert len(typed("grep", "8900", tmp_path / "run.jsonl").out.splitlines()) == 2
    (hit,) = typed("grep", "-w", "8900", tmp_path / "run.jsonl").out.splitlines()
    assert ":2  tool.called" in hit


@pytest.mark.parametrize("command", ["grep", "stats"])
def test_a_folder_is_listed_once_however_many_runs_it_holds(tmp_path, capsys, command):
    for number in range(40):
        with reenact.Trace(tmp_path / f"run-{number}.jsonl", segment_bytes=400) as trace:
            for _ in range(3):
                trace.step("note", text="a needle " + "x" * 200)
    arguments = [command, *(["needle"] if command == "grep" else []), str(tmp_path)]
    main(arguments)  # modules are loaded
    listed = sum(calls_of(partial(main, arguments), only=each) for each in (os.listdir, os.scandir))
    assert listed <= 4
    assert capsys.readouterr().out.count("needle") == (3 * 120 if command == "grep" else 0)
