"""A ticket agent sells a seat from a map that it read before another sale."""

from kit import Agent

TAKEN = {"A1"}
CACHE = {}


def free_seats(show: str) -> list:
    if show not in CACHE:
        CACHE[show] = [seat for seat in ("A1", "A2", "A3") if seat not in TAKEN]
    return CACHE[show]


def sell(show: str, seat: str, to: str) -> str:
    if seat in TAKEN:
        raise ValueError(f"seat {seat} is sold")
    TAKEN.add(seat)
    return f"{seat} sold to {to}"


SELL = ("sell", {"show": "Tosca", "seat": "A2", "to": "Brandt"})
MODEL = [
    ("free_seats", {"show": "Tosca"}),
    ("sell", {"show": "Tosca", "seat": "A2", "to": "Amado"}),
    "Amado has seat A2.",
    ("free_seats", {"show": "Tosca"}),
    SELL,
    ("free_seats", {"show": "Tosca"}),
    SELL,
    "I am sorry, seat A2 shows as free but cannot be sold. There seems to be a problem with the box office.",
]
LABEL = (
    "stale cache",
    "free_seats answers from a cache that the first sale did not clear",
    "result free_seats 2",
    "result free_seats 3",
)

if __name__ == "__main__":
    agent = Agent(free_seats, sell)
    agent.run("One seat for Tosca for Amado, please, the first free one.")
    print(agent.run("And one for Brandt, the first free one."))
