"""Which programs a user has recorded or allowed: kept in the user's state folder, by program and folder."""

from __future__ import annotations

import os
import sys

import pytest

from reenact.capture.runs import allowed_programs
from reenact.capture.runs.allowed_programs import allow, command_key, entry_key, is_allowed, python_program


@pytest.fixture(autouse=True)
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(allowed_programs, "_marked", set())
    return tmp_path / "state"


def key(*words, folder="/"):
    return command_key([sys.executable, *words], folder)


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["agent.py", "--fast"], ["agent.py"]),
        (["-u", "agent.py"], ["agent.py"]),
        (["-X", "dev", "-W", "error", "agent.py", "-c", "x"], ["agent.py"]),
        (["-Xdev", "-Bu", "agent.py"], ["agent.py"]),
        (["-m", "agent", "more"], ["-m", "agent"]),
        (["-um", "agent"], ["-m", "agent"]),
        (["-cprint(1)"], ["-c", "print(1)"]),
        (["-c", "print(1)", "agent.py"], ["-c", "print(1)"]),
        (["--", "agent.py"], ["agent.py"]),
        ([], []),
        (["-i"], []),
        (["-m"], ["-m", ""]),
    ],
)
def test_the_program_of_a_python_is_found_behind_its_options(words, program):
    assert python_program(["python", *words]) == program


def test_a_program_is_allowed_in_its_folder_only_and_whatever_its_arguments(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    assert not is_allowed(key("agent.py", folder=str(here)))
    allow(key("agent.py", folder=str(here)))
    assert is_allowed(key("agent.py", "--fast", folder=str(here)))
    assert is_allowed(key("-u", str(here / "agent.py"), folder=str(here)))
    assert not is_allowed(key("agent.py", folder=str(there)))
    assert not is_allowed(key("other.py", folder=str(here)))


@pytest.mark.parametrize("flag", ["-m", "-c"])
def test_arguments_of_modules_and_of_code_count(flag):
    allow(key(flag, "pytest", "tests"))
    assert is_allowed(key(flag, "pytest", "tests"))
    assert not is_allowed(key(flag, "pytest", "evil.py"))


def test_all_words_of_a_program_that_is_not_python_count():
    allow(command_key(["/bin/sh", "-c", "true"], "/"))
    assert is_allowed(command_key(["/bin/sh", "-c", "true"], "/"))
    assert not is_allowed(command_key(["/bin/sh", "-c", "false"], "/"))


def test_an_entry_is_allowed_in_the_folder_it_is_imported_from():
    allow(entry_key("trip:plan", "/"))
    assert is_allowed(entry_key("trip:plan", "/"))
    assert not is_allowed(entry_key("trip:plan", "/tmp"))
    assert not is_allowed(entry_key("trip:pay", "/"))


def test_the_list_is_private(state):
    allow(key("agent.py"))
    (file,) = (state / "reenact" / "allowed").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert "agent.py" in file.read_text()


def test_a_link_in_its_place_allows_nothing_and_is_not_written_through(state, tmp_path):
    allow(key("agent.py"))
    (file,) = (state / "reenact" / "allowed").iterdir()
    file.unlink()
    precious = tmp_path / "precious"
    precious.write_text("mine")
    file.symlink_to(precious)
    allowed_programs._marked.clear()
    assert not is_allowed(key("agent.py"))
    allow(key("agent.py"))
    assert precious.read_text() == "mine" and not is_allowed(key("agent.py"))


def test_a_state_folder_that_cannot_be_made_is_no_error(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    allow(key("agent.py"))
    assert not is_allowed(key("agent.py"))


@pytest.mark.skipif(os.geteuid() != 0, reason="namespace tests without root")
def test_a_file_of_another_owner_allows_nothing(state):
    allow(key("agent.py"))
    (file,) = (state / "reenact" / "allowed").iterdir()
    os.chown(file, 1234, 1234)
    assert not is_allowed(key("agent.py"))
