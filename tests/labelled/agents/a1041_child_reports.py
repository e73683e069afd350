"""Two child processes work on one half each, and the parent joins their results."""

import multiprocessing

from kit import Agent


def count_words(file: str) -> dict:
    return {"file": file, "words": {"a.txt": 812, "b.txt": 1190}[file]}


def work(file: str) -> str:
    return Agent(count_words).run(f"How long is {file}?")


MODEL = {
    "Join these": ["Together the files have 2002 words."],
    "How long is a.txt": [("count_words", {"file": "a.txt"}), "a.txt has 812 words."],
    "How long is b.txt": [("count_words", {"file": "b.txt"}), "b.txt has 1190 words."],
}
LABEL = "passes"

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        parts = pool.map(work, ["a.txt", "b.txt"])
    print(Agent().run(f"Join these: {' '.join(parts)}"))
