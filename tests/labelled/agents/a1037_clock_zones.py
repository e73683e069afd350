"""A scheduler converts time zones itself, correctly."""

from kit import Agent


def free_slots(person: str, day: str) -> dict:
    return {
        "ana": {"free": ["08:00-12:00"], "zone": "UTC"},
        "kenji": {"free": ["17:00-20:00"], "zone": "Asia/Tokyo"},
    }[person]


def create_event(title: str, start: str, minutes: int, guests: list) -> dict:
    return {"event": "ev-14", "start": start, "conflicts": []}


MODEL = [
    [
        ("free_slots", {"person": "ana", "day": "2026-02-19"}),
        ("free_slots", {"person": "kenji", "day": "2026-02-19"}),
    ],
    [
        "17:00-20:00 in Tokyo is 08:00-11:00 UTC, so 09:00 UTC suits both.",
        (
            "create_event",
            {"title": "Sync", "start": "2026-02-19T09:00:00Z", "minutes": 60, "guests": ["ana", "kenji"]},
        ),
    ],
    "Sync is on 19 February at 09:00 UTC: 9:00 in Lisbon, 18:00 in Tokyo.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(free_slots, create_event).run("An hour for ana (Lisbon) and kenji (Tokyo) on 19 February 2026.")
    )
