"""What tools did before a cut: which may have changed the world, and what the user is told."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording, Tap
from reenact.capture.http.watch import Watch
from reenact.capture.seams.libraries import Installed
from reenact.errors import UsageError
from reenact.playback.effects import effect_of
from reenact.playback.fork.world import need_of_world, run_restore_command, world_changes_before
from reenact.playback.matching.tape import RecordedCall, Tape
from reenact.settings import tool_effects, tool_functions


def ask(
    tap: Tap, messages: list[Any], uses: list[tuple[str, str, dict[str, Any]]] | None = None
) -> list[Any]:
    """Record one model call; returns the conversation that goes on with its answer."""
    call = tap.record_model_request({"model": "m", "max_tokens": 9, "messages": messages}, "anthropic")
    content = [{"type": "tool_use", "id": id_, "name": name, "input": args} for id_, name, args in uses or []]
    answer = {
        "type": "message",
        "role": "assistant",
        "content": content or [{"type": "text", "text": "done"}],
    }
    tap.record_model_response({**answer, "stop_reason": "tool_use" if uses else "end_turn"}, call=call)
    return [*messages, {"role": "assistant", "content": answer["content"]}]


def results(*ids: str) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": id_, "content": "ok"} for id_ in ids],
    }


@pytest.fixture
def tape(tmp_path: Path) -> Tape:
    path = tmp_path / "run.jsonl"
    with Tap(str(path)) as tap:

        @tap.tool(effect="read")
        def look(at: str) -> str:
            return at

        @tap.tool(effect="write")
        def save(text: str) -> None:
            raise OSError("half of it")

        @tap.tool
        def mystery() -> None: ...

        @tap.tool(effect="wirte")
        def misspelt() -> None: ...

        talk = ask(
            tap,
            [{"role": "user", "content": "go"}],
            [("t1", "look", {"at": "x"}), ("t2", "shell", {"cmd": "rm x"})],
        )
        look("x")
        talk = ask(tap, [*talk, results("t1", "t2")], [("t3", "save", {"text": "y" * 200})])
        with pytest.raises(OSError, match="half"):
            save("y" * 200)
        mystery()
        misspelt()
        lost = tap.record_tool_call("send", {"to": "all"}, effect="irreversible")
        slow = tap.record_tool_call("slow", {}, effect="write")
        ask(tap, [*talk, results("t3")], [("t4", "later", {})])
        tap.record_tool_result("slow", call=slow)
        assert lost
    return Tape(Recording.load(str(path)))


def third(tape: Tape) -> RecordedCall:
    return [call for call in tape.calls if call.kind == "model"][2]


def test_what_may_have_changed_something_is_listed_in_order(tape: Tape) -> None:
    found = world_changes_before(tape, third(tape))
    assert [(act.tool, act.effect, act.state) for act in found] == [
        ("shell", None, "done"),  # nobody recorded it: the conversation tells of it
        ("save", "write", "done"),  # it failed, and may have done half of its work
        ("mystery", None, "done"),
        ("misspelt", None, "done"),
        ("send", "irreversible", "unknown"),
        ("slow", "write", "running"),
    ]
    assert json.loads(found[0].args) == {"cmd": "rm x"}
    assert len(found[1].args) == 80 and found[1].args.endswith("…")
    assert [act.tool for act in found if act.runs_again] == ["shell"]
    text = found[4].text()
    assert text.startswith(f"step {found[4].step}: send") and "unknown whether it happened" in text


def test_only_what_comes_before_the_cut_counts(tape: Tape) -> None:
    first, second, _ = (call for call in tape.calls if call.kind == "model")
    assert world_changes_before(tape, first) == []
    assert [act.tool for act in world_changes_before(tape, second)] == ["shell"]
    save = next(call for call in tape.calls if call.tool == "save")
    assert [act.tool for act in world_changes_before(tape, save)] == ["shell"]  # not itself


def test_the_users_word_counts_more_than_the_tools(tape: Tape) -> None:
    printed = {"shell": "read", "my*": "pure", "save": "irreversible", "s*": "pure"}
    found = world_changes_before(tape, third(tape), printed)
    assert [(act.tool, act.effect) for act in found] == [("save", "irreversible"), ("misspelt", None)]
    assert effect_of("look", "write", {"lo?k": "read"}) == "read"
    assert effect_of(None, ["write"], {}) is None


def test_settings_are_read_and_a_wrong_word_is_reported(tmp_path: Path) -> None:
    (tmp_path / "reenact.toml").write_text('[effects]\nsearch = "read"\n"send_*" = "irreversible"\n')
    assert tool_effects(str(tmp_path)) == {"search": "read", "send_*": "irreversible"}
    (tmp_path / "reenact.toml").write_text('[effects]\nsearch = "raed"\n')
    with pytest.raises(UsageError, match="effects.search is 'raed'") as wrong:
        tool_effects(str(tmp_path))
    assert "pure, read, write, irreversible" in str(wrong.value.hint)
    (tmp_path / "reenact.toml").unlink()
    (tmp_path / "pyproject.toml").write_text('[tool.reenact.effects]\nsearch = "pure"\n')
    assert tool_effects(str(tmp_path)) == {"search": "pure"}


def test_a_tool_in_the_settings_has_an_effect_and_a_function(tmp_path: Path) -> None:
    table = 'search = "read"\nbook = { function = "agent:book_room", effect = "write" }\nfind = { function = "a.b:C.find" }\n'
    (tmp_path / "pyproject.toml").write_text(f"[tool.reenact.tools]\n{table}")
    assert tool_effects(str(tmp_path)) == {"search": "read", "book": "write"}
    assert tool_functions(str(tmp_path)) == {"book": "agent:book_room", "find": "a.b:C.find"}
    wrong = {
        'search = "raed"': "tools.search is 'raed'",
        "search = 3": "tools.search is 3",
        "search = {}": "tools.search is {}",
        'search = { efect = "read" }': "tools.search is {'efect'",
        'search = { function = "agent" }': "tools.search.function is 'agent'",
        "search = { function = 1 }": "tools.search.function is 1",
    }
    for line, message in wrong.items():
        (tmp_path / "reenact.toml").write_text(f"[tools]\n{line}\n")
        with pytest.raises(UsageError, match=re.escape(message)) as refused:
            tool_effects(str(tmp_path))
        assert refused.value.hint
    (tmp_path / "reenact.toml").write_text("tools = 3\n")
    with pytest.raises(UsageError, match="tools is not a table"):
        tool_functions(str(tmp_path))


def test_the_user_sees_what_to_choose_from(tape: Tape) -> None:
    acts = world_changes_before(tape, third(tape))
    reported = need_of_world(acts * 5, snapshots="/the/folder")
    assert reported is not None and "shell" in reported.why and "and 10 more" in reported.why
    for flag in ("--workspace /the/folder", "--restore CMD", "--stale-world"):
        assert flag in reported.hint
    assert "reenact run --workspace DIR" in getattr(need_of_world(acts), "hint", "")
    assert need_of_world([]) is None


def test_a_restore_command_talks_on_stderr_and_must_end_well(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_restore_command("echo restored | tee $OUT", {**os.environ, "OUT": str(tmp_path / "out")})
    reported = capfd.readouterr()
    assert (reported.out, reported.err) == ("", "restored\n") and (
        tmp_path / "out"
    ).read_text() == "restored\n"
    with pytest.raises(UsageError, match="exit code 4"):
        run_restore_command("exit 4")


def test_what_an_mcp_server_says_of_its_tools_is_their_effect(tmp_path: Path) -> None:
    from mcp.client import Client
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    server = MCPServer("files")
    for name, hints in {
        "look": ToolAnnotations(read_only_hint=True),
        "add": ToolAnnotations(read_only_hint=False, destructive_hint=False),
        "drop": ToolAnnotations(destructive_hint=True),
        "quiet": ToolAnnotations(title="Quiet"),
        "bare": None,
    }.items():
        server.add_tool(lambda: "ok", name=name, annotations=hints)

    async def agent(is_listed: bool) -> None:
        async with Client(server) as client:
            if is_listed:
                await client.list_tools()
            for name in ("look", "add", "drop", "quiet", "bare"):
                await client.call_tool(name, {})

    with Tap(str(tmp_path / "run.jsonl")) as tap:
        seams = Installed(Watch(tap.recorder))
        seams.install()
        try:
            asyncio.run(agent(is_listed=True))
            asyncio.run(agent(is_listed=False))
        finally:
            seams.uninstall()
    recording = Recording.load(str(tmp_path / "run.jsonl"))
    effects = [call.event.effect for call in recording.calls()]
    assert effects[:5] == ["read", "write", "write", None, None]
    assert effects[5] is None  # of a session whose server has told nothing yet
