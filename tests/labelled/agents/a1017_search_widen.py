"""A research agent searches in vain twice and then finds what it needs."""

from kit import Agent

INDEX = {"kelp": ["Kelp forests of the Azores, 2023", "Kelp and sea urchins, 2019"]}


def search(query: str) -> list:
    return INDEX.get(query, [])


def cite(title: str) -> str:
    return f"[1] {title}"


MODEL = [
    ("search", {"query": "kelp forest decline azores 2024 satellite"}),
    ["Nothing. I widen the query.", ("search", {"query": "kelp decline azores"})],
    ("search", {"query": "kelp"}),
    ("cite", {"title": "Kelp forests of the Azores, 2023"}),
    "The closest paper is [1] Kelp forests of the Azores, 2023. I found none on satellite data of 2024.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(search, cite, wire="openai-stream").run(
            "Find a paper on the decline of kelp forests in the Azores."
        )
    )
