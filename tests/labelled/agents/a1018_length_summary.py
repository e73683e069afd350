"""A draft ends at the token limit; the loop asks the model to continue, and joins the parts."""

from kit import Agent


def minutes(meeting: str) -> str:
    return "Budget approved. Hiring of two engineers. Office moves in May. Next meeting on 3 June."


class Continuing(Agent):
    def finish(self, reply):
        if reply.stop != "length":
            return reply.text
        return reply.text + self.run("Continue exactly where you stopped.")


MODEL = [
    ("minutes", {"meeting": "board-4"}),
    {
        "text": "The board approved the budget and the hiring of two engineers. The office mo",
        "stop": "length",
    },
    "ves in May. The next meeting is on 3 June.",
]
LABEL = "passes"

if __name__ == "__main__":
    agent = Continuing(minutes, limit=24)
    text = agent.run("Summarise the minutes of board-4.")
    assert text.endswith("3 June.") and "office moves in May" in text, text
