"""Several forks in a table."""

from __future__ import annotations

import argparse

from ...errors import UsageError
from ..output import Output


def run(args: argparse.Namespace, out: Output) -> int:
    raise UsageError("not yet")
