"""reenact demo."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest

import reenact.extras as extras
from support.typed import COMMAND, environment, typed


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    # Without any network: whatever is asked through this proxy fails.
    result = typed("demo", "--keep", folder / "runs", http_proxy="http://127.0.0.1:9", COLUMNS="80")
    return result, folder / "runs"


def test_the_demo_lists_shows_and_explains_a_failed_run(demo):
    (code, out, err), folder = demo
    assert code == 0
    assert "trip-planner" in out and "✗ error  OverBudget: lisboa-plaza: 426 EUR" in out
    assert '"per_night": 8900' in out and "in cents" in out
    assert "Its last words" in err and "OverBudget" in err
    assert len(list(folder.glob("*.jsonl"))) == 1


def test_the_commands_it_recommends_work(demo):
    (_, out, _), folder = demo
    commands = [
        line.partition("reenact ")[2].split()  # we may be no command on the PATH of the tests
        for line in out.partition("try next")[2].splitlines()
        if "reenact " in line
        and " view " not in line  # that one serves until Ctrl-C: tests/cli/test_cli_view.py
    ]
    assert len(commands) >= 4
    for words in commands:
        code, shown, err = typed(*words)
        assert (code, err) == (0, "") and shown


def test_the_folder_it_keeps_is_private(demo):
    _, folder = demo
    modes = {path: path.stat().st_mode & 0o777 for path in [folder, *folder.rglob("*")]}
    assert modes == {path: 0o700 if path.is_dir() else 0o600 for path in modes}


def test_lines_fit_a_small_terminal_and_carry_no_escapes_into_a_pipe(demo):
    (_, out, _), folder = demo
    fixed = [line for line in out.splitlines() if str(folder) not in line and "OverBudget" not in line]
    assert max(map(len, fixed)) <= 80
    assert "\x1b" not in out


def test_it_says_where_the_trace_is_for_programs(tmp_path):
    (row,) = typed("demo", "--keep", tmp_path, "--json").rows
    assert row["status"] == "error" and row["failed_at"]["tool"] == "book"
    assert os.path.dirname(row["path"]) == str(tmp_path)


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = typed("demo", "--keep", tmp_path / "file" / "runs")
    assert code == 2 and err


def on_a_terminal(*words, **env):
    """Run the command with a terminal for its stdout and return what arrives there."""
    main, other = pty.openpty()
    env = environment(TERM="xterm-256color", COLUMNS="80", **env)
    child = subprocess.Popen([COMMAND, *map(str, words)], stdout=other, stderr=subprocess.DEVNULL, env=env)
    os.close(other)
    data = b""
    try:
        while block := os.read(main, 65536):
            data += block
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(main)
    assert child.wait(60) == 0
    return data.decode()


def test_a_terminal_gets_colour_and_none_with_no_color(demo):
    _, folder = demo
    assert extras.have("rich") is not None
    shown = on_a_terminal("ls", folder)
    assert "\x1b[" in shown and "trip-planner" in shown
    event = on_a_terminal("show", folder, "--event", "@error")
    assert '"kind"\x1b[' in event  # rich colours the keys of JSON
    plain = on_a_terminal("ls", folder, NO_COLOR="1")
    assert "\x1b[" not in plain and "trip-planner" in plain


def test_raw_lines_are_made_clean_only_for_a_terminal(tmp_path):
    line = b'{"ts": 1.0, "run": "r", "w": "00000000", "step": 1, "kind": "run.start", "v": "1.0", "name": "a\x1b[2Jb"}\n'
    (tmp_path / "a.jsonl").write_bytes(line)
    assert "\x1b[2J" not in on_a_terminal("cat", tmp_path / "a.jsonl")
    done = subprocess.run([COMMAND, "cat", tmp_path / "a.jsonl"], capture_output=True, env=environment())
    assert done.stdout == line
