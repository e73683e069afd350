"""No field of a trace reaches a terminal as it is: every string field, every reading command, on a terminal and in a pipe.

Each string of a rich run holds the hostile text, names of fields, tools and files too. What a pipe gets as raw lines
(``cat``) is JSON in ASCII, so it is the same there.
"""

from __future__ import annotations

import json
import re
import sys

import pytest

from reenact.tracefile.events.text import clean, one_line, plain, pretty_json, short_json
from support.examples import long
from support.hostile import COMMANDS, command, rich_run

HOSTILE = {
    "clear": "\x1b[2J",
    "reset": "\x1bc",
    "title": "\x1b]0;owned\x07",
    "clipboard": "\x1b]52;c;ZXZpbA==\x1b\\",
    "c1": "\x9b2J\x9d0;owned\x9c\x84",
    "return": "gone\rshown",
    "backspace": "gone\x08\x08\x08\x08shown",
    "bidi": "\u202e\u2066evil\u2069\u200f",
    "zero width": "a\u200b\u2060\ufeffb",
    "bell and nul": "\x07\x00\x7f",
    "line separators": "a\u2028b\u2029c\x85d\x0b\x0ce",
    "surrogate": "\ud83d\x1b[31m\udc00",
}
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
OWN_COLOURS = re.compile(r"\x1b\[(?:[0-9;]*)m")


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "REENACT_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def escaped_in(text: str, *, terminal: bool) -> list[str]:
    """What a terminal would act upon, our own colours left out."""
    return FORBIDDEN.findall(OWN_COLOURS.sub("", text) if terminal else text)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    "name",
    [
        "clear",
        "c1",
        "return",
        "bidi",
        *(long(name) for name in HOSTILE if name not in ("clear", "c1", "return", "bidi")),
    ],
)
def test_no_command_writes_a_control_character_of_a_trace(tmp_path, monkeypatch, name, terminal):
    path = rich_run(
        tmp_path
        / f"t{'' if name in ('bell and nul', 'surrogate') else HOSTILE[name]}.jsonl".replace("/", ""),
        HOSTILE[name],
    )
    monkeypatch.chdir(tmp_path)
    for words in [*COMMANDS, ["ls", str(tmp_path)], ["grep", ".", str(tmp_path)], ["stats", str(tmp_path)]]:
        done = command(*(path if word == "{path}" else word for word in words), terminal=terminal)
        assert not escaped_in(done.out, terminal=terminal), (words, done.out)
        assert not escaped_in(done.err, terminal=terminal), (words, done.err)
        assert "fault" not in done.err and done.code in (0, 1), (words, done.err)


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(
    "name", ["clear", "bidi", *(long(name) for name in HOSTILE if name not in ("clear", "bidi"))]
)
def test_no_command_that_runs_a_trace_writes_one_either(tmp_path, monkeypatch, name, terminal):
    """What they would start or send is refused here, with the program, the host and the reason."""
    path, started = rich_run(tmp_path / "t.jsonl", HOSTILE[name]), tmp_path / "started.jsonl"
    first, rest = path.read_text().split("\n", 1)
    fields = {
        **json.loads(first),
        "command": [sys.executable, "-c", HOSTILE[name]],
        "cwd": str(tmp_path),
        "entry": None,
    }
    started.write_text(json.dumps(fields) + "\n" + rest)  # by a command; the other by a function
    monkeypatch.chdir(tmp_path)
    for words in (
        ["replay", path], ["fork", path, "--at", "turn:1", "--set", "system=x"], ["fork", path, path, "--samples", "2"],
        ["fork", path, "--at", "turn:1", "--one-call"], ["test", path], ["test", path, "--no-check", "-o", "tests"],
        ["doctor", path, "--repair", tmp_path / "repaired.jsonl"], ["replay", path, "--json"],
        ["replay", started], ["fork", started, "--at", "turn:1", "--set", "system=x"], ["test", started],
    ):  # fmt: skip
        done = command(*words, terminal=terminal)
        assert not escaped_in(done.out + done.err, terminal=terminal), (words, done.err)
        assert "fault" not in done.err and done.code in (0, 1, 2), (words, done)


@pytest.mark.parametrize("name", ["c1", "bidi", "zero width"])
def test_characters_that_stand_unescaped_in_the_file_are_removed_for_a_terminal(tmp_path, name):
    path = rich_run(tmp_path / "t.jsonl", HOSTILE[name])
    data = path.read_text()
    text = re.sub(r"\\u([02ef][0-9a-f]{3})", lambda found: chr(int(found[1], 16)), data)
    assert text != data and "\\u" not in text
    path.write_text(text, "utf-8")
    for words in COMMANDS:
        done = command(*(path if word == "{path}" else word for word in words), terminal=True)
        assert not escaped_in(done.out + done.err, terminal=True), (words, done.out)


def test_a_writer_id_that_is_an_escape_is_shown_nowhere(tmp_path):
    path = rich_run(tmp_path / "t.jsonl", "é")  # an escape in the run id: the line is parsed, not looked at
    path.write_bytes(path.read_bytes().replace(b'"w": "9f1c2a7e"', rb'"w": "\u001b[2J"'))
    child = rich_run(tmp_path / "t.p00000001.jsonl", "é")
    child.write_bytes(
        child.read_bytes()
        .replace(b'"w": "9f1c2a7e"', rb'"w": "\u001bc"')
        .replace(b"run.start", b"proc.start")
    )
    for words in COMMANDS:
        for terminal in (True, False):
            done = command(*(path if word == "{path}" else word for word in words), terminal=terminal)
            assert not escaped_in(done.out + done.err, terminal=terminal), (words, done.out)


def test_the_table_fails_where_something_is_passed_on(tmp_path):
    done = command("show", rich_run(tmp_path / "t.jsonl", "owned"), "--all", "--events", terminal=True)
    assert done.out.count("owned") > 20  # the texts of the run are shown at all
    assert (
        escaped_in("\x1b[2J", terminal=True)
        and escaped_in("a\rb", terminal=True)
        and not escaped_in("\x1b[1;31mred\x1b[0m", terminal=True)
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_each_function_that_makes_text_printable_removes_it(name):
    text = f"a{HOSTILE[name]}b"
    for made in (
        plain(text),
        one_line(text),
        clean(text),
        pretty_json({text: text}),
        short_json({text: [text]}, 80),
    ):
        assert not FORBIDDEN.search(made.encode("utf-8", "backslashreplace").decode()), made
