"""A trace says what to run; nothing runs that the user has not recorded or allowed: counted by real files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reenact.testing import write_trace
from support.posting import POST
from support.typed import environment, on_a_terminal, typed

REQUEST = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
ANSWER = {"type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "hi"}]}
CALL = [
    ("model.request", {"call": "a", "provider": "anthropic", "body": REQUEST}),
    ("model.response", {"call": "a", "provider": "anthropic", "body": ANSWER}),
]
TOUCH = "open('PWNED', 'w')"
STARTS = {
    "shell": {"command": ["/bin/sh", "-c", "touch PWNED"]},
    "code": {"command": [sys.executable, "-c", TOUCH]},
    "script": {"command": [sys.executable, "evil.py"]},
    "module of ours": {"command": [sys.executable, "-m", "evilmod"]},
    "standard library": {"entry": "os:system", "input": {"command": "touch PWNED"}},
    "its own module": {"entry": "evilmod:f", "entry_from": "FOLDER", "input": {}},
    "application": {"entry": "asgi:evilmod:app", "input": {"method": "GET", "url": "/"}},
}
COMMANDS = {
    "replay": ["replay", "RUN"],
    "fork": ["fork", "RUN", "--at", "turn:1", "--set", "system=x"],
    "fork many": ["fork", "RUN", "RUN2", "--at", "turn:1", "--set", "system=x"],
    "fork samples": ["fork", "RUN", "--at", "turn:1", "--set", "system=x", "--samples", "2"],
    "test": ["test", "RUN", "-o", "tests"],
}


@pytest.fixture
def hostile(tmp_path):
    """A folder with a trace and the programs it names, as somebody may send it."""

    def make(start):
        for name in ("evil.py", "evilmod.py"):
            (tmp_path / name).write_text(f"{TOUCH}\ndef f(): {TOUCH}\nasync def app(*_): {TOUCH}\n")
        fields = {key: str(tmp_path) if value == "FOLDER" else value for key, value in start.items()}
        fields = {"host": os.uname().nodename, "cwd": str(tmp_path), **fields}
        for name in ("RUN", "RUN2"):
            path = tmp_path / f"{name}.jsonl"
            first, rest = Path(write_trace(path, CALL, run=name)).read_text().split("\n", 1)
            path.write_text(first[:-1] + ", " + json.dumps(fields)[1:] + "\n" + rest)
        return tmp_path

    return make


def words(command):
    return [f"{word}.jsonl" if word in ("RUN", "RUN2") else word for word in COMMANDS[command]]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("start", STARTS)
def test_nothing_of_a_trace_that_somebody_sent_runs_without_yes(hostile, start, command):
    folder = hostile(STARTS[start])
    done = typed(*words(command), cwd=folder, XDG_STATE_HOME=str(folder / "state"))
    assert done.code == 2, done
    is_refused = any(
        reason in done.err for reason in ("not started: ", "code is not imported from elsewhere")
    )
    assert is_refused, done.err
    assert not (folder / "PWNED").exists()
    assert not (folder / "tests").exists()


@pytest.mark.parametrize("command", ["replay", "fork", "fork many", "test"])
def test_the_refusal_says_what_would_run_and_how_to_allow_it(hostile, command):
    folder = hostile(STARTS["script"])
    done = typed(*words(command), cwd=folder, XDG_STATE_HOME=str(folder / "state"))
    assert "evil.py" in done.err and str(folder) in done.err and "--yes" in done.err


def test_yes_starts_it_and_holds_for_the_next_time(hostile):
    folder = hostile(STARTS["script"])
    (folder / "evil.py").write_text("print('ran')\n")
    state = str(folder / "state")
    assert typed("replay", "RUN.jsonl", cwd=folder, XDG_STATE_HOME=state).code == 2
    assert "ran" in typed("replay", "RUN.jsonl", "--yes", cwd=folder, XDG_STATE_HOME=state).out
    again = typed("replay", "RUN.jsonl", cwd=folder, XDG_STATE_HOME=state)
    assert "ran" in again.out and "evil.py" in again.err  # what runs is printed each time


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"command": ["/bin/sh", "-c", "echo ran"]}, "not a Python program"),
        ({"command": [sys.executable, "evil.py"], "host": "somewhere-else"}, "somewhere-else"),
    ],
)
def test_what_is_foreign_needs_permission_each_time(hostile, fields, reason):
    folder = hostile(fields)
    (folder / "evil.py").write_text("print('ran')\n")
    state = str(folder / "state")
    for _ in range(2):
        refused = typed("replay", "RUN.jsonl", cwd=folder, XDG_STATE_HOME=state)
        assert refused.code == 2 and reason in refused.err and "ran" not in refused.out
        assert "ran" in typed("replay", "RUN.jsonl", "--yes", cwd=folder, XDG_STATE_HOME=state).out


@pytest.mark.skipif(os.geteuid() != 0, reason="namespace tests without root")
def test_a_file_of_another_owner_needs_permission_though_the_program_is_allowed(hostile):
    folder = hostile(STARTS["script"])
    (folder / "evil.py").write_text("print('ran')\n")
    state = str(folder / "state")
    typed("run", "evil.py", cwd=folder, XDG_STATE_HOME=state)
    assert "ran" in typed("replay", "RUN.jsonl", cwd=folder, XDG_STATE_HOME=state).out
    os.chown(folder / "RUN.jsonl", 1234, 1234)
    refused = typed("replay", "RUN.jsonl", cwd=folder, XDG_STATE_HOME=state)
    assert refused.code == 2 and "another user" in refused.err


def test_recording_a_program_allows_its_replay_in_that_folder_alone(hostile, tmp_path_factory):
    folder = hostile(STARTS["script"])
    (folder / "evil.py").write_text("print('ran')\n")
    state = str(folder / "state")
    typed("run", "evil.py", cwd=folder, XDG_STATE_HOME=state)
    assert "ran" in typed("replay", "RUN.jsonl", cwd=folder, XDG_STATE_HOME=state).out
    other = tmp_path_factory.mktemp("other")
    (other / "evil.py").write_text(TOUCH)
    lines = (folder / "RUN.jsonl").read_text().replace(str(folder), str(other))
    (other / "RUN.jsonl").write_text(lines)
    assert typed("replay", "RUN.jsonl", cwd=other, XDG_STATE_HOME=state).code == 2
    assert not (other / "PWNED").exists()


def test_the_answer_is_kept_in_the_users_state_folder_and_not_in_the_project(hostile):
    folder = hostile(STARTS["script"])
    (folder / "evil.py").write_text("print('ran')\n")
    state = folder.parent / f"{folder.name}-state"
    typed("replay", "RUN.jsonl", "--yes", cwd=folder, XDG_STATE_HOME=str(state))
    assert list((state / "reenact" / "allowed").iterdir())
    assert not [path for path in folder.rglob("*") if "allowed" in path.name]


def test_a_command_that_the_user_types_needs_no_permission(hostile):
    folder = hostile(STARTS["shell"])
    (folder / "mine.py").write_text("print('mine')\n")
    done = typed("replay", "RUN.jsonl", "--", "mine.py", cwd=folder, XDG_STATE_HOME=str(folder / "state"))
    assert "mine" in done.out and not (folder / "PWNED").exists()


def test_a_test_that_is_not_checked_runs_nothing_and_needs_no_permission(hostile):
    folder = hostile(STARTS["script"])
    done = typed(
        "test", "RUN.jsonl", "--no-check", "-o", "tests", cwd=folder, XDG_STATE_HOME=str(folder / "state")
    )
    assert done.code == 0, done.err
    assert not (folder / "PWNED").exists()


@pytest.mark.parametrize(
    "command", [[sys.executable, "evil.py"], ["/bin/sh", "-c", "echo quiet"]], ids=["Python", "shell"]
)
def test_a_test_of_a_program_that_makes_no_call_is_refused(hostile, command):
    folder = hostile({"command": command})
    (folder / "evil.py").write_text("print('quiet')\n")
    done = typed(
        "test", "RUN.jsonl", "--yes", "-o", "tests", cwd=folder, XDG_STATE_HOME=str(folder / "state")
    )
    assert done.code == 2 and not (folder / "tests").exists(), done


def test_a_function_elsewhere_does_not_become_code_of_a_test(hostile):
    folder = hostile(STARTS["standard library"])
    state = str(folder / "state")
    done = typed("test", "RUN.jsonl", "--no-check", "-o", "tests", cwd=folder, XDG_STATE_HOME=state)
    assert done.code == 2 and "os:system is not in" in done.err and not (folder / "tests").exists()


@pytest.mark.parametrize(("typed_in", "runs"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_it_asks_and_only_yes_starts_it(hostile, typed_in, runs):
    folder = hostile(STARTS["script"])
    (folder / "evil.py").write_text("open('RAN', 'w') if 0 else print('it ' + 'ran')\n")
    screen, code = on_a_terminal(["replay", "RUN.jsonl"], typed_in, folder)
    assert "evil.py" in screen and "[y/N]" in screen
    assert ("it ran" in screen) is runs
    if not runs:
        assert code == 2


ENTRY = (
    POST
    + """
import os
import reenact

@reenact.run
def plan(city):
    ask = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": city}]}
    return post(os.environ["MODEL_URL"] + "/v1/messages", ask)["content"][0]["text"]
"""
)


def record_entry(folder, provider, state, module_folder=None):
    """Record a call of a decorated function by a program of one's own; returns the environment."""
    place = module_folder or folder
    place.mkdir(exist_ok=True)
    (place / "trip.py").write_text(ENTRY)
    env = environment(XDG_STATE_HOME=str(state), MODEL_URL=provider.url("text"), PYTHONPATH=str(place))
    program = "import reenact; reenact.install(); import trip; print(trip.plan('Lisbon'))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return {key: env[key] for key in ("XDG_STATE_HOME", "MODEL_URL")}


def test_a_function_that_one_has_recorded_is_called_again_without_a_question(tmp_path, provider):
    env = record_entry(tmp_path, provider, tmp_path / "state")
    done = typed("replay", "plan", cwd=tmp_path, **env)
    assert done.code == 0 and "trip:plan" in done.err, done


def test_a_function_is_imported_only_from_the_folder_one_is_in_or_names(tmp_path, provider):
    """A module elsewhere is not looked for where the trace says."""
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    here.mkdir()
    env = record_entry(here, provider, tmp_path / "state", elsewhere)
    for command in (["replay", "plan"], ["test", "plan", "-o", "tests"]):
        refused = typed(*command, cwd=here, **env)
        assert refused.code == 2 and f"--from {elsewhere}" in refused.err, refused
    done = typed("replay", "plan", "--from", elsewhere, cwd=here, **env)
    assert done.code == 0, done


def test_a_refusal_is_one_line_for_programs(hostile):
    folder = hostile(STARTS["shell"])
    done = typed("replay", "RUN.jsonl", "--json", cwd=folder, XDG_STATE_HOME=str(folder / "state"))
    assert done.code == 2 and not done.out
    assert json.dumps("touch PWNED")[1:-1] in done.err
