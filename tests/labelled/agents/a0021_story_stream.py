"""A publisher streams a long answer; the connection ends in the middle."""

from kit import Agent


def chapter_notes(number: int) -> str:
    return "Chapter 7: Ilse finds the ledger; the ferry strike; the letter from her brother; he is alive."


class Press(Agent):
    def finish(self, reply):
        with open("/dev/null", "w") as page:
            page.write(reply.text)
        return f"published {len(reply.text)} characters"


TEXT = (
    "Ilse found the ledger behind the flour sacks on the second day of the ferry strike. She read it standing. "
    "By evening she knew what her brother had signed. Then the postman came, late, with a letter in his hand: alive."
)
MODEL = [("chapter_notes", {"number": 7}), {"turn": TEXT, "pieces": 17}]
LABEL = (
    "broken stream",
    "the stream of the last answer ends without its final chunk, and the half text is published",
    "response 2",
)

if __name__ == "__main__":
    print(
        Press(chapter_notes, wire="openai-stream").run("Write the summary of chapter 7 for the back cover.")
    )
