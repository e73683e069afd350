"""A travel desk compares hotel rates and books the cheapest room within the budget."""

from kit import Agent

RATES = {"Pestana": {"rate": 189.0, "currency": "EUR"}, "Bairro Alto": {"rate": 16400, "currency": "EUR"}}
"""The second came from a channel manager that keeps minor units."""


def find_hotels(city: str, checkin: str, nights: int) -> list[str]:
    return list(RATES)


def room_rate(hotel: str) -> dict:
    return RATES[hotel]


def book_room(hotel: str, nights: int) -> str:
    return f"Booked {hotel} for {nights} nights, confirmation QX-5512."


MODEL = [
    ("find_hotels", {"city": "Lisbon", "checkin": "2026-03-04", "nights": 3}),
    [
        "Two hotels have rooms. Comparing their rates.",
        ("room_rate", {"hotel": "Pestana"}),
        ("room_rate", {"hotel": "Bairro Alto"}),
    ],
    [
        "Bairro Alto costs 16400 EUR a night, far above the budget. Booking Pestana at 189 EUR.",
        ("book_room", {"hotel": "Pestana", "nights": 3}),
    ],
    "I booked the Pestana, 189 EUR a night, as the cheaper of the two. Confirmation QX-5512.",
]
LABEL = (
    "units",
    "room_rate gives the second hotel in cents, so the dearer hotel is booked",
    "result room_rate 2",
)

if __name__ == "__main__":
    agent = Agent(find_hotels, room_rate, book_room, system="You are a travel desk. Book the cheapest room.")
    print(agent.run("Three nights in Lisbon from 4 March 2026, at most 200 EUR a night."))
