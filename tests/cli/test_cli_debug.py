"""reenact debug: where it opens, what it does with odd runs, keys, pipes and narrow terminals."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time

import pytest

import reenact
from support.prompted import PROMPT, Terminal, piped
from support.typed import COMMAND, LONG, environment, obey_permissions, record_steps, record_trip, typed


@pytest.fixture
def trip(tmp_path):
    return record_trip(tmp_path / "trip.jsonl")


def failing_run(path):
    with pytest.raises(LookupError), reenact.run("bad", path=path):
        tap = reenact.Tap()
        call = tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "go"}]})
        tap.record_model_response({"role": "assistant", "content": "book()"}, call=call)
        tap.record_tool_result("book", None, LookupError("no rooms"), call=tap.record_tool_call("book"))
        raise LookupError("no rooms")
    return path


def test_a_failed_run_opens_at_its_failure(tmp_path):
    done = piped(["p index"], failing_run(tmp_path / "bad.jsonl"))
    lines = done.out.splitlines()
    assert lines[0] == "✗ bad  error  LookupError: no rooms"
    assert lines[1].endswith("at the failure, rn goes back, h helps")
    assert lines[3].startswith(">    5") and "✗ book  LookupError: no rooms" in lines[3]
    assert done.code == 0 and done.err == ""


def test_at_chooses_another_place(tmp_path):
    bad = failing_run(tmp_path / "bad.jsonl")
    assert typed("debug", bad, "--at", "first", "-c", "p step").out == "2\n"
    assert typed("debug", bad, "--at", "turn:1", "-c", "p kind").out == '"model.request"\n'
    done = typed("debug", bad, "--at", "99", "-c", "p 1")
    assert done.code == 2 and done.out == "" and "no event of bad is at 99" in done.err


def test_a_run_that_ended_well_opens_at_its_first_event(trip):
    out = piped(["q"], trip).out.splitlines()
    assert out[0] == "✓ trip  ok" and "1 error (j @error: the first); at the first event" in out[1]
    assert out[2] == "turn 1" and out[3].startswith(">    2")


def test_commands_for_scripts_and_their_exit_codes(trip):
    done = typed("debug", trip, "-c", "b error; c; ctx")
    assert (done.code, done.err) == (0, "")
    assert ">    7" in done.out and "TimeoutError: the model did not answer" in done.out
    assert "◂ 5" in done.out and "3 messages in the request at 6" in done.out
    assert typed("debug", trip, "-c", "n; n; n; n; n; n; n").code == 0  # past the end is no mistake
    for wrong in ("nonsense", "j 99", "p open('x')", "b tool", "n; xyz; n"):
        done = typed("debug", trip, "-c", wrong)
        assert (done.code, bool(done.err)) == ((0, False) if wrong == "b tool" else (2, True)), wrong
    done = typed("debug", trip, "-c", "xyz", "-c", "p step")
    assert done.code == 2 and done.out == "2\n"  # the rest is done all the same


def test_prefixes_and_semicolons(trip):
    assert ">    3" in typed("debug", trip, "-c", "ne").out
    assert "could be" in typed("debug", trip, "-c", "la").err
    done = typed("debug", trip, "-c", "b text~'a;b'; b")
    assert "text~'a;b'" in done.out and done.code == 0
    done = typed("debug", trip, "-c", "b tool:*; commands 1 'p tool; p args'; c; p 'then'")
    assert done.out.splitlines()[-3:] == ['"search"', '{"q": "hotels"}', '"then"']


def test_an_empty_line_repeats_the_last_command(trip):
    assert [line[:6] for line in piped(["n", "", ""], trip).out.splitlines() if line.startswith(">")] == [
        ">    2", ">    3", ">    4", ">    5",
    ]  # fmt: skip


def test_past_either_end_it_stays_and_says_so(trip):
    done = typed("debug", trip, "-c", "rn; last; n; p step")
    assert done.out.splitlines()[0] == "Beginning of trace."
    assert done.out.splitlines()[-2:] == ["End of trace.", "7"]


def test_long_values_are_cut_and_say_how_to_see_all(trip):
    out = typed("debug", trip, "-c", "j 5; p result").out.splitlines()[-1]
    assert len(out) <= 120 and out.endswith(f"({len(LONG):,} characters; pp shows all)")
    assert LONG in typed("debug", trip, "-c", "j 5; pp result").out
    assert LONG in typed("debug", trip, "-c", "j 6; ctx 2").out
    whole = typed("debug", trip, "-c", "ll 5").out
    assert "And at the very end a needle." in whole


def test_a_list_is_no_longer_than_a_screen_and_goes_on_when_repeated(tmp_path):
    path = record_steps(tmp_path / "long.jsonl", 100)
    shown = piped(["j 50", "l", "", "l ."], path).out
    numbers = [int(found[1]) for found in re.finditer(r"^[> ] +(\d+) .*number=", shown, re.MULTILINE)]
    assert numbers[2:] == [*range(42, 58), *range(58, 74), *range(42, 58)]


def test_step_log_lines_and_article_lines(tmp_path):
    log = reenact.StepLog(tmp_path / "steps.jsonl", "run-1")
    log.record_llm_call(model="m-1", input_tokens=10, output_tokens=5, duration_ms=3, stop_reason="tool_use")
    log.record_tool_call("search", {"q": "x"}, "found", duration_ms=2)
    log.record_tool_call("book", {}, None, error="no rooms", duration_ms=2)
    log.close()
    done = typed("debug", tmp_path / "steps.jsonl", "-c", "n; a; rv; w; ctx; b error; c; rc; lanes; u")
    assert done.code == 0 and done.err == ""
    assert 'q = "x"' in done.out and "found" in done.out and "No model call led to this event" in done.out
    assert "breakpoint 1: error" in done.out and "✗ book()" in done.out
    (tmp_path / "article.jsonl").write_text(
        '{"run": "r1", "ts": 1.0, "step": 1, "kind": "llm_call", "content": "search", "usage": {"input_tokens": 3}}\n'
        '{"run": "r1", "ts": 1.5, "step": 2, "kind": "tool_call", "tool": "search", "input": {"q": "x"}}\n'
        '{"run": "r1", "ts": 2.0, "step": 3, "kind": "tool_result", "output": "found"}\n'
        '{"run": "r1", "ts": 2.5, "step": 4, "kind": "error", "tool": "book", "error": "no rooms"}\n'
    )
    done = typed("debug", tmp_path / "article.jsonl", "-c", "p index; j 3; a; u; d; r; p output; w")
    assert done.code == 0 and done.err == ""
    assert done.out.splitlines()[0] == "3"  # at the error it ends with
    assert 'q = "x"' in done.out and '"found"' in done.out


def test_a_run_without_a_model_call_says_there_is_no_context(tmp_path):
    path = record_steps(tmp_path / "a.jsonl", 3)
    done = typed("debug", path, "-c", "ctx; delta; w; lanes; u; d; r; rv; a")
    assert done.code == 0 and done.out.count("No model call led to this event") == 2
    assert "No call was recorded, so there is one lane: main." in done.out
    assert "No call led to this event." in done.out and "has no result" in done.out


def test_a_failure_at_the_first_event(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"ts": 1.0, "step": 1, "kind": "error", "message": "no key"}\n')
    done = piped(["rn", "n", "w", "ctx"], tmp_path / "a.jsonl")
    assert done.code == 0 and "at the failure" in done.out
    assert "Beginning of trace.\nEnd of trace.\n" in done.out and "outside any turn" in done.out


def test_several_runs_in_one_file(tmp_path):
    path = tmp_path / "shared.jsonl"
    for name in ("one", "two"):
        log = reenact.StepLog(path, name)
        log.record_tool_call("search", {"run": name}, "x", duration_ms=1)
        log.close()
    done = typed("debug", path, "-c", "p args.run")
    assert done.out == '"two"\n' and "--run selects another" in done.err
    assert typed("debug", path, "--run", "one", "-c", "p args.run").out == '"one"\n'
    assert typed("debug", path, "--run", "*", "-c", "last; p args.run; first; p args.run").code == 0
    assert typed("debug", path, "--run", "three", "-c", "p 1").code == 2


def test_a_run_without_events_and_a_file_without_bytes(tmp_path):
    with reenact.Trace(tmp_path / "none.jsonl"):
        pass
    done = piped(
        ["n", "rc", "p kind", "l", "info", "lanes", "marks", "ctx", "first", "j 1"], tmp_path / "none.jsonl"
    )
    assert "0 turns, 0 events; h helps" in done.out and "End of trace.\nBeginning of trace." in done.out
    assert done.err.count("there is no event in this run") == 5 and done.code == 2
    (tmp_path / "empty.jsonl").touch()
    done = typed("debug", tmp_path / "empty.jsonl", "-c", "n")
    assert "Traceback" not in done.err and done.code in (0, 2)
    assert typed("debug", tmp_path / "gone.jsonl").code == 2


def test_nothing_of_a_trace_reaches_the_terminal_raw_or_is_evaluated(tmp_path):
    tap = reenact.Tap(tmp_path / "a.jsonl")
    evil = "\x1b]0;title\x07\x1b[2Jred\x1b[31m __import__('os').system('touch owned')"
    call = tap.record_tool_call(evil, {"q\x1b[1m": evil})
    tap.record_tool_result(evil, evil, ValueError(evil), call=call)
    tap.close()
    verbs = "p args; pp args; a; rv; n; ll; raw; l; w; lanes; print args; b tool:*; rc; marks; mark x; marks; info"
    with Terminal(
        "debug", "--repl", tmp_path / "a.jsonl", cwd=tmp_path, NO_COLOR="1", TERM="dumb"
    ) as terminal:
        terminal.until(PROMPT)
        for verb in verbs.split("; "):
            terminal.do(verb)
            assert "\x1b]" not in terminal.raw and "\x1b[2J" not in terminal.raw, verb
            assert "\x1b[31m" not in terminal.raw, verb
    assert not (tmp_path / "owned").exists()


def test_colour_only_on_a_terminal_that_wants_it(trip, tmp_path):
    with Terminal("debug", "--repl", trip, cwd=tmp_path) as terminal:
        terminal.until(PROMPT)
        terminal.do("l")
        assert "\x1b[" in terminal.raw
    assert "\x1b" not in typed("debug", trip, "-c", "l; ctx; w").out


@pytest.mark.parametrize("columns", [40, 80])
def test_lines_fit_the_terminal(trip, tmp_path, columns):
    verbs = ["l", "ctx", "delta", "w", "lanes", "info", "h", "p", "a", "b error", "b", "c", "mark", "marks"]
    with Terminal("debug", "--repl", trip, cwd=tmp_path, columns=columns) as terminal:
        shown = [terminal.until(PROMPT), *(terminal.do(verb) for verb in ["j 6", *verbs])]
    for text in shown:
        for line in text.splitlines():
            assert len(line) <= columns, line


def test_ctrl_c_comes_back_to_the_prompt_and_ctrl_d_ends(trip, tmp_path):
    with Terminal("debug", "--repl", trip, cwd=tmp_path) as terminal:
        terminal.until(PROMPT)
        terminal.keys("p ste")
        terminal.until("p ste")
        terminal.interrupt()
        terminal.until(PROMPT)
        assert terminal.do("p step").strip() == "2"
        terminal.keys("\x04")
        assert terminal.end() == 0


def test_ctrl_c_ends_a_long_search(tmp_path):
    path = record_steps(tmp_path / "long.jsonl", 30_000)
    with Terminal("debug", "--repl", path, cwd=tmp_path) as terminal:
        terminal.until(PROMPT)
        many = "[0, 0, 0, 0, 0, 0, 0, 0]"
        slow = f"any(any(any(z for z in {many}) for y in {many}) for x in {many})"
        terminal.keys(f"b {slow}; c\n")
        time.sleep(1)
        terminal.interrupt(waits=False)
        terminal.until(PROMPT)
        assert terminal.do("p step").strip() == "2"


def test_history_is_kept_private_and_its_failure_is_silent(trip, tmp_path):
    state = tmp_path / "state"
    with Terminal("debug", "--repl", trip, cwd=tmp_path, XDG_STATE_HOME=state) as terminal:
        terminal.until(PROMPT)
        terminal.do("p step")
        terminal.keys("q\n")
        assert terminal.end() == 0
    file = state / "reenact" / "debug_history"
    assert file.read_text().splitlines()[-2:] == ["p step", "q"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Terminal("debug", "--repl", trip, cwd=tmp_path, XDG_STATE_HOME=state) as terminal:
        terminal.until(PROMPT)
        terminal.keys("\x1b[A\x1b[A")
        terminal.until("p step")
        terminal.keys("\n")
        assert "2" in terminal.until(PROMPT)
    (tmp_path / "blocked").write_text("not a folder")
    with Terminal("debug", "--repl", trip, cwd=tmp_path, XDG_STATE_HOME=tmp_path / "blocked") as terminal:
        terminal.until(PROMPT)
        terminal.keys("q\n")
        rest = terminal.until(None, seconds=5)
        assert rest.strip() == "q" and terminal.end() == 0


@pytest.mark.parametrize(
    ("typed_so_far", "completed"),
    [
        ("dis", "disable"), ("b tool:se", "b tool:search"), ("p us", "p usage"), ("j @he", "j @here"),
        ("n; b lane:m", "n; b lane:main"), ("h und", "h undisplay"), ("p usage.o", "p usage.output"),
    ],
)  # fmt: skip
def test_tab_completes(trip, tmp_path, typed_so_far, completed):
    with Terminal("debug", "--repl", trip, cwd=tmp_path) as terminal:
        terminal.until(PROMPT)
        terminal.do("j 3; mark here; display kind; undisplay")
        terminal.keys(typed_so_far + "\t")
        if typed_so_far == "dis":  # disable and display
            terminal.keys("a\t")
        terminal.until(completed)


def test_it_works_without_readline(trip, tmp_path):
    code = "import sys; sys.modules['readline'] = None; from reenact.cli.main import main; sys.exit(main(sys.argv[1:]))"
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code, "debug", str(trip)], stdin=slave, stdout=slave, stderr=slave,
        env=environment(TERM="dumb", HOME=str(tmp_path)),
    )  # fmt: skip
    os.close(slave)
    os.write(master, b"p step\nq\n")
    shown = ""
    try:
        while more := os.read(master, 65536).decode():
            shown += more
    except OSError:
        pass  # Linux's way to say that nobody has the terminal any more
    os.close(master)
    assert process.wait(60) == 0
    assert "(reenact) " in shown and "Traceback" not in shown and "(reenact) 2\r\n" in shown


def test_a_growing_run_goes_on(tmp_path):
    tap = reenact.Tap(tmp_path / "a.jsonl")
    call = tap.record_tool_call("search", {})
    with Terminal("debug", "--repl", tmp_path / "a.jsonl", cwd=tmp_path) as terminal:
        assert "● a  running" in terminal.until(PROMPT)
        assert terminal.do("n") == "The run is still going; no newer event yet.\n"
        tap.record_tool_result("search", "done", call=call)
        assert ">    3" in terminal.do("n")
        tap.close()
        assert terminal.do("n") == "End of trace.\n"


def test_a_reader_that_leaves_early_is_no_failure(trip):
    command = f"{COMMAND} debug {trip} -c 'j 6; ll; ll; ll; ctx 2; ctx 2; ctx 2; pp; pp' | head -n 1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert done.stdout.count("\n") == 1 and done.stderr == ""


def test_input_that_is_closed_or_not_text(trip):
    for redirect in ("<&-", "</dev/null", "< <(printf '\\xff\\xfe; n\\n')"):
        done = subprocess.run(
            ["bash", "-c", f"{COMMAND} debug {trip} {redirect}"], capture_output=True, text=True,
            errors="replace", env=environment(), timeout=60,
        )  # fmt: skip
        assert "Traceback" not in done.stderr and "fault" not in done.stderr, (redirect, done.stderr)
        assert done.stdout.startswith("✓ trip  ok"), redirect


def test_a_file_that_may_not_be_read(trip):
    trip.chmod(0)
    done = typed("debug", trip, "-c", "n", start=obey_permissions)
    assert done.code == 2 and "cannot be read" in done.err
