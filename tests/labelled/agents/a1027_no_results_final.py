"""An empty result is the answer."""

from kit import Agent


def recalls(maker: str, model: str, year: int) -> list:
    return []


def complaints(maker: str, model: str, year: int) -> list:
    return []


MODEL = [
    [
        ("recalls", {"maker": "Saab", "model": "9-5", "year": 2009}),
        ("complaints", {"maker": "Saab", "model": "9-5", "year": 2009}),
    ],
    "There are neither recalls nor complaints on record for the Saab 9-5 of 2009.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(recalls, complaints, wire="openai").run(
            "Are there recalls or complaints for a Saab 9-5 of 2009?"
        )
    )
