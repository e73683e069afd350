"""A tool fails for good, and the agent tells the user so: this is the right outcome."""

from kit import Agent


def loyalty_points(card: str) -> dict:
    raise KeyError(f"card {card} is not registered")


def register_hint() -> str:
    return "Cards are registered at the service desk or at club.example."


MODEL = [
    ("loyalty_points", {"card": "7731-0042"}),
    ("register_hint", {}),
    "Card 7731-0042 is not registered yet, so it has no points. You can register it at the service desk or at club.example.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(loyalty_points, register_hint, wire="messages").run(
            "How many points does my card 7731-0042 have?"
        )
    )
