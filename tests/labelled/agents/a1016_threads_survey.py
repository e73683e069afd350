"""Five readings in threads, of which one is missing and is reported as missing."""

import time

from kit import Threaded

LEVELS = {"north": 3.1, "south": 2.8, "east": None, "west": 3.0, "centre": 2.9}


def level(well: str) -> dict:
    time.sleep(0.01 * len(well))
    return {"well": well, "metres": LEVELS[well], "note": "logger offline" if LEVELS[well] is None else ""}


MODEL = [
    [("level", {"well": well}) for well in LEVELS],
    "north 3.1 m, south 2.8 m, west 3.0 m, centre 2.9 m. The logger of the east well is offline, so its level is unknown.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Threaded(level).run("What are the levels of our five wells?"))
