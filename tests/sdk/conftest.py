"""An environment in which SDKs stay on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from . import offline


@pytest.fixture(scope="session")
def offline_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return offline.environment(tmp_path_factory.mktemp("offline"))


@pytest.fixture(autouse=True)
def offline_here(offline_environment: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(offline_environment)
    yield
    os.environ.clear()
    os.environ.update(before)
