"""A librarian works through a long list; the old turns are replaced by a summary that keeps the rules."""

from kit import Agent, post

SHELF = {
    f"Q{n}": {"title": f"Volume {n}", "lent": n % 4 == 0, "condition": "worn" if n % 5 == 0 else "good"}
    for n in range(1, 13)
}


def inspect_book(signature: str) -> dict:
    return {"signature": signature, **SHELF[signature]}


def to_bindery(signatures: list) -> dict:
    return {"sent": signatures, "slip": "B-118"}


class Compacting(Agent):
    def trim(self, messages):
        if len(messages) < 15:
            return messages
        old = "\n".join(str(each) for each in messages[:-2])
        body = {
            "model": "gpt-5.1-nano",
            "messages": [{"role": "user", "content": "Condense this work log:\n" + old}],
        }
        summary = post("/v1/chat/completions", body)["choices"][0]["message"]["content"]
        return [{"role": "user", "content": summary}, *messages[-2:]]


MODEL = {
    "Condense this work log": [
        "Task: inspect Q1 to Q10, send worn volumes to the bindery, never those that are lent out. Inspected Q1 to Q6: "
        "Q5 is worn and on the shelf; Q4 is lent out and good; the others are good."
    ],
    "": [
        *[("inspect_book", {"signature": f"Q{n}"}) for n in range(1, 11)],
        ["Q5 and Q10 are worn, and neither is lent out.", ("to_bindery", {"signatures": ["Q5", "Q10"]})],
        "Q5 and Q10 go to the bindery with slip B-118.",
    ],
}
LABEL = "passes"

if __name__ == "__main__":
    agent = Compacting(inspect_book, to_bindery)
    print(
        agent.run(
            "Inspect Q1 to Q10 and send the worn volumes to the bindery, but never one that is lent out."
        )
    )
