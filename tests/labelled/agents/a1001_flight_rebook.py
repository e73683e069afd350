"""A rebooking agent whose first search times out and whose second finds a flight."""

import itertools

from kit import Agent

TRIES = itertools.count(1)


def search_flights(origin: str, destination: str, date: str) -> list:
    if next(TRIES) == 1:
        raise TimeoutError("fare service did not answer within 8 s")
    return [{"flight": "TP1360", "departs": "14:05", "price_eur": 143.2, "seats": 4}]


def rebook(booking: str, flight: str) -> dict:
    return {"booking": booking, "flight": flight, "state": "confirmed", "charge_eur": 143.2}


MODEL = [
    ("search_flights", {"origin": "LIS", "destination": "LHR", "date": "2026-05-09"}),
    [
        "The search timed out, trying once more.",
        ("search_flights", {"origin": "LIS", "destination": "LHR", "date": "2026-05-09"}),
    ],
    ("rebook", {"booking": "K7PLQ2", "flight": "TP1360"}),
    "Your booking K7PLQ2 is moved to TP1360 at 14:05 on 9 May. The charge is 143.20 EUR.",
]
LABEL = "passes"

if __name__ == "__main__":
    agent = Agent(search_flights, rebook, wire="messages", system="You rebook flights. At most 200 EUR.")
    print(
        agent.run("My flight was cancelled. Move K7PLQ2 to any flight from Lisbon to Heathrow on 9 May 2026.")
    )
