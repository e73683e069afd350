"""The provider answers 500 once in a streamed run; the SDK tries again."""

from kit import Agent


def glossary(term: str) -> str:
    return {
        "haircut": "a discount on the value of collateral",
        "repo": "a sale with the promise to buy back",
    }[term]


MODEL = [
    {"status": 500},
    [("glossary", {"term": "haircut"}), ("glossary", {"term": "repo"})],
    {"status": 503},
    "In a repo one sells with the promise to buy back; the haircut is the discount on the collateral.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(glossary, wire="openai-stream").run("Explain repo and haircut in one sentence."))
