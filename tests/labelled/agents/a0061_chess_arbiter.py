"""A referee agent reads a table and names the wrong winner."""

from kit import Agent


def standings(event: str) -> list:
    return [
        {"player": "Ilić", "points": 6.5, "tiebreak": 31.0},
        {"player": "Zhou", "points": 6.5, "tiebreak": 33.5},
        {"player": "Haddad", "points": 6.0, "tiebreak": 35.0},
    ]


def rules(event: str) -> str:
    return "Most points win. Equal points: the higher tiebreak wins."


def publish(text: str) -> str:
    return "published"


MODEL = [
    [("standings", {"event": "open"}), ("rules", {"event": "open"})],
    ("publish", {"text": "Ilić wins the open with 6.5 points, ahead of Zhou on tiebreak."}),
    "Published: Ilić wins the open.",
]
LABEL = (
    "misread result",
    "the model takes the first row as the winner, although Zhou has the higher tiebreak",
    "response 2",
    "call publish 1",
)

if __name__ == "__main__":
    print(Agent(standings, rules, publish, wire="messages").run("Publish who won the open."))
