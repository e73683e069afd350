"""One bad file of each kind among good ones: every command over a folder reads the good ones and names the bad."""

from __future__ import annotations

import json
import os
import sys

import pytest

from reenact import read_events
from reenact.recording.listing import list_runs
from reenact.stats.many_runs import runs
from reenact.tracefile import dialects
from support.hostile import COMMANDS, DEEP, command, rich_run
from support.typed import typed
from support.written import A, Pen, store_blob

GOOD = ("first", "second")
FAULT = "a fault of its own"


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def changed(folder, old: bytes, new: bytes) -> bytes:
    data = rich_run(folder / "changed.txt").read_bytes()
    assert old in data
    return data.replace(old, new)


def chain_of_nothing() -> bytes:
    pen = Pen()
    requests = [
        pen("model.request", call=A, base=A, keep={"messages": 5}, body={"messages": [{"$same": [A, 0]}] * 9})
    ]
    return b"".join([pen("run.start", v="1.0"), *requests, pen("run.end", status="error")])


BAD = {
    "unhashable": lambda folder: (
        line(type={}, payload=1) + line(kind=[], run={}, ts=[]) + line(type=[], run_id="r")
    ),
    "no_time": lambda folder: changed(folder, b'"ts": 17632', b'"ts": ' + b"9" * 400),
    "no_step": lambda folder: changed(folder, b'"step": ', b'"step": -' + b"9" * 400),
    "deep": lambda folder: changed(folder, b'"found "', b"[" * DEEP + b"]" * DEEP),
    "deeper": lambda folder: changed(folder, b'"found "', b"[" * 100_000 + b"]" * 100_000),
    "digits": lambda folder: changed(folder, b'"in":5', b'"in":' + b"9" * 4200),
    "texts": lambda folder: changed(folder, b'"usage": {', b'"usage": {"input":"many","output":[{}],'),
    "circle": lambda folder: chain_of_nothing(),
    "binary": lambda folder: bytes(range(256)) * 99,
    "nuls": lambda folder: bytes(1 << 16),
    "newlines": lambda folder: b"\n" * (1 << 16),
    "empty": lambda folder: b"",
    "newer": lambda folder: Pen()("run.start", v="9.0"),
    "session": lambda folder: line(type="user", uuid="u", sessionId="s"),
    "torn": lambda folder: rich_run(folder / "torn.txt").read_bytes()[:-99],
    "latin": lambda folder: changed(folder, b"found", b"\xff\xfe"),
    "keys": lambda folder: changed(
        folder, b'"kind": "note"', b'"kind": "note", "kind": 5, "ts": {}, "w": 7, "run": []'
    ),
    "escapes": lambda folder: rich_run(folder / "e.txt", "\x1b]0;gone\x07\x9b2J\u202e").read_bytes(),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("REENACT_DEBUG", "1")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs"
    folder.mkdir()
    for number, name in enumerate(GOOD):
        pen = Pen(run=f"{number:032x}")
        rows = [
            pen("run.start", v="1.0", name=name),
            pen("note", text=f"hotels of {name}"),
            pen("run.end", status="error"),
        ]
        (folder / f"{name}.jsonl").write_bytes(b"".join(rows))
    return folder


def plant(folder, tmp_path, name):
    (folder / f"{name}.jsonl").write_bytes(BAD[name](tmp_path))


def plant_special(folder):
    os.mkfifo(folder / "pipe.jsonl")
    os.mkfifo(folder / "first.s0001.jsonl")
    (folder / "link.jsonl").symlink_to("first.jsonl")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    (folder / "folder.jsonl").mkdir()
    reference = store_blob(folder / "linked.jsonl", "x" * 99)
    blob = folder / "linked.blobs" / reference["$blob"].removeprefix("sha256:")
    blob.unlink()
    os.mkfifo(blob)
    pen = Pen()
    (folder / "linked.jsonl").write_bytes(
        pen("run.start", v="1.0") + pen("note", text=reference) + pen("run.end")
    )


OVER_A_FOLDER = [
    ["ls", "{path}"],
    ["ls", "{path}", "--failed", "--json"],
    ["stats", "{path}"],
    ["stats", "{path}", "--by", "run", "--json"],
    ["stats", "{path}", "--by", "day", "--csv"],
    ["stats", "{path}", "--failed", "--since", "2001-01-01"],
    ["grep", "hotels of", "{path}"],
    ["grep", "hotels of", "{path}", "--json"],
    ["doctor", "{path}"],
    ["doctor", "{path}", "--json"],
    ["show", "{path}"],
    ["cat", "{path}"],
    ["messages", "{path}"],
    ["test", "{path}", "--failed", "--no-check", "-o", "tests/test_made.py"],
]  # fmt: skip


def check(folder, bad):
    for words in OVER_A_FOLDER:
        done = command(*(folder if word == "{path}" else word for word in words))
        assert FAULT not in done.err and "Traceback" not in done.err, (words, done.err)
        assert "\x1b" not in done.out + done.err and "\x9b" not in done.out + done.err
        if words[0] in ("ls", "grep", "doctor") or "run" in words:
            assert all(name in done.out for name in GOOD), (words, done.out)
    assert set(GOOD) <= {row.name for row in runs(folder)}
    found = []
    texts = [event.text for event in read_events(folder, on_finding=found.append) if event.kind == "note"]
    assert all(f"hotels of {name}" in texts for name in GOOD)
    rows = {os.path.basename(row.path): row for row in list_runs(str(folder))}
    assert rows.keys() >= {f"{name}.jsonl" for name in (*GOOD, *bad)}


@pytest.mark.parametrize("bad", BAD)
def test_one_bad_file_breaks_no_command_over_its_folder(folder, tmp_path, bad):
    plant(folder, tmp_path, bad)
    check(folder, [bad])


def test_pipes_links_and_devices_break_no_command_over_their_folder(folder):
    plant_special(folder)
    check(folder, [])


def test_all_bad_files_at_once_are_named_beside_the_good_ones(folder, tmp_path):
    for bad in BAD:
        plant(folder, tmp_path, bad)
    plant_special(folder)
    check(folder, BAD)
    assert typed("show", "@failed", REENACT_DIR=str(folder)).code == 0


@pytest.mark.long
def test_each_bad_file_alone_ends_in_an_answer_or_a_sentence(folder, tmp_path):
    for bad in BAD:
        plant(folder, tmp_path, bad)
        for words in COMMANDS:
            done = command(*(folder / f"{bad}.jsonl" if word == "{path}" else word for word in words))
            assert FAULT not in done.err and done.code in (0, 1, 2), (bad, words, done.err)


def test_a_fault_of_ours_in_one_file_leaves_the_others(folder, monkeypatch):
    pen = Pen()
    (folder / "odd.jsonl").write_bytes(
        pen("run.start", v="1.0") + pen("faulty") + pen("note")[:-5] + b"\n" + pen("note")
    )
    recognise = dialects.recognise

    def faulty(fields):
        if fields.get("kind") == "faulty":
            raise ZeroDivisionError("a mistake of ours")
        return recognise(fields)

    monkeypatch.setattr(dialects, "recognise", faulty)
    check(folder, ["odd"])
    assert "a mistake of ours" in command("ls", folder).out
    assert "a mistake of ours" in command("stats", folder).err
    assert "a mistake of ours" in command("grep", "faulty", folder).err


SETTINGS = {
    "a pipe": lambda path: os.mkfifo(path),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path),
    "a folder": lambda path: path.mkdir(),
    "no table": lambda path: path.write_text("tool = 5 # tool.reenact\nprices = 5\nrun = []\neffects = 7\n"),
    "digits": lambda path: path.write_text("x = " + "9" * 5000 + " # tool.reenact"),
    "nesting": lambda path: path.write_text("tool.reenact.x = " + "[" * 5000 + "]" * 5000),
    "no text": lambda path: path.write_bytes(b"\xff\xfe tool.reenact \0"),
    "escapes": lambda path: path.write_text("tool.reenact.\x1b[2J = \x9b"),
}


@pytest.mark.parametrize("name", ["reenact.toml", "pyproject.toml"])
@pytest.mark.parametrize("settings", SETTINGS)
def test_settings_that_come_with_a_repository_end_in_an_answer_or_a_sentence(
    folder, tmp_path, name, settings
):
    SETTINGS[settings](tmp_path / name)
    for words in (["ls"], ["show"], ["stats"], ["doctor"]):
        done = command(*words, folder)
        assert FAULT not in done.err and done.code in (0, 1, 2), done.err
        assert "\x1b" not in done.err and "\x9b" not in done.err
    assert command("ls", folder).code == 0


LARGE = "x" * 900_000
RUN_SETTINGS = {
    "wrong types": "run = {name = 5}",
    "a list of numbers": f"run = {{hosts = [{'5, ' * 100_000}]}}",
    "a long name of nothing": f"run = {{{LARGE} = 5}}",
    "a long text": f'run = {{content = "{LARGE}"}}',
    "a NUL": r'run = {out = "a\u0000b"}',
    "a NUL in a list": r'run = {hosts = ["a\u0000b"]}',
    "escapes": r'run = {"\u001b[2J" = "\u009b"}',
    "the whole disk": 'run = {workspace = "/"}',
    "no modules": 'run = {ambient = ["os;x", "../x"]}',
    "a date": "run = {name = 1979-05-27}",
    "no redaction": "run = {redact = false}",
    "a program": 'run = {command = ["touch", "RAN"]}',
    "too large": f"# {LARGE} {LARGE}\nrun = {{name = 'gone'}}",
}


@pytest.mark.parametrize("name", ["reenact.toml", "pyproject.toml"])
@pytest.mark.parametrize("settings", RUN_SETTINGS)
def test_settings_of_a_run_that_cannot_be_are_named_in_a_short_sentence(tmp_path, name, settings):
    text = RUN_SETTINGS[settings]
    (tmp_path / name).write_text(text if name == "reenact.toml" else f"[tool.reenact]\n{text}")
    (tmp_path / "agent.py").write_text("open('RAN', 'w')")
    done = typed("run", "agent.py", cwd=tmp_path)
    assert done.code == 2 and FAULT not in done.err and len(done.err) < 1000, done.err[:2000]
    assert "\x1b" not in done.err and "\x9b" not in done.err
    assert not (tmp_path / "RAN").exists()


def test_settings_grant_no_permission(tmp_path):
    """Whatever words a file of a project has for it."""
    words = (
        "yes = true\nallow = ['*']\nallowed = 'all'\npermission = true\ntrust = true\nlive_tools = ['all']\n"
    )
    effects = '[effects]\n"*" = "pure"\n[prices.m]\ninput = 0\noutput = 0\n'
    (tmp_path / "reenact.toml").write_text(words + effects)
    (tmp_path / "agent.py").write_text("open('RAN', 'w')")
    pen = Pen()
    rows = [pen("run.start", v="1.0", command=[sys.executable, "agent.py"], cwd=str(tmp_path))]
    rows += [
        pen(
            "model.request",
            call=A,
            provider="anthropic",
            body={"model": "m", "messages": [{"role": "user", "content": "x"}]},
        )
    ]
    rows += [pen("model.response", call=A, body={"role": "assistant", "content": "y"}), pen("run.end")]
    (tmp_path / "RUN.jsonl").write_bytes(b"".join(rows))
    for command_words in (["replay", "RUN.jsonl"], ["fork", "RUN.jsonl"], ["test", "RUN.jsonl", "-o", "t"]):
        done = typed(*command_words, cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
        assert done.code == 2 and "not started: " in done.err, done
    assert not (tmp_path / "RAN").exists() and not (tmp_path / "t").exists()


NAMES_CODE = """
[tools]
lookup = { function = "evil:f", effect = "pure" }
"PATTERN" = "pure"
[prices."PATTERN"]
input = 0
output = 0
""".replace("PATTERN", "*a" * 200 + "b")


def test_settings_that_name_code_import_none_of_it_and_long_patterns_take_no_time(folder, tmp_path):
    (tmp_path / "reenact.toml").write_text(NAMES_CODE)
    (tmp_path / "evil.py").write_text("open('RAN', 'w')\ndef f(**_): open('RAN', 'w')\n")
    path = rich_run(tmp_path / "t.jsonl", "a" * 100)
    for words in [*COMMANDS, ["test", "{path}", "--no-check", "-o", "made"]]:
        done = command(*(path if word == "{path}" else word for word in words))
        assert FAULT not in done.err and done.code in (0, 1, 2), done.err
    (tmp_path / "agent.py").write_text("print('done')")
    done = typed("run", "agent.py", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert (done.code, done.out) == (0, "done\n"), done
    assert not (tmp_path / "RAN").exists()
