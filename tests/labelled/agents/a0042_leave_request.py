"""An HR assistant cancels a holiday instead of moving it."""

from kit import Agent


def holidays(employee: str) -> list:
    return [{"id": "H-31", "from": "2026-07-06", "to": "2026-07-17", "state": "approved"}]


def move_holiday(id: str, start: str, end: str) -> str:
    """Move an approved holiday; it stays approved."""
    return "moved"


def cancel_holiday(id: str) -> str:
    return "cancelled; the days are open for others"


def request_holiday(employee: str, start: str, end: str) -> str:
    return "rejected: three people of the team are away in that week"


MODEL = [
    ("holidays", {"employee": "r.dube"}),
    ["I cancel the old dates and request the new ones.", ("cancel_holiday", {"id": "H-31"})],
    ("request_holiday", {"employee": "r.dube", "start": "2026-07-13", "end": "2026-07-24"}),
    "Your request for 13 to 24 July was rejected, because three people are away. Your old holiday is cancelled.",
]
LABEL = (
    "wrong tool",
    "the model cancels the holiday, where move_holiday would have kept the approval",
    "call cancel_holiday 1",
)

if __name__ == "__main__":
    agent = Agent(holidays, move_holiday, cancel_holiday, request_holiday, wire="messages")
    print(agent.run("I am r.dube. Please move my July holiday back by one week."))
