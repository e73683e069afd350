"""A window that keeps the task and the last turns; what it drops is not needed."""

from kit import Agent

BOOK = {n: f"Chapter {n}: {'the lighthouse burns' if n == 4 else 'quiet days'}." for n in range(1, 9)}


def chapter(number: int) -> str:
    return BOOK[number]


def note(text: str) -> str:
    return "noted"


class Window(Agent):
    def trim(self, messages):
        return messages if len(messages) < 10 else [messages[0], *messages[-6:]]


MODEL = [
    *[("chapter", {"number": n}) for n in range(1, 5)],
    ("note", {"text": "The lighthouse burns in chapter 4."}),
    *[("chapter", {"number": n}) for n in range(5, 9)],
    "The lighthouse burns in chapter 4, and nowhere else; I noted it.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Window(chapter, note, wire="messages").run(
            "Read chapters 1 to 8 and note where the lighthouse burns."
        )
    )
