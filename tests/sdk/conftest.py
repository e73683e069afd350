"""An environment in which SDKs stay on this machine."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Iterator

import pytest

from . import offline


@pytest.fixture(scope="session")
def offline_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return offline.environment(tmp_path_factory.mktemp("offline"))


@pytest.fixture(autouse=True)
def offline_here(offline_environment: dict[str, str], request: pytest.FixtureRequest) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(offline_environment)
    yield
    os.environ.clear()
    os.environ.update(before)
    spec = getattr(request.node, "callspec", None)
    cell = spec.params.get("cell") if spec is not None else None
    if cell is not None and cell.mode == "async":
        # SDKs keep connections of a loop that is over; what they leave is no other test's fault.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
        gc.freeze()  # the SDKs' modules are many: they need not be looked through each time
