"""A streamed answer with a table."""

from kit import Agent


def races(season: int) -> list:
    return [
        {"race": "Porto", "winner": "Silva"},
        {"race": "Braga", "winner": "Reis"},
        {"race": "Faro", "winner": "Silva"},
    ]


MODEL = [
    ("races", {"season": 2026}),
    "| race | winner |\n|---|---|\n| Porto | Silva |\n| Braga | Reis |\n| Faro | Silva |\n\nSilva won twice, Reis once.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(races, wire="anthropic-stream").run("Who won the races of 2026? As a table."))
