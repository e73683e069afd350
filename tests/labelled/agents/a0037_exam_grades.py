"""A grader marks three essays at once; the loop sends the marks back sorted by their text."""

from kit import Agent

MARKS = {"essay-a": "C, 61 points", "essay-b": "A, 93 points", "essay-c": "B, 78 points"}


def grade(essay: str) -> str:
    return MARKS[essay]


def enter_mark(essay: str, mark: str) -> str:
    return "entered"


class Sorted(Agent):
    def batch(self, calls):
        texts = sorted(self.attempt(call) for call in calls)  # stable logs were the reason
        return list(zip(calls, texts, strict=True))


MODEL = [
    [("grade", {"essay": "essay-a"}), ("grade", {"essay": "essay-b"}), ("grade", {"essay": "essay-c"})],
    [
        ("enter_mark", {"essay": "essay-a", "mark": "A"}),
        ("enter_mark", {"essay": "essay-b", "mark": "B"}),
        ("enter_mark", {"essay": "essay-c", "mark": "C"}),
    ],
    "Marks entered: essay-a A, essay-b B, essay-c C.",
]
LABEL = (
    "mixed up results",
    "the loop sorts the results of one turn, so that each mark goes to another essay",
    "sent grade 1",
    "sent grade 2",
    "sent grade 3",
)

if __name__ == "__main__":
    print(
        Sorted(grade, enter_mark, wire="messages").run(
            "Grade essay-a, essay-b and essay-c and enter the marks."
        )
    )
