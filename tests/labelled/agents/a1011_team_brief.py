"""A lead sends out three assistants in threads and uses all their answers."""

from concurrent.futures import ThreadPoolExecutor

from kit import Agent

FACTS = {
    "demand": "Peak demand 41 GW on 14 January, 3 % above the forecast.",
    "wind": "Wind gave 38 % of the month's energy; two farms were off for repairs.",
    "prices": "The day-ahead mean was 71 EUR per MWh.",
}


def archive(topic: str) -> str:
    return FACTS[topic]


def assistant(topic: str) -> str:
    return Agent(archive, system="You look one topic up.").run(f"Topic: {topic}")


MODEL = {
    "Topic: demand": [("archive", {"topic": "demand"}), "Demand peaked at 41 GW on 14 January."],
    "Topic: wind": [("archive", {"topic": "wind"}), "Wind covered 38 % although two farms were in repair."],
    "Topic: prices": [("archive", {"topic": "prices"}), "The mean price was 71 EUR per MWh."],
    "Three sentences": [
        "Demand peaked at 41 GW on 14 January. Wind covered 38 %. The mean price was 71 EUR per MWh."
    ],
}
LABEL = "passes"

if __name__ == "__main__":
    with ThreadPoolExecutor(3) as pool:
        notes = "\n".join(pool.map(assistant, FACTS))
    print(
        Agent(system="You write for the board.").run(
            f"Three sentences on January, from these notes:\n{notes}"
        )
    )
