"""A travel agent books a train; the service reads the date as month first."""

import datetime

from kit import Agent


def find_trains(origin: str, destination: str, date: str) -> list:
    """Find trains; date as DD/MM/YYYY."""
    day = datetime.datetime.strptime(date, "%m/%d/%Y").date()
    return [{"train": "IC 533", "departs": f"{day.isoformat()}T08:39", "seats": 12}]


def book(train: str, departs: str) -> str:
    return f"{train} booked, departs {departs}"


MODEL = [
    ("find_trains", {"origin": "Porto", "destination": "Faro", "date": "04/09/2026"}),
    ("book", {"train": "IC 533", "departs": "2026-04-09T08:39"}),
    "You are booked on IC 533 from Porto to Faro at 08:39.",
]
LABEL = (
    "time zone",
    "find_trains reads 4 September as 9 April",
    "result find_trains 1",
    "call book 1",
)

if __name__ == "__main__":
    print(
        Agent(find_trains, book, wire="messages").run(
            "Book me on a morning train from Porto to Faro on 4 September 2026."
        )
    )
