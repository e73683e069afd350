"""Every framework's agents are played once for all tests: bare, below `reenact run`, and with their clients wrapped.

Importing a framework takes seconds of a processor, so as many are played at once as there are processors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from provider import Provider
from sdk import offline

from .play import BARE, RUN, WRAPPED, Played, play
from .table import HERE, Framework


@pytest.fixture(scope="session")
def played(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[Framework, str], Played]]:
    environment = offline.environment(tmp_path_factory.mktemp("offline"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        plays = {
            (framework, way): pool.submit(
                play, framework, way, provider, tmp_path_factory.mktemp(f"{framework}-{way}"), environment
            )
            for framework in HERE
            for way in (BARE, RUN, WRAPPED)
            if way != WRAPPED or framework.is_wrapped
        }
        yield lambda framework, way: plays[framework, way].result()
