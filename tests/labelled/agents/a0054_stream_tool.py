"""A streamed tool call ends in the middle of its arguments."""

from kit import Agent


def outline(topic: str) -> list:
    return ["history", "locks", "traffic today"]


def save_article(title: str, text: str) -> str:
    return f"saved {title}"


ARTICLE = (
    "The canal was dug between 1834 and 1841. It has nine locks. Today it carries mostly gravel and grain."
)
MODEL = [
    ("outline", {"topic": "canal"}),
    {"turn": ("save_article", {"title": "The canal", "text": ARTICLE}), "pieces": 9},
]
LABEL = (
    "broken stream",
    "the stream ends inside the arguments of save_article",
    "response 2",
)

if __name__ == "__main__":
    print(
        Agent(outline, save_article, wire="openai-stream").run("Write and save a short article on the canal.")
    )
