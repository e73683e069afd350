"""A logistics planner reads the wind at three ports at the same time and picks one for the crane."""

import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from kit import Agent

WIND = {"Rotterdam": (0.20, 64), "Antwerp": (0.10, 22), "Hamburg": (0.01, 41)}


def wind_at(port: str) -> dict:
    wait, knots = WIND[port]
    time.sleep(wait)
    return {"wind_kn": knots}


def schedule_crane(port: str, hour: int) -> str:
    return f"Crane scheduled in {port} at {hour}:00."


class Eager(Agent):
    def batch(self, calls):
        with ThreadPoolExecutor(3) as pool:
            done = [
                each.result() for each in as_completed([pool.submit(self.attempt, call) for call in calls])
            ]
        return list(zip(calls, done, strict=True))  # in the order in which they ended


MODEL = [
    [
        "Reading the wind at the three ports.",
        ("wind_at", {"port": "Rotterdam"}),
        ("wind_at", {"port": "Antwerp"}),
        ("wind_at", {"port": "Hamburg"}),
    ],
    [
        "Antwerp has 22 knots, Rotterdam 41, Hamburg 64. Antwerp is below the limit of 25.",
        ("schedule_crane", {"port": "Antwerp", "hour": 14}),
    ],
    "The crane works in Antwerp at 14:00, with 22 knots of wind. Rotterdam has 41 knots, Hamburg 64.",
]
LABEL = (
    "mixed up results",
    "results of parallel tools are attached to the calls in the order in which they ended",
    "sent wind_at Rotterdam",
    "sent wind_at Hamburg",
)

if __name__ == "__main__":
    agent = Eager(wind_at, schedule_crane, system="Cranes work below 25 knots. Report all ports.")
    print(
        agent.run(
            "Where can the crane work this afternoon: Rotterdam, Antwerp or Hamburg? Schedule it for 14:00."
        )
    )
