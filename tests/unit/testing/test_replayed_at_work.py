"""Real threads and tasks against a real provider: unchanged agents see the very same, changed ones are caught.

The long suite tries a hundred seeds, with four busy processes per core.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reenact.errors import Diverged
from reenact.testing import replaying
from support.examples import LONG, long, one_in
from support.provider import Provider
from support.shapes import EDITED, INSERTED, OMITTED, SHAPES, SWAPPED, Change, agent_of

SEEDS = range(100)
BUSY = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: sum(range(10_000))"
"""Computes as long as the one who started it lives."""
KINDS = ("threads", "tasks")
CHANGES = [
    case if (n + n // 2) % 2 == 0 else long(*case)  # each change of each shape once: in threads or in tasks
    for n, case in enumerate(
        (shape, what, kind)
        for shape in SHAPES
        for what in (EDITED, INSERTED, OMITTED, SWAPPED)
        if what != SWAPPED or shape not in ("repeated", "equal_at_once")  # equal steps cannot be swapped
        for kind in KINDS
    )
]


@pytest.fixture(scope="module", autouse=True)
def busy() -> Iterator[None]:
    """Four processes per core that do nothing but compute."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))  # each starts its share
    count = -(-4 * (os.cpu_count() or 1) // workers) if LONG else 0
    started = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]  # noqa: S603
    yield
    for each in started:
        each.kill()
        each.wait()


def record(kind: str, shape: str, provider: Provider, seed: int, path: Path) -> tuple[Any, str]:
    url = provider.url(f"sampled-{seed}@{kind}.{shape}.{path.parent.name}", "/v1/messages")
    with replaying(path, mode="rerecord"):
        return agent_of(kind, shape, url)(), url


@pytest.mark.parametrize("seed", one_in(100, SEEDS))
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_unchanged_agent_sees_the_very_same(
    kind: str, shape: str, seed: int, provider: Provider, tmp_path: Path
) -> None:
    recorded, url = record(kind, shape, provider, seed, tmp_path / "run.jsonl")
    with replaying(tmp_path / "run.jsonl") as run:
        assert agent_of(kind, shape, url)() == recorded
    assert run.notes == []


@pytest.mark.parametrize("seed", one_in(100, SEEDS))
@pytest.mark.parametrize(("shape", "what", "kind"), one_in(2, CHANGES))
def test_a_changed_agent_is_caught(
    kind: str, shape: str, what: str, seed: int, provider: Provider, tmp_path: Path
) -> None:
    _, url = record(kind, shape, provider, seed, tmp_path / "run.jsonl")
    at = random.Random(f"{shape} {seed}").randrange(4)
    with pytest.raises((Diverged, AssertionError, BaseExceptionGroup)):  # noqa: SIM117
        with replaying(tmp_path / "run.jsonl"):
            agent_of(kind, shape, url, Change(what, at if what != SWAPPED else -1))()
