"""``--limit N``, for the commands that list things."""

from __future__ import annotations

import argparse


def add_limit(parser: argparse.ArgumentParser, things: str) -> None:
    """Add the option that shows no more than so many."""
    parser.add_argument("--limit", type=_positive, metavar="N", help=f"at most N {things}")


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("it must be 1 or more")
    return number
