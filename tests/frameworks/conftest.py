"""Every framework's agents are played once for all tests: bare, below `reenact run`, with their clients wrapped, with
their tools decorated; and what was recorded is replayed.

Importing a framework takes seconds of a processor, so as many are played at once as there are processors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sdk import offline
from support.provider import Provider

from .play import BARE, DECORATED, RUN, WRAPPED, Played, play
from .replay import Replayed, replay
from .table import HERE, Framework


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return offline.environment(tmp_path_factory.mktemp("offline"))


@pytest.fixture(scope="session")
def played(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]
) -> Iterator[Callable[[Framework, str], Played]]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plays = {
            (framework, way): pool.submit(
                play, framework, way, provider, tmp_path_factory.mktemp(f"{framework}-{way}"), environment
            )
            for framework in HERE
            for way in (BARE, RUN, WRAPPED, DECORATED)
            if way != WRAPPED or framework.is_wrapped
        }
        yield lambda framework, way: plays[framework, way].result()


@pytest.fixture(scope="session")
def replayed(
    provider: Provider, played: Callable[[Framework, str], Played], environment: dict[str, str]
) -> Iterator[Callable[[Framework, str], Replayed]]:
    """What a play that was recorded comes to when it is run again."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        replays = {
            (framework, way): pool.submit(
                lambda framework, way: replay(played(framework, way), provider, environment),
                framework,
                way,
            )
            for framework in HERE
            for way in (RUN, DECORATED)
        }
        yield lambda framework, way: replays[framework, way].result()
