"""Whatever a file is or has become: the right exit code, sentences instead of tracebacks, nothing changed."""

from __future__ import annotations

import json
import os

import pytest

import reenact
from reenact.schema import ENVELOPE
from reenact.tracefile.dialects import KIND_KEYS, ORDER_KEYS, RUN_KEYS, TIME_KEYS
from support.examples import long, one_in
from support.typed import obey_permissions, record_trip, run_bytes, snapshot, typed, typed_many

READERS = (
    ["show"],
    ["show", "--json"],
    ["cat"],
    ["cat", "--full"],
    ["cat", "--stable"],
    ["tail"],
    ["doctor"],
    ["grep", "hotels"],
    ["ls"],
)


def command(words, path):
    if words[0] == "tail":
        return [*words, path, "--no-follow"]
    return [*words, path]


def lines_of(path):
    return path.read_bytes().splitlines(keepends=True)


def torn(data, lines):
    return data[: -len(lines[-1]) // 2]


DAMAGE = {
    "torn": torn,
    "torn-in-the-middle": lambda data, lines: lines[0] + lines[1][:80] + b"\n" + b"".join(lines[2:]),
    "fused": lambda data, lines: lines[0] + lines[1][:-1] + b"".join(lines[2:]),
    "half-fused": lambda data, lines: lines[0] + lines[1][:80] + b"".join(lines[2:]),
    "nul": lambda data, lines: lines[0] + b"\0" * 4096 + b"".join(lines[1:]),
    "nul-tail": lambda data, lines: data + b"\0" * 4096,
    "bom": lambda data, lines: b"\xef\xbb\xbf" + data,
    "crlf": lambda data, lines: data.replace(b"\n", b"\r\n"),
    "line-separator": lambda data, lines: data.replace(b"Plan Lisbon", "Plan\u2028Lisbon\u2029\u0085".encode(), 1),
    "not-utf-8": lambda data, lines: data.replace(b"Plan Lisbon", b"Plan \xff\xfe\xe9 Lisbon", 1),
    "lost-header": lambda data, lines: b"".join(lines[1:]),
    "lost-middle": lambda data, lines: b"".join(lines[:3] + lines[5:]),
    "repeated": lambda data, lines: b"".join(lines[:4] + lines[2:]),
    "two-writers": lambda data, lines: b"".join(sorted(lines + [line.replace(b'"w": "', b'"w": "f', 1) for line in lines])),
    "other-output": lambda data, lines: b"INFO starting\n" + lines[0] + b"warning: {hot}\n[1, 2]\n" + b"".join(lines[1:]),
    "empty-lines": lambda data, lines: b"\n\n".join(line.strip() for line in lines) + b"\n\n\n",
    "wrong-types": lambda data, lines: lines[0] + b'{"ts": 1.0, "run": "r", "w": "00000000", "step": 2, "kind": '
    b'"model.request", "call": 7, "base": [], "keep": 3, "n": "x", "body": {"messages": {}}, "tot": 5, "usage": []}\n'
    + b"".join(lines[1:]),
    "deep": lambda data, lines: lines[0] + b'{"a":' * 100_000 + b"\n" + b"".join(lines[1:]),
    "only-a-beginning": lambda data, lines: lines[0][:40],
}  # fmt: skip


@pytest.mark.parametrize("damage", one_in(2, DAMAGE))
def test_a_damaged_file_is_read_as_far_as_it_can_be_and_never_changed(tmp_path, damage):
    path = record_trip(tmp_path / "trip.jsonl")
    data = path.read_bytes()
    path.write_bytes(DAMAGE[damage](data, lines_of(path)))
    before = snapshot(tmp_path)
    for words, (code, out, err) in zip(
        READERS, typed_many(command(words, path) for words in READERS), strict=True
    ):
        assert code in ((0, 1) if words[0] in ("doctor", "grep") else (0,)), (words, err)
        if damage != "only-a-beginning":
            assert out, words
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "damage", [name for name in DAMAGE if name not in ("line-separator", "empty-lines", "two-writers")]
)
def test_damage_is_named_by_show_and_found_by_doctor(tmp_path, damage):
    path = record_trip(tmp_path / "trip.jsonl")
    path.write_bytes(DAMAGE[damage](path.read_bytes(), lines_of(path)))
    shown, checked = typed_many([["show", path], ["doctor", path]])
    assert str(path) in shown.err and checked.code == 1


def test_damage_in_the_middle_hides_nothing_around_it(tmp_path):
    path = record_trip(tmp_path / "trip.jsonl")
    path.write_bytes(DAMAGE["half-fused"](path.read_bytes(), lines_of(path)))
    out = typed("show", path).out
    assert 'search(q="hotels")' in out and "the model did not answer" in out


def test_missing_long_texts_are_findings_and_their_beginnings_are_shown(tmp_path):
    path = record_trip(tmp_path / "trip.jsonl")
    for blob in (tmp_path / "trip.blobs").iterdir():
        blob.unlink()
    code, out, err = typed("show", path, "--event", "5")
    assert code == 0
    assert "Hotel Lisboa, 82 EUR" in out and "not beside the file" in err
    assert typed("show", path).code == 0
    assert typed("cat", path, "--full").code == 0
    assert typed("doctor", path).code == 1


UNUSABLE = {
    "binary": bytes(range(256)) * 64,
    "text": b"just a text\nof two lines\n",
    "claude-session": b'{"type":"user","uuid":"1","sessionId":"2","message":{"role":"user"}}\n' * 3,
    "json-array": b'[{"ts": 1}, {"ts": 2}]\n',
    "newer-major": b'{"ts": 1.0, "run": "r", "w": "00000000", "step": 1, "kind": "run.start", "v": "2.0"}\n',
}


@pytest.mark.parametrize("what", UNUSABLE)
def test_a_file_that_is_no_trace_is_refused_with_a_sentence_and_a_hint(tmp_path, what):
    path = tmp_path / "file.jsonl"
    path.write_bytes(UNUSABLE[what])
    results = typed_many(command(words, path) for words in READERS[:-1])
    for words, (code, _, err) in zip(READERS, results, strict=False):
        assert code == 2, (words, err)
        assert str(path) in err and "hint:" in err
    assert typed("ls", path).code == 0
    assert path.read_bytes() == UNUSABLE[what]


@pytest.mark.parametrize("words", READERS)
def test_a_path_that_is_not_there_is_refused_and_its_neighbours_named(tmp_path, words):
    record_trip(tmp_path / "trip.jsonl")
    code, out, err = typed(*command(words, tmp_path / "tripp.jsonl"))
    assert (code, out) == (2, "")
    assert "does not exist" in err
    assert words[0] == "ls" or "trip.jsonl" in err


@pytest.mark.parametrize("words", READERS)
def test_an_empty_file_is_an_empty_run(tmp_path, words):
    path = tmp_path / "empty.jsonl"
    path.touch()
    code, out, err = typed(*command(words, path))
    assert code == (1 if words[0] in ("doctor", "grep") else 0)
    assert "the file is empty" in out + err


@pytest.mark.parametrize(
    "words", [["why", "empty.jsonl"], ["why", "empty.jsonl", "hotels"], ["diff"] + ["empty.jsonl"] * 2]
)
def test_an_empty_file_explains_nothing(tmp_path, words):
    (tmp_path / "empty.jsonl").touch()
    code, _, err = typed(*words, cwd=tmp_path)
    assert code in (1, 2) and "fault" not in err and "empty" in err, err


@pytest.mark.parametrize("words", READERS)
def test_a_folder_without_runs_in_place_of_a_file_is_no_traceback(tmp_path, words):
    code, out, err = typed(*command(words, tmp_path))
    assert code == {"ls": 0, "grep": 1}.get(words[0], 2)
    assert out == ""
    assert err or words[0] == "grep"


@pytest.mark.parametrize("words", READERS)
def test_a_file_that_cannot_be_opened_is_a_sentence(tmp_path, words):
    loop = tmp_path / "loop.jsonl"
    loop.symlink_to(loop)
    record_trip(tmp_path / "locked.jsonl").chmod(0)
    for path in [loop] if os.geteuid() == 0 else [loop, tmp_path / "locked.jsonl"]:
        code, _, err = typed(*command(words, path))
        assert code in (0, 2) if words[0] == "ls" else code == 2
        assert err or words[0] == "ls"


def test_a_file_that_may_not_be_read_is_not_reported_as_missing(tmp_path):
    path = record_trip(tmp_path / "locked" / "trip.jsonl")
    path.parent.chmod(0)
    try:
        code, _, err = typed("show", path, start=obey_permissions)
    finally:
        path.parent.chmod(0o700)
    assert code == 2 and "permission denied" in err and "not exist" not in err


def test_a_mistyped_path_is_answered_with_the_files_most_like_it(tmp_path):
    for name in ("trip", "trap", "other", "trip.p0123abcd"):
        record_trip(tmp_path / f"{name}.jsonl")
    code, _, err = typed("show", tmp_path / "trop.jsonl")
    assert code == 2 and "hint: there is trip.jsonl, trap.jsonl\n" in err


def test_a_pipe_is_refused_instead_of_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe.jsonl")
    for words in (["show"], ["cat"], ["tail"]):
        code, _, err = typed(*words, tmp_path / "pipe.jsonl")
        assert code == 2 and "not a plain file" in err


def test_a_pipe_and_a_link_to_itself_hold_up_no_other_file_of_their_folder(tmp_path):
    record_trip(tmp_path / "trip.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to("pipe.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    code, out, _ = typed("ls", tmp_path)
    assert code == 0 and "trip" in out and out.count("pipe or device") == 1 and out.count("a link") == 2
    assert typed("ls", tmp_path / "pipe.jsonl").out.count("pipe or device") == 1
    code, out, err = typed("grep", "hotels", tmp_path)
    assert code == 0 and "trip.jsonl" in out and err.count("left out") == 3
    code, out, err = typed("doctor", tmp_path)
    assert (
        code == 2
        and "nothing is damaged" in out
        and err.count("not a plain file") == 1
        and err.count("a link") == 2
    )
    assert typed("show", REENACT_DIR=str(tmp_path)).code == 0


@pytest.mark.parametrize("address", ["@nope", "@", "no-such-run", "ffffffff", "'; rm -rf", "\x1b[2J", "a\nb"])
def test_a_run_that_is_not_there_is_refused(tmp_path, address):
    record_trip(tmp_path / "trip.jsonl")
    for words in (["show"], ["cat"], ["tail"], ["doctor"]):
        code, out, err = typed(*words, address, REENACT_DIR=str(tmp_path))
        assert (code, out) == (2, "")
        assert err and "\x1b" not in err


def test_a_hostile_reference_reads_no_file_outside_the_folder(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    folder = tmp_path / "runs"
    folder.mkdir()
    path = record_trip(folder / "trip.jsonl")
    digest = next((folder / "trip.blobs").iterdir()).name
    for name in ("../../secret.txt", str(secret), "sha256:../../secret.txt"):
        hostile = path.read_bytes().replace(f"sha256:{digest}".encode(), name.encode())
        (folder / "hostile.jsonl").write_bytes(hostile)
        for words in (["show", "--event", "5"], ["cat", "--full"], ["grep", "secret"]):
            where = (
                [words[0], *words[1:], folder / "hostile.jsonl"]
                if words[0] == "grep"
                else [words[0], folder / "hostile.jsonl", *words[1:]]
            )
            assert b"the secret" not in run_bytes(*where).stdout


NO_TEXT = ({}, [], None, True, 7, 1.5)
"""Values of JSON that are no text, some of which cannot be looked up in a set."""

ODD_OBJECTS = {
    "type": [{"type": value, "payload": 1} for value in NO_TEXT],
    "kinds": [{key: value, "payload": 1} for key in KIND_KEYS for value in NO_TEXT],
    "times": [{"kind": "note", "run": "r", key: value} for key in TIME_KEYS for value in ({}, [], True, "x")],
    "runs": [{"type": "tool_call", "step": 1, key: value} for key in RUN_KEYS for value in NO_TEXT],
    "steps": [{"type": "tool_call", "run_id": "r", key: v} for key in ORDER_KEYS for v in ({}, [], "x")],
    "envelope": [
        {"ts": 1.0, "run": "r", "w": "0", "step": 1, "kind": "note"} | {key: value}
        for key in ENVELOPE
        for value in ({}, [], None)
    ],
}


@pytest.mark.parametrize("where", [long("first"), "middle", long("last")])
@pytest.mark.parametrize("what", ODD_OBJECTS)
def test_an_odd_object_in_a_file_hides_neither_its_events_nor_other_runs(tmp_path, what, where):
    good, odd = record_trip(tmp_path / "good.jsonl"), record_trip(tmp_path / "odd.jsonl", name="odd")
    lines = lines_of(odd)
    at = {"first": 0, "middle": 2, "last": len(lines)}[where]
    hostile = [json.dumps(each).encode() + b"\n" for each in ODD_OBJECTS[what]]
    odd.write_bytes(b"".join([*lines[:at], *hostile, *lines[at:]]))
    run = json.loads(lines[0])["run"]
    before = snapshot(tmp_path)

    kinds = [event.kind for event in reenact.read_events(good)]
    assert [event.kind for event in reenact.read_events(odd, run=run)] == kinds
    recording = reenact.Recording.load(odd, run=run)
    assert [event.kind for event in recording.lines if event.run_id == run] == kinds
    assert reenact.Debugger.load(odd, run=run).where(tool="search")
    assert reenact.replay(odd, 2, run=run) == reenact.replay(good, 2)
    assert {each.id for each in reenact.runs(tmp_path)} >= {run, reenact.Recording.load(good).run_id}

    own = [["show", odd, "--run", run], ["messages", odd, "--run", run], ["tail", odd, "--no-follow"]]
    folder = [["ls", tmp_path], ["stats", tmp_path], ["grep", "hotels", tmp_path], ["doctor", odd]]
    *shown, listed, summed, found, checked = typed_many([*own, *folder])
    assert all(each.code == 0 and each.out for each in shown), shown
    assert listed.code == summed.code == found.code == 0 and checked.code in (0, 1)
    assert {"trip", "odd"} <= set(listed.out.split()) and summed.out
    assert "good.jsonl" in found.out and "odd.jsonl" in found.out
    assert snapshot(tmp_path) == before


WRITERS = ("\x1b[2J", "\x1bc", "\x9b2J", "\u202egnp", "\ud800", "a b", "a\nb", '"', "", "9" * 99, "ä", "٣٤")
"""Writer ids that no recorder writes: escapes of terminals, no ASCII, long, empty."""


@pytest.mark.parametrize("run", ["r1", "r\x1b1"], ids=["plain-run", "escaped-run"])
def test_a_writer_id_never_reaches_the_terminal_as_it_is(tmp_path, run):
    path = tmp_path / "w.jsonl"
    text = ""
    for number, w in enumerate(("00000001", *WRITERS)):
        call = {"call": f"c{number}", "lane": "main"}
        asks = {
            "provider": "anthropic",
            "body": {"messages": [{"role": "user", "content": f"hello {number}"}]},
        }
        says = {"body": {"role": "assistant", "content": [{"type": "text", "text": f"hi {number}"}]}}
        start = (
            {"kind": "proc.start", "v": "1.0", "parent_w": "00000001"} if number else {"kind": "run.start"}
        )
        events = ({"v": "1.0", "name": "w", **start}, {"kind": "model.request", **call, **asks})
        events += ({"kind": "model.response", **call, **says}, {"kind": "note", "text": "seen"})
        for step, fields in enumerate(events, 1):
            head = {"ts": 1763200000 + number + step / 10, "run": run, "w": w, "step": step}
            line = json.dumps({**head, "kind": fields.pop("kind"), **fields})
            text += line + "\n"
    path.write_text(text)

    writers = {event.writer for event in reenact.read_events(path)}
    assert len(writers) == 1 + len(WRITERS)  # and no two of them are mixed up
    assert all(w.isascii() and w.isalnum() and len(w) <= 32 for w in writers)
    recording = reenact.Recording.load(path)
    assert {event.writer for event in recording.lines} == writers
    assert len(recording.calls()) == len(writers)

    commands = [
        ["show"],
        ["show", "--json"],
        ["show", "--events"],
        ["show", "--json", "--turns"],
        ["tail", "--no-follow"],
    ]
    commands += [["debug", "-c", "l"], ["debug", "-c", "w"], ["debug", "-c", "lanes"], ["messages"], ["ls"]]
    commands += [["stats"], ["grep", "hello"], ["doctor"], ["cat"], ["cat", "--stable"], ["cat", "--full"]]
    for words, (code, out, err) in zip(commands, typed_many([*each, path] for each in commands), strict=True):
        assert code in (0, 1), (words, err)
        assert out and all(char.isprintable() or char == "\n" for char in out + err), (words, out, err)
    assert typed("cat", path).out == text  # lines as they are, in which every escape is JSON's
