"""A cache that answers a second question about something that does not change."""

import functools

from kit import Agent


@functools.cache
def rule(paragraph: str) -> str:
    return {"12a": "Bicycles ride on the right.", "14": "Bells are mandatory."}[paragraph]


MODEL = [
    ("rule", {"paragraph": "12a"}),
    "§12a: bicycles ride on the right.",
    [("rule", {"paragraph": "12a"}), ("rule", {"paragraph": "14"})],
    "§12a is about the side of the road, §14 about bells: they do not contradict each other.",
]
LABEL = "passes"

if __name__ == "__main__":
    agent = Agent(rule, wire="messages")
    agent.run("What does §12a say?")
    print(agent.run("Does it contradict §14?"))
