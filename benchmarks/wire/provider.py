"""The scripted provider in a process of its own, so that its work is nobody's cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "tests"


@contextmanager
def provider() -> Iterator[str]:
    """Serve until the block ends; yields the address."""
    command = [sys.executable, "-m", "support.provider"]
    serving = subprocess.Popen(command, cwd=TESTS, stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        yield serving.stdout.readline().strip()
    finally:
        serving.terminate()
        serving.wait()
