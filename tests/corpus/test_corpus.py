"""Every trace file ever written, damaged or spelled otherwise reads as it did on the day it was added."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import grow  # noqa: E402

EXPECTED = json.loads((HERE / "expected.json").read_text())


@pytest.mark.parametrize("name", EXPECTED)
def test_a_file_of_the_corpus_reads_as_expected(name):
    assert grow.facts(HERE / name) == EXPECTED[name]


def test_every_file_of_the_corpus_has_its_expectation():
    assert {path.relative_to(HERE).as_posix() for path in grow.members()} == set(EXPECTED)
