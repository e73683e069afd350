"""reenact show."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import pytest

import reenact
from support.typed import LONG, environment, record_steps, record_trip, typed


@pytest.fixture
def trip(tmp_path):
    return record_trip(tmp_path / "trip.jsonl")


def agent(code, path, **more):
    """Run an agent that dies; its trace goes to ``path``."""
    return subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, env=environment(**more), timeout=60
    )


def test_events_stand_in_order_grouped_by_turn_with_totals_at_the_end(trip):
    code, out, err = typed("show", trip, "--events")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [line for line in lines if line.startswith("turn")] == ["turn 1", "turn 2"]
    at = lines.index("turn 1")
    assert [line.split()[0] for line in lines[at + 1 : at + 5]] == ["2", "3", "4", "5"]
    assert "→ claude-sonnet-4-6, 1 message" in out
    assert '← search({"q": "hotels"})' in out and "52+31" in out
    assert '▸ search(q="hotels")' in out
    assert "✗ TimeoutError: the model did not answer" in out
    assert "→ claude-sonnet-4-6, 3 messages" in out
    assert "\n2 turns  6 events  83 tokens (52 in, 31 out)  1 error\n" in out


def test_how_the_run_ended_stands_first_with_exception_frames_and_exit_code(tmp_path):
    code = "import reenact, sys\ntrace = reenact.Trace(sys.argv[1])\ntrace.step('note')\ndef book():\n    raise LookupError('no rooms')\nbook()"
    assert agent(code, tmp_path / "a.jsonl").returncode == 1
    first, frame, *_ = typed("show", tmp_path / "a.jsonl").out.splitlines()
    assert first.startswith("✗ error  LookupError: no rooms, exit 1")
    assert frame.strip().startswith("at ") and "in book" in frame


@pytest.mark.parametrize("how", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_run_killed_inside_a_tool_says_inside_which(tmp_path, how):
    code = f"""
import os, signal, sys, reenact
tap = reenact.Tap(sys.argv[1])
@tap.tool
def search(q, limit=3):
    {how}
search("hotels in Lisbon")
"""
    done = agent(code, tmp_path / "a.jsonl")
    assert done.returncode in (3, -signal.SIGKILL)
    first = typed("show", tmp_path / "a.jsonl").out.splitlines()[0]
    assert first.startswith('✗ killed  died inside tool search(q="hotels in Lisbon"')
    reported = typed("show", tmp_path / "a.jsonl", "--json").rows[0]
    assert reported["status"] == "killed" and reported["inside"][0]["step"] == 2


def test_a_run_of_another_machine_is_not_declared_dead(tmp_path):
    code = "import os, sys, reenact; tap = reenact.Tap(sys.argv[1]); tap.record_tool_call('search', {'q': 'x'}); os._exit(1)"
    agent(code, tmp_path / "a.jsonl")
    host = os.uname().nodename.encode()
    data = (tmp_path / "a.jsonl").read_bytes()
    (tmp_path / "a.jsonl").write_bytes(data.replace(b'"host": "' + host, b'"host": "elsewhere', 1))
    first = typed("show", tmp_path / "a.jsonl").out.splitlines()[0]
    assert first.startswith('· unknown  was last seen inside tool search(q="x") (step 2)')


def test_a_run_killed_while_it_waits_says_for_which_model(tmp_path):
    code = """
import os, sys, reenact
tap = reenact.Tap(sys.argv[1])
tap.record_model_request({"model": "claude-sonnet-4-6", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]})
os._exit(1)
"""
    agent(code, tmp_path / "a.jsonl")
    first = typed("show", tmp_path / "a.jsonl").out.splitlines()[0]
    assert "killed  died while waiting for the model (claude-sonnet-4-6, 1 message) (step 2)" in first


@pytest.mark.long
def test_a_long_run_shows_its_two_ends_and_says_how_much_is_hidden(tmp_path):
    path = record_steps(tmp_path / "a.jsonl", 5000)
    for words, hidden in ((), "4,940"), (("--events",), "4,942"):
        code, out, _ = typed("show", path, *words)
        assert code == 0
        assert f"{hidden} more events; --all shows them" in out
        assert "number=0" in out and "number=4999" in out and "number=2500" not in out
        whole = typed("show", path, "--all", *words).out
        assert "number=2500" in whole and "more events" not in whole


def test_turns_at_the_end_of_a_long_run_keep_their_numbers(tmp_path):
    log = reenact.StepLog(tmp_path / "a.jsonl", "my-run")
    for number in range(200):
        log.record_llm_call("m", 10, 5, "tool_use", duration_ms=3)
        log.record_tool_call("search", {"q": f"x{number}"}, "y", None, duration_ms=2)
    log.close()
    for words in (), ("--events",):
        out = typed("show", tmp_path / "a.jsonl", *words).out
        turns = [int(line.split()[1]) for line in out.splitlines() if line.startswith("turn ")]
        assert turns[0] == 1 and turns[-1] == 200 and turns == sorted(set(turns))


def test_one_turn_alone(trip):
    out = typed("show", trip, "--turn", "2").out
    assert "turn 2" in out and "turn 1" not in out
    assert "→ result  Hotel Lisboa, 82 EUR." in out and "search(q=" not in out
    out = typed("show", trip, "--turn", "2", "--events").out
    assert "turn 2" in out and "turn 1" not in out
    assert "3 messages" in out and "search(q=" not in out
    code, _, err = typed("show", trip, "--turn", "3")
    assert code == 2 and "has no turn 3" in err and "it has 2 turns" in err


def test_one_event_in_full_has_its_request_rebuilt_and_long_texts_whole(trip):
    code, out, _ = typed("show", trip, "--event", "turn:2")
    assert code == 0
    payload = json.loads(out.partition("\n")[2])
    assert [message["role"] for message in payload["body"]["messages"]] == ["user", "assistant", "user"]
    assert payload["body"]["messages"][2]["content"][0]["content"] == LONG
    assert payload["body"]["system"] == "You plan trips."
    assert typed("show", trip, "--event", "turn:2", "--json").rows == [payload]


def test_the_failing_event_has_an_address(trip):
    payload = typed("show", trip, "--event", "@error", "--json").rows[0]
    assert payload["error"]["type"] == "TimeoutError"


@pytest.mark.parametrize("address", ["99", "turn:9", "call:zz", "p00:1", "nonsense", "-1", "", "@nope"])
def test_an_event_that_is_not_there_is_a_sentence_with_a_hint(trip, address):
    code, _, err = typed("show", trip, f"--event={address}")
    assert code == 2
    assert "no event of trip is at" in err and "hint:" in err


def test_json_is_the_run_and_then_its_events(trip):
    run, *events = typed("show", trip, "--json").rows
    assert run["name"] == "trip" and run["events"] == 6 and run["meta"] == {"environment": "prod"}
    assert [event["kind"] for event in events][:3] == ["run.start", "model.request", "model.response"]
    assert [event["turn"] for event in events] == [0, 1, 1, 1, 1, 2, 2, 2]


def test_runs_have_addresses(tmp_path):
    record_trip(tmp_path / "a.jsonl", fails=False, name="alpha")
    try:
        with reenact.Trace(tmp_path / "b.jsonl", name="beta") as trace:
            trace.step("note")
            raise RuntimeError("b fails")
    except RuntimeError:
        pass
    record_steps(tmp_path / "c.jsonl", 2, name="gamma")
    run_id = typed("ls", tmp_path / "a.jsonl", "--json").rows[0]["id"]

    def name(*words):
        return typed("show", *words, "--json", REENACT_DIR=str(tmp_path)).rows[0]["name"]

    assert name() == name("@last") == "gamma"
    assert name("@prev") == name("@failed") == "beta"
    assert name("alpha") == name(run_id[:10]) == name("a.jsonl") == name(tmp_path / "a.jsonl") == "alpha"
    assert name(tmp_path) == "gamma"
    code, _, err = typed("show", "alpa", REENACT_DIR=str(tmp_path))
    assert code == 2 and "alpha" in err


def test_of_several_runs_in_a_file_the_newest_is_shown_and_another_on_request(tmp_path):
    path = tmp_path / "shared.jsonl"
    for name in ("one", "two"):
        record_steps(path, 2, name=name)
    code, out, err = typed("show", path)
    assert code == 0
    assert "  two  " in out and "the file holds 2 runs" in err
    first = typed("ls", path, "--json").rows[-1]
    assert first["name"] == "one"
    assert "  one  " in typed("show", path, "--run", first["id"]).out


def test_a_child_process_shows_with_its_own_addresses(tmp_path):
    code = """
import multiprocessing, os, sys, reenact
trace = reenact.Trace(sys.argv[1]); trace.step("note", who="parent")
pid = os.fork()
if pid == 0:
    trace.step("note", who="child"); os._exit(0)
os.waitpid(pid, 0); trace.close()
"""
    agent(code, tmp_path / "a.jsonl")
    out = typed("show", tmp_path / "a.jsonl").out
    line = next(line for line in out.splitlines() if 'who="child"' in line)
    address = line.split()[0]
    assert address.startswith("p") and ":" in address
    assert typed("show", tmp_path / "a.jsonl", "--event", address, "--json").rows[0]["who"] == "child"


def test_a_program_that_joined_is_named(tmp_path):
    (tmp_path / "helper.py").write_text("import reenact\nreenact.Trace().step('note', who='child')\n")
    code = """
import subprocess, sys, reenact
with reenact.run("trip") as run:
    subprocess.run([sys.executable, "helper.py", "--fast"], check=True, cwd=sys.argv[1])
    print(run.path)
"""
    agent(code, tmp_path, REENACT_DIR=str(tmp_path / "runs"))
    [whole] = (path for path in tmp_path.rglob("*-trip-*.jsonl") if ".p" not in path.name)
    out = typed("show", whole).out
    assert re.search(r"^  p[0-9a-f]{4} is python\S* helper.py --fast$", out, re.MULTILINE), out


def test_the_time_of_a_call_the_process_died_in_is_the_models(tmp_path):
    code = """
import os, sys, time, reenact
tap = reenact.Tap(sys.argv[1])
tap.record_model_request({"model": "m", "messages": []})
time.sleep(0.3)
tap.record_model_request({"model": "m", "messages": []})
os._exit(1)
"""
    agent(code, tmp_path / "a.jsonl")
    (line,) = [
        line for line in typed("show", tmp_path / "a.jsonl").out.splitlines() if line.startswith("time")
    ]
    assert re.match(r"time  model (\d{3,} ms|\d)", line), line


def test_a_child_killed_inside_a_tool_is_reported_though_the_run_ended_well(tmp_path):
    code = """
import os, signal, sys, reenact
with reenact.Tap(sys.argv[1]) as tap:
    @tap.tool
    def search(q):
        os.kill(os.getpid(), signal.SIGKILL)
    for q in "ab":
        pid = os.fork()
        if pid == 0:
            search(q)
        os.waitpid(pid, 0)
"""
    agent(code, tmp_path / "a.jsonl")
    first = typed("show", tmp_path / "a.jsonl").out.splitlines()[0]
    reported = typed("show", tmp_path / "a.jsonl", "--json").rows[0]
    assert first.startswith('✓ ok  a further process was last seen inside tool search(q="a") (step p')
    assert reported["status"] == "ok" and len(reported["inside"]) == 2


def test_escapes_in_texts_are_stripped_and_json_stays_valid(tmp_path):
    evil = "\x1b]52;c;aGk=\x07\x1b[2Jhello\x9b1m\u202e\x00"
    with reenact.Trace(tmp_path / "a.jsonl", name=evil, meta={evil: evil}) as trace:
        trace.step("tool_call", name=evil, args={evil: evil})
        trace.step("error", tool=evil, err=evil)
        trace.step(evil, text=evil)
    for words in (["show"], ["show", "--event", "@error"], ["show", "--event", "2"], ["show", "--json"], ["tail"],
                  ["grep", "hello"], ["cat", "--json"]):  # fmt: skip
        where = (
            [*words, tmp_path / "a.jsonl"]
            if words[0] == "grep"
            else [words[0], tmp_path / "a.jsonl", *words[1:]]
        )
        code, out, err = typed(*where)
        assert code == 0
        assert not {"\x1b", "\x07", "\x9b", "\u202e", "\x00"} & set(out + err)
    whole = json.loads(typed("show", tmp_path / "a.jsonl", "--event", "2").out.partition("\n")[2])
    assert whole["args"][evil] == evil


def test_numbers_that_json_lacks_are_shown_as_stored(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        trace.step("note", value=float("nan"), other=[float("inf")])
    payload = typed("show", tmp_path / "a.jsonl", "--event", "2", "--json").rows[0]
    assert payload["value"] == {"$float": "nan"} and payload["other"] == [{"$float": "inf"}]


def test_a_trace_of_the_articles_is_shown_like_our_own(tmp_path):
    lines = [
        {"ts": 1763200000.0, "run": "r1", "kind": "llm_call", "turn": 0, "content": "I will search"},
        {"ts": 1763200000.5, "run": "r1", "kind": "tool_call", "name": "search", "args": {"q": "x"}},
        {"ts": 1763200001.0, "run": "r1", "kind": "tool_result", "id": "t1", "output": "found"},
        {"ts": 1763200002.0, "run": "r1", "kind": "final", "text": "done"},
    ]
    (tmp_path / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, out, _ = typed("show", tmp_path / "old.jsonl")
    assert code == 0
    assert "I will search" in out and 'search(q="x")' in out and "final  done" in out


def test_a_run_without_events_is_shown(tmp_path):
    reenact.Trace(tmp_path / "a.jsonl").close()
    (tmp_path / "b.jsonl").touch()
    for path in sorted(tmp_path.glob("*.jsonl")):
        code, out, _ = typed("show", path)
        assert code == 0
        assert "0 events" in out
    assert os.path.getsize(tmp_path / "b.jsonl") == 0


def test_fields_with_reserved_names_are_shown_like_others(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        trace.step("retry", n=3, parent="planner", why="timeout")
    out = typed("show", tmp_path / "a.jsonl").out
    assert 'retry  why="timeout", n=3, parent="planner"' in out


def test_a_message_its_tokens_and_an_exception_passed_as_fields_are_readable(tmp_path):
    with reenact.Trace(tmp_path / "a.jsonl") as trace:
        content = {"role": "assistant", "content": "Searching."}
        trace.step("llm_call", content=content, usage={"prompt_tokens": 30, "completion_tokens": 12})
        trace.step("error", tool="search", err=ValueError("no such city"))
    with reenact.StepLog(tmp_path / "b.jsonl") as log:
        log.record_llm_call("m", 10, 2, "end_turn", cache_read_tokens=90)
    for words in (), ("--events",):
        out = typed("show", tmp_path / "a.jsonl", *words).out
        assert "← Searching." in out and " 30+12\n" in out and "no such city" in out
        assert " 100+2\n" in typed("show", tmp_path / "b.jsonl", *words).out
