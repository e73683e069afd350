"""Every framework's agents are played once for all tests: bare, below `reenact run`, and with their clients wrapped."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from provider import Provider
from sdk import offline

from .play import Played, play
from .table import Framework


@pytest.fixture(scope="session")
def played(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Framework, str], Played]:
    environment = offline.environment(tmp_path_factory.mktemp("offline"))

    @cache
    def once(framework: Framework, way: str) -> Played:
        folder: Path = tmp_path_factory.mktemp(f"{framework.name}-{way}")
        return play(framework, way, provider, folder, environment)

    return once
