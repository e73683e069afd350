"""A reviewer reads forty small files, one a turn, and finds one problem."""

from kit import Agent

FILES = {f"m{n:02d}.py": f'"""Module {n}."""\n\nTIMEOUT = {30 if n != 23 else 3000}\n' for n in range(1, 39)}


def read_file(path: str) -> str:
    return FILES[path]


def comment(path: str, text: str) -> str:
    return "comment added"


MODEL = [
    *[("read_file", {"path": path}) for path in FILES],
    ("comment", {"path": "m23.py", "text": "TIMEOUT is 3000 here and 30 everywhere else. Is that meant?"}),
    "38 files read. Only m23.py stands out: its TIMEOUT is 3000 instead of 30. I left a comment.",
]
LABEL = "passes"

if __name__ == "__main__":
    print(Agent(read_file, comment).run("Read m01.py to m38.py and comment on timeouts that stand out."))
