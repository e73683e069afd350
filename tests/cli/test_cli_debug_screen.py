"""reenact debug on the whole screen: keys, panes, the command line, a run that grows; in a real terminal, too."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.widgets import Input, OptionList, Static

import reenact
from reenact.cli.commands.debug import VERBS
from reenact.cli.repl.session import Verbs
from reenact.cli.tui.app import DebugApp
from reenact.cli.tui.timeline import Timeline
from reenact.debugger.stepper import Stepper
from reenact.recording.recording import Recording
from reenact.testing import write_trace
from support.typed import COMMAND, environment, record_trip


@pytest.fixture
def trip(tmp_path):
    return record_trip(tmp_path / "trip.jsonl")


def played(path, play, size=(80, 24)):
    """Open a run, do what ``play(app, pilot)`` does, and return what that returns."""

    async def run():
        app = DebugApp(Stepper(lambda: Recording.load(path)), Verbs(VERBS))
        async with app.run_test(size=size) as pilot:
            await settled(app, pilot)
            return await play(app, pilot)

    return asyncio.run(run())


async def settled(app, pilot):
    for _ in range(3000):
        await pilot.pause(0.01)
        if not app.is_busy:
            await pilot.pause()
            return
    raise AssertionError("it does not come to rest")


async def press(app, pilot, *keys):
    for key in keys:
        await pilot.press(key)
        await settled(app, pilot)


async def enter(app, pilot, line):
    await press(app, pilot, "colon")
    app.query_one(Input).value = line
    await press(app, pilot, "enter")


def shown(app, name):
    return str(app.query_one(name, Static).visual)


def lines(app):
    return [row.text.plain.rstrip() for row in app.query_one(Timeline)._rows]


def step_of(app):
    return app.stepper.event.step


def test_keys_move_by_event_lane_turn_and_to_the_ends(trip):
    async def play(app, pilot):
        seen = [step_of(app)]
        for keys in (
            ["j"],
            ["j"],
            ["k"],
            ["G"],
            ["g"],
            ["right_square_bracket"],
            ["n"],
            ["p"],
            ["backspace"],
        ):
            await press(app, pilot, *keys)
            seen.append(step_of(app))
        return seen

    seen = played(trip, play)
    last = Recording.load(trip).events[-1].step
    assert seen[:6] == [2, 3, 4, 3, last, 2]
    assert seen[6:] == [6, 7, 6, 7]  # the second turn, on in its lane and back, then where it was


def test_the_timeline_marks_the_cursor_and_names_turns(trip):
    async def play(app, pilot):
        await press(app, pilot, "j", "j")
        return lines(app)

    rows = played(trip, play)
    marked = [row for row in rows if row.startswith("▌")]
    assert len(marked) == 1 and marked[0].split()[1] == "4"
    assert "turn 1" in rows


@pytest.mark.parametrize(("size", "together"), [((80, 24), False), ((200, 50), True)])
def test_event_and_context_share_a_wide_screen_and_take_turns_on_a_narrow_one(trip, size, together):
    async def play(app, pilot):
        await press(app, pilot, "j")
        first = [app.query_one(f"#{name}").display for name in ("event", "context")]
        await press(app, pilot, "tab")
        return (
            first,
            [app.query_one(f"#{name}").display for name in ("event", "context")],
            shown(app, "#context-text"),
        )

    first, then, context = played(trip, play, size)
    assert first == [True, together] and then == [together, True]
    assert "1 message" in context and "user" in context


def test_every_verb_of_the_prompt_works_on_the_command_line(trip):
    async def play(app, pilot):
        await enter(app, pilot, "b tool:search; c; p args")
        shown_there = shown(app, "#output-text"), step_of(app)
        await press(app, pilot, "escape")
        hidden = app.query_one("#output").display
        await enter(app, pilot, "nonsense")
        wrong = shown(app, "#output-text")
        await enter(app, pilot, "j 99")
        return shown_there, hidden, wrong, shown(app, "#output-text"), step_of(app)

    (output, at), hidden, wrong, missing, still = played(trip, play)
    assert "breakpoint 1: tool:search" in output and '{"q": "hotels"}' in output and at == 4
    assert not hidden and "there is no verb 'nonsense'" in wrong
    assert "at 99" in missing and still == 4


def test_tab_completes_a_word_and_the_arrows_bring_lines_back(trip):
    async def play(app, pilot):
        command = app.query_one(Input)
        await press(app, pilot, "colon", *"lan")
        for _ in range(3000):
            await pilot.pause(0.01)
            if command._suggestion:
                break
        await press(app, pilot, "tab")
        completed = command.value
        await press(app, pilot, "enter", "colon", "up")
        return completed, command.value

    assert played(trip, play) == ("lanes", "lanes")


def test_a_failed_run_shows_how_it_failed_and_e_goes_there(tmp_path):
    path = tmp_path / "bad.jsonl"
    with pytest.raises(LookupError), reenact.run("bad", path=path):
        tap = reenact.Tap()
        call = tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "go"}]})
        tap.record_model_response({"role": "assistant", "content": "book()"}, call=call)
        tap.record_tool_result("book", None, LookupError("no rooms"), call=tap.record_tool_call("book"))
        raise LookupError("no rooms")

    async def play(app, pilot):
        await press(app, pilot, "g", "e")
        return shown(app, "#head"), shown(app, "#event-text"), step_of(app)

    head, event, step = played(path, play)
    assert head.startswith("✗ ERROR  bad") and "LookupError: no rooms" in head
    assert "✗ book  LookupError: no rooms" in event and step == 5


def test_a_click_on_the_timeline_goes_there_and_the_wheel_moves_the_window(trip):
    async def play(app, pilot):
        row = next(n for n, text in enumerate(lines(app)) if text.split()[:1] == ["5"])
        await pilot.click(Timeline, offset=(4, row + 1))
        await settled(app, pilot)
        return step_of(app)

    assert played(trip, play) == 5


def test_a_growing_run_appears_and_is_followed_on_demand(tmp_path):
    path = tmp_path / "live.jsonl"
    writer = (
        "import sys, time, reenact\n"
        "with reenact.run('live', path=sys.argv[1]) as run:\n"
        "    trace = reenact.Tap()\n"
        "    for n in range(3):\n"
        "        trace.record_tool_result('t', n, call=trace.record_tool_call('t'))\n"
        "    print('ready', flush=True); sys.stdin.readline()\n"
        "    trace.record_tool_result('late', 1, call=trace.record_tool_call('late'))\n"
        "    print('more', flush=True); sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", writer, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout.readline() == "ready\n"

        async def play(app, pilot):
            before, at = len(app.stepper.events), app.stepper.index
            await press(app, pilot, "F")
            agent.stdin.write("\n")
            agent.stdin.flush()
            assert agent.stdout.readline() == "more\n"
            for _ in range(3000):
                await pilot.pause(0.02)
                if len(app.stepper.events) > before and not app.is_busy:
                    break
            return before, at, len(app.stepper.events), app.stepper.index, lines(app)

        before, at, after, now, rows = played(path, play)
        agent.stdin.write("\n")
    assert (before, at, after, now) == (6, 0, 8, 7)
    assert any("late" in row for row in rows)


def test_a_run_without_events_and_findings_that_are_none(tmp_path):
    path = tmp_path / "empty.jsonl"
    with reenact.run("empty", path=path):
        pass

    async def play(app, pilot):
        await press(app, pilot, "j", "k", "c", "e", "tab", "tab")
        await enter(app, pilot, "p x")
        options = app.query_one(OptionList)
        return lines(app), shown(app, "#output-text"), str(options.get_option_at_index(0).prompt)

    rows, output, finding = played(path, play)
    assert rows == ["No event yet."] and "there is no event in this run" in output
    assert finding == "Nothing stands out in this run."


def test_escape_characters_of_a_trace_reach_no_pane(tmp_path):
    path = tmp_path / "hostile.jsonl"
    with reenact.run("\x1b[2Jrun", path=path):
        tap = reenact.Tap()
        call = tap.record_model_request(
            {"model": "\x1b]0;x\x07", "messages": [{"role": "user", "content": "\x1b[31mred [bold]"}]}
        )
        tap.record_model_response({"role": "assistant", "content": "\x9b31m‮evil[/]"}, call=call)
        tap.record_tool_result(
            "\x1bc", {"\x1b[1m": "\x1b[5m"}, call=tap.record_tool_call("\x1bc", {"a": "\x1b[7m"})
        )

    async def play(app, pilot):
        texts = []
        for _ in range(5):
            await press(app, pilot, "j")
            texts += [
                shown(app, "#head"),
                shown(app, "#event-text"),
                shown(app, "#context-text"),
                *lines(app),
            ]
        return "".join(texts)

    everything = played(path, play, (200, 50))
    assert "red [bold]" in everything and "evil[/]" in everything
    assert not {"\x1b", "\x07", "\x9b", "‮"} & set(everything)


# In a real terminal.


@contextmanager
def tmux(tmp_path, words, columns, rows, **env):
    """A command in a terminal of tmux; yields a function that types keys and waits for a text."""
    assert shutil.which("tmux"), "tmux is missing: apt-get install tmux"
    server = ["tmux", "-S", str(tmp_path / "tmux"), "-f", os.devnull]
    named = [f"{name}={value}" for name, value in env.items()]  # tmux sets TERM for what it starts
    line = f"{shlex.join(['env', *named, COMMAND, *map(str, words)])}; echo exit $?; read wait"
    subprocess.run(
        [*server, "new-session", "-d", "-x", str(columns), "-y", str(rows), line],
        env=environment(HOME=str(tmp_path)), check=True, cwd=tmp_path,
    )  # fmt: skip

    def until(wanted, *keys):
        for key in keys:
            subprocess.run([*server, "send-keys", "--", key], check=True)
        end = time.monotonic() + 90
        while time.monotonic() < end:
            screen = subprocess.run(
                [*server, "capture-pane", "-p"], capture_output=True, text=True, check=True
            ).stdout
            if wanted in screen:
                return screen
            time.sleep(0.05)
        raise AssertionError(screen)

    try:
        yield until
    finally:
        subprocess.run([*server, "kill-server"], check=False)


@pytest.mark.parametrize(("columns", "rows", "env"), [(80, 24, {}), (200, 50, {"NO_COLOR": "1"})])
def test_in_a_terminal_it_takes_the_screen_and_gives_it_back(trip, tmp_path, columns, rows, env):
    with tmux(tmp_path, ["debug", trip], columns, rows, TERM="xterm", **env) as until:
        until("j/k step")
        screen = until("✓ OK  trip")
        assert "╭─ timeline" in screen and "✓ OK  trip" in screen.splitlines()[0]
        assert max(map(len, screen.splitlines())) <= columns
        until("▌ 4", "j", "j")
        until('"hotels"', ":", "p args", "Enter")
        until("exit 0", ":", "q", "Enter")


def test_replay_starts_from_the_debugger_and_says_what_it_needs(trip, tmp_path):
    with tmux(tmp_path, ["debug", trip], 80, 24, TERM="xterm") as until:
        until("j/k step")
        until("Enter returns to the debugger", ":", "replay", "Enter")
        until("replay ended with exit code 2", "Enter")
        until("exit 0", ":", "q", "Enter")


SENT = [
    ("model.request", {"call": "a", "provider": "anthropic", "body": {"model": "m", "messages": []}}),
    ("model.response", {"call": "a", "provider": "anthropic", "body": {"type": "message", "content": []}}),
]


def test_what_starts_from_the_debugger_asks_as_on_the_command_line(tmp_path):
    """A run that somebody sent names a program: nothing of it starts without a yes, and with one it does."""
    (tmp_path / "agent.py").write_text("print('it', 'runs')\nopen('started', 'w')\n")
    path = tmp_path / "sent.jsonl"
    first, rest = Path(write_trace(path, SENT)).read_text().split("\n", 1)
    start = {"command": [sys.executable, "agent.py"], "cwd": str(tmp_path), "host": os.uname().nodename}
    path.write_text(f"{first[:-1]}, {json.dumps(start)[1:]}\n{rest}")
    with tmux(tmp_path, ["debug", path], 100, 30, TERM="xterm", XDG_STATE_HOME=str(tmp_path)) as until:
        until("j/k step")
        for command in ("fork --set system=x", "test -o tests", "replay"):
            name = command.split()[0]
            started = until(f"$ reenact {name} ", ":", command, "Enter").replace("\n", "")
            assert name != "fork" or " --at 2 --set" in started
            until(f"{name} ended with exit code 2", "n", "Enter", "Enter")  # the question, the way back
            assert not (tmp_path / "started").exists() and not (tmp_path / "tests").exists()
            until("j/k step", "Escape")
        until("turn 1 is the first of its lane", ":", "diff", "Enter")
        until("j/k step", "Escape")
        until("$ reenact replay ", ":", "replay", "Enter")
        until("it runs", "y", "Enter")
        until("replay ended with exit code", "Enter")
        until("exit 0", ":", "q", "Enter")


@pytest.mark.parametrize(("words", "term"), [(["--repl"], "xterm"), ([], "dumb")])
def test_repl_opens_the_prompt_and_so_does_a_terminal_that_cannot_be_drawn_on(trip, tmp_path, words, term):
    with tmux(tmp_path, ["debug", *words, trip], 80, 24, TERM=term) as until:
        until("(reenact)")
        until("exit 0", "q", "Enter")
