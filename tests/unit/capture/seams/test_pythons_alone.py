"""Which options of a Python keep it from reading its environment, and so from us."""

from __future__ import annotations

import subprocess
import sys

import pytest

from reenact.capture.seams.coverage import says_to_ignore_us

PRINTS = "import os, sys; print(sys.flags.ignore_environment or sys.flags.no_site)"
ALONE = [
    ["-I"],
    ["-E"],
    ["-S"],
    ["-uE"],
    ["-W", "ignore", "-I"],
    ["-X", "dev", "-BS"],
    ["-OIs"],
    ["-Wignore", "-E"],
]
WITH_US = [[], ["-u"], ["-WIES"], ["-W", "ignore"], ["-X", "dev"], ["-Xutf8", "-B"], ["-Ximporttime"], ["-O"]]


@pytest.mark.parametrize("options", [*ALONE, *WITH_US], ids=" ".join)
def test_python_itself_agrees(options: list[str]) -> None:
    command = [sys.executable, *options, "-c", PRINTS, "-I", "IES"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert bool(int(printed.replace("True", "1").replace("False", "0"))) is (options in ALONE)
    assert bool(says_to_ignore_us(command)) is (options in ALONE)
    assert not says_to_ignore_us([sys.executable, "-m", "agent", "-I"])
    assert not says_to_ignore_us([sys.executable, "agent.py", "-I"])
