"""How much of a proof the short suite tries: `make test` tries a sample, `make test-long` everything."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

LONG = os.environ.get("REENACT_LONG") == "1"


def up_to(most: int) -> settings:
    """So many examples of a property in the long suite, and an eighth of them in the short one."""
    return settings(max_examples=most if LONG else most // 8)


def one_in(count: int, cases: Iterable[Any], first: int = 0) -> list[Any]:
    """All cases of a table; all but every `count`-th carry the mark `long`, and only the long suite tries them."""
    return [case if n % count == first else _marked(case) for n, case in enumerate(cases)]


def _marked(case: Any) -> Any:
    if isinstance(case, ParameterSet):
        return pytest.param(*case.values, marks=[*case.marks, pytest.mark.long], id=case.id)
    return long(*case) if isinstance(case, tuple) else long(case)


def long(*values: Any, **options: Any) -> Any:
    """A case of a table that only the long suite tries."""
    return pytest.param(*values, marks=pytest.mark.long, **options)
