"""A travel desk compares rates in two currencies, each with its unit, and converts."""

from kit import Agent


def room_rate(hotel: str) -> dict:
    return {"Grand": {"rate": 12400, "unit": "cents EUR"}, "Nordlys": {"rate": 1310, "unit": "NOK"}}[hotel]


def exchange_rate(source: str, target: str) -> dict:
    return {"pair": f"{source}/{target}", "rate": 0.0861, "day": "2026-11-16"}


def book(hotel: str, nights: int) -> str:
    return f"{hotel}, {nights} nights, confirmation NL-2207"


MODEL = [
    [("room_rate", {"hotel": "Grand"}), ("room_rate", {"hotel": "Nordlys"})],
    ("exchange_rate", {"source": "NOK", "target": "EUR"}),
    [
        "Grand is 124.00 EUR, Nordlys 1310 NOK = 112.79 EUR. Nordlys is cheaper.",
        ("book", {"hotel": "Nordlys", "nights": 2}),
    ],
    "I booked Nordlys for two nights, about 112.79 EUR a night. Confirmation NL-2207.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(room_rate, exchange_rate, book, wire="messages").run(
            "Two nights, whichever of Grand and Nordlys is cheaper."
        )
    )
