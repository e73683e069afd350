"""The command itself: help, version, mistakes, streams."""

from __future__ import annotations

import subprocess
import sys

import pytest

import reenact
from reenact.cli.main import COMMANDS, main
from support.typed import COMMAND, environment, record_steps, record_trip, typed


def test_version_is_printed():
    code, out, err = typed("--version")
    assert (code, err) == (0, "")
    assert out.startswith("reenact ")


def test_help_names_every_command_and_python_dash_m_is_the_same():
    code, out, _ = typed("--help")
    assert code == 0
    assert all(f"\n  {name} " in out for name in COMMANDS)
    again = subprocess.run(
        [sys.executable, "-m", "reenact", "--help"], capture_output=True, text=True, env=environment()
    )
    assert again.stdout == out


def test_without_a_command_the_help_is_shown_and_the_exit_code_says_usage():
    code, out, _ = typed()
    assert code == 2
    assert "usage: reenact COMMAND" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(name):
    code, out, err = typed(name, "--help")
    assert (code, err) == (0, "")
    examples = out.partition("examples:\n")[2].splitlines()
    assert sum(f"reenact {name}" in line for line in examples) >= 2
    assert "--json" in out


@pytest.mark.parametrize(("printed", "meant"), [("lst", "ls"), ("shwo", "show"), ("dcotor", "doctor")])
def test_a_mistyped_command_is_answered_with_the_one_probably_meant(printed, meant):
    code, out, err = typed(printed)
    assert (code, out) == (2, "")
    assert f"did you mean `reenact {meant}`?" in err


def test_a_file_in_place_of_a_command_is_answered_with_how_to_show_it(tmp_path):
    path = record_steps(tmp_path / "a.jsonl", 1)
    code, _, err = typed(path)
    assert code == 2
    assert f"reenact show {path}" in err


@pytest.mark.parametrize(
    "words",
    [
        ["ls", "--limit", "x"],
        ["ls", "--limit", "0"],
        ["tail", "-n", "-3"],
        ["show", "--nope"],
        ["show", "--turn", "two"],
        ["grep"],
    ],
)
def test_a_wrong_argument_is_a_sentence_a_hint_and_exit_2(words):
    code, out, err = typed(*words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 3 and f"hint: `reenact {words[0]} --help`" in err


def test_a_reader_that_stops_reading_is_no_error(tmp_path):
    path = record_steps(tmp_path / "a.jsonl", 20_000)
    first = subprocess.Popen(
        [COMMAND, "cat", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert first.stdout.readline()
    first.stdout.close()
    assert (first.stderr.read(), first.wait(60)) == (b"", 0)
    first.stderr.close()


@pytest.mark.long
def test_streams_closed_or_full_from_the_beginning_are_no_traceback(tmp_path):
    path = record_trip(tmp_path / "a.jsonl")
    for words, code in ((["show", path], 0), (["cat", path], 0), (["show", tmp_path / "no.jsonl"], 2)):
        for closed in (">&-", "2>&-", ">&- 2>&-", "2>/dev/full"):
            line = f'"$@" {closed}'
            done = subprocess.run(
                ["sh", "-c", line, "sh", COMMAND, *words], capture_output=True, env=environment()
            )
            assert done.returncode == code and b"Traceback" not in done.stdout + done.stderr


def test_colour_is_used_only_where_it_is_wanted(tmp_path):
    record_trip(tmp_path / "a.jsonl")
    assert "\x1b[" not in typed("ls", tmp_path).out
    assert "\x1b[" in typed("ls", tmp_path, FORCE_COLOR="1").out
    assert "\x1b[" not in typed("ls", tmp_path, FORCE_COLOR="1", NO_COLOR="1").out


def test_lines_keep_to_the_width_they_have(tmp_path):
    path = record_trip(tmp_path / "a.jsonl", name="a-run-with-quite-a-long-name-" * 4)
    for command in (["ls", tmp_path], ["tail", path]):
        out = typed(*command, COLUMNS="80").out
        assert max(map(len, out.splitlines())) <= 80


def test_on_a_narrow_terminal_nothing_runs_together(tmp_path):
    with reenact.StepLog(tmp_path / "a.jsonl") as log:
        log.record_tool_call("book", {"hotel": "Lisboa"}, error="OverBudget: over the budget", duration_ms=72)
    out = typed("show", tmp_path / "a.jsonl", "--events", COLUMNS="40").out
    (line,) = [line for line in out.splitlines() if "✗ book" in line]
    assert len(line) <= 40 and "ms" not in line.replace("  72 ms", "")


def test_output_that_cannot_encode_our_signs_gets_plain_ones(tmp_path):
    path = record_trip(tmp_path / "a.jsonl")
    code, out, _ = typed("show", path, "--events", PYTHONIOENCODING="ascii")
    assert code == 0
    assert out.isascii() and "> claude-sonnet-4-6, 1 message" in out


def test_the_base_commands_need_nothing_but_the_standard_library(tmp_path):
    path = record_trip(tmp_path / "a.jsonl")
    block = "import sys; sys.modules.update(dict.fromkeys(('rich', 'orjson'), None)); "
    for words in (["ls", str(tmp_path)], ["show", str(path)], ["cat", str(path)], ["doctor", str(path)]):
        code = block + f"from reenact.cli.main import main; raise SystemExit(main({words!r}))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout


def test_a_fault_of_our_own_is_one_sentence_and_a_traceback_only_on_request():
    code = "import reenact.cli.commands.ls as ls; ls.run = lambda *_: 1 / 0; "
    code += "from reenact.cli.main import main; raise SystemExit(main(['ls']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert done.returncode == 2
    assert "please report" in done.stderr and "Traceback" not in done.stderr
    again = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(REENACT_DEBUG="1")
    )
    assert "Traceback" in again.stderr


def test_a_command_loads_no_other_command_and_nothing_of_the_capture_half(tmp_path):
    record_trip(tmp_path / "a.jsonl")
    code = f"from reenact.cli.main import main; main(['ls', {str(tmp_path)!r}]); import sys; "
    code += "print([m for m in sys.modules if '.commands.' in m or '.capture.' in m or m == 'rich'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    assert done.stdout.splitlines()[-1] == "['reenact.cli.commands.ls']"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_description_of_a_command_fits_the_terminal(monkeypatch, capsys, command):
    monkeypatch.setenv("COLUMNS", "80")
    assert main([command, "--help"]) == 0
    description = capsys.readouterr().out.partition("options:")[0]
    assert len(description.splitlines()) > 3 and max(map(len, description.splitlines())) <= 80
