"""A scheduler finds a slot for people on two continents."""

from kit import Agent


def free_slots(person: str, day: str) -> dict:
    """Free hours of a person, in UTC."""
    hours = {"ana": ["13:00-17:00"], "kenji": ["08:00-12:00"]}[
        person
    ]  # kenji's calendar answers in Tokyo time
    return {"person": person, "day": day, "free": hours}


def create_event(title: str, start: str, minutes: int, guests: list) -> dict:
    return {"event": "ev-902", "start": start, "conflicts": ["kenji: asleep hours (21:00-07:00 local)"]}


MODEL = [
    [
        ("free_slots", {"person": "ana", "day": "2026-02-19"}),
        ("free_slots", {"person": "kenji", "day": "2026-02-19"}),
    ],
    "They have no common slot on the 19th: ana is free 13:00-17:00 UTC and kenji 08:00-12:00 UTC.",
]
LABEL = (
    "time zone",
    "free_slots returns kenji's hours in Tokyo time although the tool promises UTC",
    "result free_slots kenji",
)

if __name__ == "__main__":
    agent = Agent(free_slots, create_event, wire="anthropic-stream")
    print(
        agent.run(
            "Find an hour on 19 February 2026 for ana (Lisbon) and kenji (Tokyo), between 8 and 18 local time each."
        )
    )
