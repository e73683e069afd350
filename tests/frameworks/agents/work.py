"""What the agents of all frameworks have in common: their tools, and plans for the scripted model.

A tool prints what it did, as JSON, and writes a line to a file, so that whoever watches the program knows what
really happened.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
QUESTION = "Find me a room."
MODEL = "gpt-scripted"
TOOLS = ("lookup", "book", "burn")
"""Those that are functions of this module."""
EFFECTS = "effects.txt"
"""The file in the home folder that each tool writes a line to."""


def lookup(question: str) -> str:
    """Look something up.

    Args:
        question: What is to be looked up.
    """
    return did("lookup", {"question": question}, f"high: {question}")


def book(city: str, nights: int) -> str:
    """Book a room.

    Args:
        city: Where.
        nights: For how long.
    """
    return did("book", {"city": city, "nights": nights}, f"{nights} nights in {city}")


def burn(city: str) -> str:
    """Fail.

    Args:
        city: Where.
    """
    say(tool="burn", args={"city": city}, error=f"no room in {city}")
    effect("burn")
    raise ValueError(f"no room in {city}")


def price(city: str, nights: int) -> dict[str, Any]:
    """Name a price.

    Args:
        city: Where.
        nights: For how long.
    """
    priced = {"city": city, "euros": 90.5 * nights, "taxed": True}
    say(tool="price", args={"city": city, "nights": nights}, result=priced)
    effect("price")
    return priced


def did(tool: str, args: dict[str, Any], result: str) -> str:
    say(tool=tool, args=args, result=result)
    effect(tool)
    return result


def effect(tool: str) -> None:
    with (Path.home() / EFFECTS).open("a") as file:
        file.write(f"{tool}\n")


def say(**fields: Any) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")  # one write, whatever thread it comes from
    sys.stdout.flush()


def plan(*steps: list[tuple[str, dict[str, Any]]]) -> str:
    """A prompt that the scripted model follows."""
    return f"You are a travel agent. PLAN {json.dumps(steps)}"


LISBON = ("book", {"city": "Lisbon", "nights": 3})
HILLS = ("lookup", {"question": "Which city has seven hills?"})
SEA = ("lookup", {"question": "Is it by the sea?"})
LOOP = plan([HILLS], [SEA], [LISBON])
PARALLEL = plan([HILLS, SEA, LISBON])
PORTO = ("burn", {"city": "Porto"})
FAILING = plan([HILLS], [PORTO])
COSTS = ("price", {"city": "Lisbon", "nights": 3})
WORK = plan([HILLS, SEA], [PORTO], [COSTS])
"""One tool twice in a turn, one that fails, one whose result is not text."""


def hand(client: T) -> T:
    """Every script passes what makes its calls through here: a place to change it from outside."""
    return client


def main(cases: dict[str, Callable[[str], object]]) -> NoReturn:
    """Run the cases that the command line names, each against its URL (`case=URL ...`), and print the answers."""
    for word in sys.argv[1:]:
        name, _, url = word.partition("=")
        say(case=name)
        say(answer=str(cases[name](url)))
    sys.exit(0)
