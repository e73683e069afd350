"""A lead researcher sends out two assistants and writes a brief from what they find."""

from concurrent.futures import ThreadPoolExecutor

from kit import Agent


def search(query: str) -> list:
    return {
        "sodium battery cost": ["Pilot line of 2026: 41 USD per kWh at cell level (Hina, annual report)"],
        "sodium battery safety": [
            "Field study, 1,100 packs, 2 winters: no thermal runaway; one seal recalled for leaks"
        ],
    }[query]


def assistant(topic: str) -> str:
    return Agent(search, system="You are a research assistant.").run(f"Find facts on: {topic}")


def lead() -> str:
    topics = ["sodium battery cost", "sodium battery safety"]
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(topics, pool.map(assistant, topics), strict=True))
    notes = found["sodium battery cost"]  # a left-over of the time when there was one topic
    return Agent(system="You write briefs of three sentences.").run(
        f"Write a brief on sodium batteries. Notes:\n{notes}"
    )


MODEL = {
    "Find facts on: sodium battery cost": [
        ("search", {"query": "sodium battery cost"}),
        "Cells of the pilot line cost 41 USD per kWh in 2026, by Hina's annual report.",
    ],
    "Find facts on: sodium battery safety": [
        ("search", {"query": "sodium battery safety"}),
        "In a study of 1,100 packs over two winters none caught fire. One batch had leaking seals and was recalled.",
    ],
    "Write a brief": [
        "Sodium batteries cost 41 USD per kWh at cell level. Prices are expected to fall. No safety issues are known."
    ],
}
LABEL = (
    "dropped sub-agent",
    "the answer of the second assistant is not in the lead's prompt",
    "request Write a brief",
    "response leaking seals",
)

if __name__ == "__main__":
    print(lead())
