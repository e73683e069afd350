"""Agents of every framework, recorded without a word of code in them and run again by their recording."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.pages import DOCS

from .play import DECORATED, RUN, Played
from .replay import AGENTS, HEADER, UNUSABLE, Replayed, tools_in
from .table import ENVIRONMENT, HERE, Framework
from .test_frameworks_tools import without_version

TABLE = (DOCS / "support.md").read_text(encoding="utf-8").partition(HEADER)[2].partition("\n\n")[0]

Play = Callable[[Framework, str], Played]
Replay = Callable[[Framework, str], Replayed]


@pytest.mark.parametrize("way", [RUN, DECORATED])
@pytest.mark.parametrize("framework", HERE, ids=str)
def test_an_agent_goes_the_way_it_went_and_nobody_is_called(
    framework: Framework, way: str, played: Play, replayed: Replay
) -> None:
    recorded, again = played(framework, way), replayed(framework, way)
    assert [case.name for case in framework.cases if not again.went_as(recorded, case)] == [], again.stderr
    assert again.is_as(recorded, framework), (again.exit, again.report)


@pytest.mark.parametrize("framework", HERE if ENVIRONMENT == "newest" else (), ids=str)
def test_the_table_in_the_docs_is_what_is_measured(
    framework: Framework, played: Play, replayed: Replay
) -> None:
    measured = replayed(framework, RUN).row(played(framework, RUN), framework)
    (row,) = [line for line in TABLE.splitlines() if line.startswith(f"| {framework.package} | ")]
    assert without_version(row) == without_version(measured)


@pytest.mark.parametrize("way", [RUN, DECORATED])
@pytest.mark.parametrize("framework", HERE, ids=str)
def test_tools_are_answered_and_only_agents_and_the_frameworks_own_need_leave(
    framework: Framework, way: str, played: Play, replayed: Replay
) -> None:
    again = replayed(framework, way)
    functions = {*tools_in(played(framework, way).printed)}
    assert not functions - AGENTS & {*again.allowed}
    assert {*again.tools_executed} <= AGENTS
    if again.refused is not None:
        assert (again.refused.returncode, again.refused.stdout) == (UNUSABLE, "")
