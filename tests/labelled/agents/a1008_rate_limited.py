"""The provider limits the rate once, and the SDK's retry succeeds."""

from kit import Agent


def open_tickets(queue: str) -> list:
    return [{"ticket": 4410, "title": "VPN drops every hour"}, {"ticket": 4415, "title": "Printer offline"}]


def set_priority(ticket: int, priority: str) -> str:
    return "ok"


MODEL = [
    ("open_tickets", {"queue": "it"}),
    {"status": 429},
    [
        ("set_priority", {"ticket": 4410, "priority": "high"}),
        ("set_priority", {"ticket": 4415, "priority": "low"}),
    ],
    "4410 (VPN) is high, 4415 (printer) is low.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(open_tickets, set_priority, wire="openai").run(
            "Set the priorities of the open tickets in queue it."
        )
    )
