"""Every verb of reenact debug, through a terminal, a pipe, -c, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reenact.cli.commands.debug import VERBS
from support.prompted import PROMPT, Terminal, piped
from support.stepped import record_team
from support.typed import typed

# What is typed one after the other, and what must be in the answer. The cursor begins at step 2.
SITTING = [
    ("h", ["move", "rn        the event before this one in its lane", "h VERB explains one"]),
    ("h unt", ["unt [ADDRESS]", "next turn", "also: until"]),
    ("info", ["name", "status", "4 turns, 14 events"]),
    ("n", [">    3", "delegate"]),
    ("n 2", [">   11", "◂ delegate"]),
    ("rn", [">    4", "▸ delegate(to="]),
    ("s", ["turn 2  lane researcher", ">    5", "→ m-1"]),
    ("rs", [">    4"]),
    ("r", [">   11"]),
    ("back", [">    4"]),
    ("fwd", [">   11"]),
    ("u", [">    2"]),
    ("d", [">    4"]),
    ("unt", [">   12"]),
    ("unt 14", [">   14", "attempt 2"]),
    ("j turn:2", [">    5"]),
    ("j #0", [">    2"]),
    ("j %50", [">    8"]),
    ("j -1", [">   15"]),
    ("first", [">    2"]),
    ("last", [">   15"]),
    ("last tool", [">   11", "tool changed here"]),
    ("/Hotel", ["No event after this one matches Hotel"]),
    ("?Hotel", [">   10"]),
    ("?", [">    8", "Hotel Lisboa"]),
    ("w", ["turn 2, lane researcher, event 8 (7 of 14)", "tokens in", "▸ delegate", "▸ search", ">    8"]),
    ("l", ["turn 1", "turn 3  lane researcher", ">    8"]),
    ("ll", [">    8", '"result": "Hotel Lisboa"']),
    ("lanes", ["lane", ">  researcher", "main"]),
    ("suspects", ["13", "model error", "a model call failed: TimeoutError: too slow"]),
    ("p", ['tool = "search"', "duration_ms"]),
    ("p result", ['"Hotel Lisboa"']),
    ("p tool + result", ['"searchHotel Lisboa"']),
    ("p no.such.thing", ["no event has a field 'no'"]),
    ("pp result", ["Hotel Lisboa"]),
    ("a", ['q = "hotels"']),
    ("rv", ["Hotel Lisboa"]),
    ("raw", ['{"ts": ', '"kind": "tool.result"']),
    ("ctx", ["role", "system", "user", "→ 5", "Find hotels", "1 message in the request at 5"]),
    ("ctx 0", ['"content": "Find hotels"']),
    ("delta", ["The first request of its lane"]),
    ("diff turn:1", ["turn 1 → turn 2", "seen in turn 1, not in turn 2", "new in turn 2", "Find hotels"]),
    ("why 'Hotel Lisboa'", ["found: the tool search returned it", "tool result", "found by"]),
    ("why args.q", ['args.q = "hotels"', "argument"]),
    ("uses 8", ["search", "Hotel Lisboa"]),
    ("print usage.output", ["3", "model.response", "15"]),
    ("mark here", ["@here is event 8"]),
    ("marks", ["@here", "tool.result"]),
    ("first", [">    2"]),
    ("b", ["No breakpoints"]),
    ("b tool:*", ["breakpoint 1: tool:*"]),
    ("commands 1 p args; p tool", ["breakpoint 1 then runs: p args; p tool"]),
    ("c", ["breakpoint 1: tool:*", ">    4", '{"to": "researcher"}', '"delegate"']),
    ("", [">    7", '{"q": "hotels"}']),
    ("rc", [">    4"]),
    ("ignore 1 1", ["ignores the next 1 hit"]),
    ("condition 1 tool == 'search'", ["stops if tool == 'search'"]),
    ("b", ["tool:*", "if tool == 'search'", "then p args; p tool"]),
    ("c", ["End of trace."]),
    ("disable 1", ["1 is off"]),
    ("enable 1", ["1 is on"]),
    ("cl 1", ["breakpoint 1 removed"]),
    ("tbreak error", ["temporary breakpoint 2: error"]),
    ("rc", ["temporary breakpoint 2: error", ">   13", "TimeoutError: too slow"]),
    ("cl", ["0 removed"]),
    ("watch tool", ["watch 3: tool"]),
    ("rc", ["watch 3: tool", '"search" → "delegate"', ">   11"]),
    ("watch", ["tool", "1"]),
    ("unwatch 3", ["watch 3 removed"]),
    ("display tool", ["1: tool = "]),
    ("j @here", [">    8", '1: tool = "search"']),
    ("undisplay 1", ["display 1 removed"]),
    ("cond 9 x", ["there is no breakpoint or watch 9"]),
    ("fl", ["there is no verb 'fl'"]),
    ("j nowhere", ["no event of", "hint:"]),
    ("p print('x')", ["cannot stand in an expression"]),
    ("b e.__class__", ["begins with _"]),
    ("n 0", ["is not a number"]),
    ("w now", ["w takes nothing after it"]),
    ("fork", ["fork ended with exit code 2"]),
    ("replay", ["replay ended with exit code 2"]),
    ("test --no-check -o 'x", ["a quote has no pair"]),
]
QUIT = {"q"}


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    path = tmp_path_factory.mktemp("team") / "team.jsonl"
    record_team(path)
    return path


def check(shown):
    for (line, wanted), text in zip(SITTING, shown, strict=True):
        for part in wanted:
            assert part in text, f"{line}: {part!r} is not in\n{text}"


def test_every_verb_is_tried():
    names = {line.partition(" ")[0] if line[:1] not in "/?" else line[:1] for line, _ in SITTING}
    assert {verb.name for verb in VERBS} - names - QUIT == set()


def test_every_verb_through_a_terminal(team, tmp_path):
    with Terminal("debug", "--repl", team, cwd=tmp_path) as terminal:
        banner = terminal.until(PROMPT)
        assert banner.startswith("✓ team  ok") and "4 turns, 14 events" in banner and ">    2" in banner
        check([terminal.do(line) for line, _ in SITTING])
        terminal.keys("q\n")
        assert terminal.end() == 0


def test_every_verb_through_a_pipe(team):
    lines = [part for line, _ in SITTING for part in (line, 'p "=cut="')]
    # An empty line repeats the command before it, which here must not be the cut.
    lines = [line for at, line in enumerate(lines) if not (lines[at + 1 : at + 2] == [""])]
    done = piped([*lines, "q", "p 'after the end'"], team)
    assert done.code == 2  # the wrong ones among them
    assert PROMPT not in done.out and "after the end" not in done.out
    out = done.out.split('"=cut="\n')
    assert done.out.startswith("✓ team  ok")
    sections = iter(out)
    for line, wanted in SITTING:
        if line == "":
            continue
        text = next(sections) + done.err
        for part in wanted:
            assert part in text, f"{line}: {part!r} is not in\n{text}"


@pytest.mark.parametrize("way", ["text", "json"])
def test_every_verb_with_c(team, way):
    options = ["--json"] if way == "json" else []
    words = [word for line, _ in SITTING for word in ("-c", line)]
    done = typed("debug", team, *options, *words)
    assert done.code == 2
    if way == "json":
        rows = [json.loads(line) for line in done.out.splitlines()]
        assert {"moved", "reasons", "event"} <= set(next(row for row in rows if "moved" in row))
        moved = [row["event"]["address"] for row in rows if row.get("moved")]
        assert moved[:6] == ["3", "11", "4", "5", "4", "11"]
        assert {"name": "", "value": "searchHotel Lisboa"} in rows
    else:
        for line, wanted in SITTING:
            for part in wanted:
                assert part in done.out + done.err, f"{line}: {part!r}"


def test_every_verb_has_a_line_in_the_guide():
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "debugger.md").read_text(encoding="utf-8")
    for verb in VERBS:
        for name in (verb.name, *verb.aliases):
            assert any(f"`{name}{after}" in guide for after in ("`", " ", "REGEX")), name
