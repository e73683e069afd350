"""Tools that only a framework knows: arguments that it converts, functions of a library, agents.

By name and arguments none of them is found; each is recorded with the id of its tool use, and answered.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.provider import Provider

from .agents.work import EFFECTS
from .play import BARE, RUN, play, python
from .table import TOOLS_HERE, Case, Framework

INVOKED = {
    "openai-agents": ("openai-agents", 5),
    "pydantic-ai": ("pydantic-ai", 3),
    "agno": ("agno", 3),
    "strands": ("strands", 3),
    "strands-modules": ("strands", 3),
    "autogen": ("autogen", 3),
    "autogen-streams": ("autogen", 5),
    "agno-async": ("agno", 3),
    "langchain-async": ("langchain", 3),
}
"""By the agent: the framework, which is the source of what is not found by its name, and how many tools are called;
five with an agent as a tool."""
AS_SENT = ("strands-modules", "autogen-streams")
"""Here the function gets the arguments in one object, so they are recorded as the model sent them."""


@pytest.mark.parametrize(
    "name", [name for name, (source, _) in INVOKED.items() if source in {each.name for each in TOOLS_HERE}]
)
def test_a_framework_gives_each_call_its_id_and_names_the_function(
    name: str, provider: Provider, tmp_path: Path, environment: dict[str, str]
) -> None:
    source, total = INVOKED[name]
    framework = Framework(name, "invoked.py", "", (Case(name, words="plan", at_once=True),))
    folders = [tmp_path / way for way in (BARE, RUN)]
    for folder in folders:
        folder.mkdir()
    bare, recorded = (
        play(framework, way, provider, folder, environment) for way, folder in zip((BARE, RUN), folders)
    )
    assert (recorded.exit, recorded.printed) == (0, bare.printed), recorded.stderr
    assert f"{total} of {total} tool uses recorded" in recorded.stderr[-1]
    called = [each for each in events(recorded.traces[0]) if each["kind"] == "tool.called"]
    first, second, weigh = called[:3]
    sent = [
        (each["tool_id"][-2:], each["args"]) for each in sorted((first, second), key=lambda e: e["tool_id"])
    ]
    number = str if name in AS_SENT else int
    assert (
        sent == [("10", {"count": number(2)}), ("11", {"count": number(3)})]
        and "matched" not in first | second
    )
    assert (weigh["tool"], weigh["source"], weigh["args"]) == ("weigh", source, {"item": "box"})
    if total == 5:  # an agent as a tool: a span with a record inside
        expert, inner = called[3:]
        (asked,) = [each for each in events(recorded.traces[0]) if each.get("call") == inner["parent"]][:1]
        assert (expert["tool"], expert["source"], asked["parent"]) == ("expert", source, expert["call"])
    assert effects(folders[1]) == effects(folders[0]) != []
    again = python(["-m", "reenact", "replay", str(recorded.traces[0])], recorded.folder, environment)
    assert again.returncode == 0 and "replayed as recorded" in again.stderr, again.stderr
    assert again.stdout.splitlines()[1:] == bare.printed[name] and effects(folders[1]) == []


def events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def effects(folder: Path) -> list[str]:
    path = folder / EFFECTS
    found = sorted(path.read_text().splitlines()) if path.exists() else []
    path.unlink(missing_ok=True)
    return found
