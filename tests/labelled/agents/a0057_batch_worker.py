"""A batch agent handles rows in a child process that dies."""

import multiprocessing
import os

from kit import Agent


def embed_row(row: int) -> dict:
    if row == 3:
        os._exit(70)  # a native library gives up
    return {"row": row, "ok": True}


def work() -> None:
    print(Agent(embed_row).run("Embed rows 1 to 4."))


MODEL = [("embed_row", {"row": n}) for n in (1, 2, 3)]
LABEL = ("killed", "the child process ends inside embed_row without a word", "call embed_row 3", "end")

if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    raise SystemExit(child.exitcode)
