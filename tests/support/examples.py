"""How many examples a property is tried with."""

from __future__ import annotations

import os

from hypothesis import settings


def up_to(most: int) -> settings:
    """So many in the long suite, and a fourth of them in the short one."""
    return settings(max_examples=most if os.environ.get("REENACT_LONG") else most // 4)
