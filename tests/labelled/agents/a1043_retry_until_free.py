"""A lock is held three times; the agent waits and then gets it."""

import itertools

from kit import Agent

TRIES = itertools.count(1)


def take_lock(name: str) -> dict:
    n = next(TRIES)
    if n < 4:
        raise BlockingIOError(f"{name} is held by job 5510, try again later")
    return {"lock": name, "held": True}


def sleep(seconds: int) -> str:
    return "done"


def vacuum(table: str) -> str:
    return f"{table}: 1.2 GB freed"


MODEL = [
    *[("take_lock", {"name": "maintenance"}), ("sleep", {"seconds": 30})] * 3,
    ("take_lock", {"name": "maintenance"}),
    ("vacuum", {"table": "events"}),
    "Job 5510 held the lock for a while. The vacuum of events then freed 1.2 GB.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(take_lock, sleep, vacuum).run(
            "Vacuum the table events under the lock maintenance; wait if it is held."
        )
    )
