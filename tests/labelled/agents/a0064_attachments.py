"""An assistant puts an attachment into the prompt twice per turn until the request is refused."""

from kit import Agent

PDF = "Annual report. " + "Revenue grew in all regions. " * 400


def next_question() -> str:
    return "What was the growth in the north?"


class Attaching(Agent):
    def trim(self, messages):
        note = {"role": "user", "content": f"For reference, the attachment:\n{PDF}"}
        return [*messages, note, note]


MODEL = [*[("next_question", {})] * 4, {"status": 413}]
LABEL = (
    "context overflow",
    "the loop adds the attachment to every turn, until the provider refuses the request as too large",
    "request 2",
    "request 3",
    "request 4",
    "request 5",
    "response 5",
)

if __name__ == "__main__":
    print(Attaching(next_question, wire="anthropic").run("Answer the questions on the annual report."))
