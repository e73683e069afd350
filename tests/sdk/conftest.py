"""An environment in which SDKs stay on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from . import offline


@pytest.fixture(scope="session", autouse=True)
def offline_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    pytest.importorskip("certifi", reason="the group sdk is not installed")
    before = dict(os.environ)
    wanted = offline.environment(tmp_path_factory.mktemp("offline"))
    os.environ.clear()
    os.environ.update(wanted)
    yield
    os.environ.clear()
    os.environ.update(before)
