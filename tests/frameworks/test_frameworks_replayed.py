"""Agents of every framework, recorded without a word of code in them and run again by their recording."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .agents.work import TOOLS
from .play import DECORATED, RUN, Played
from .replay import UNUSABLE, Replayed, tools_in
from .table import HERE, Framework

Play = Callable[[Framework, str], Played]
Replay = Callable[[Framework, str], Replayed]


@pytest.mark.parametrize("way", [RUN, DECORATED])
@pytest.mark.parametrize("framework", HERE, ids=str)
def test_an_agent_goes_the_way_it_went_and_nobody_is_called(
    framework: Framework, way: str, played: Play, replayed: Replay
) -> None:
    recorded, again = played(framework, way), replayed(framework, way)
    assert [case.name for case in framework.cases if not again.went_as(recorded, case)] == [], again.said
    assert again.is_as(recorded, framework), (again.exit, again.report)


@pytest.mark.parametrize("framework", HERE, ids=str)
def test_tools_run_only_with_leave(framework: Framework, played: Play, replayed: Replay) -> None:
    recorded, again = played(framework, RUN), replayed(framework, RUN)
    assert again.refused is not None
    assert (again.refused.returncode, again.refused.stdout) == (UNUSABLE, "")
    asked = {call.tool for call in recorded.calls if call.kind == "tool"}
    assert set(again.allowed) == asked
    assert sorted(again.tools_executed) == sorted(tools_in(recorded.printed)) != []


@pytest.mark.parametrize("framework", HERE, ids=str)
def test_decorated_tools_are_answered_and_do_not_run(framework: Framework, replayed: Replay) -> None:
    again = replayed(framework, DECORATED)  # what is left are agents, and the framework's own
    assert not set(TOOLS) & {*again.allowed, *again.tools_executed}
