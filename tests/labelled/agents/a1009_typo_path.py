"""A coding agent opens a file that does not exist, lists the folder, and opens the right one."""

from kit import Agent

TREE = {"src/auth/token.py": "EXPIRY = 3600\n", "src/auth/session.py": "TTL = 900\n"}


def read_file(path: str) -> str:
    if path not in TREE:
        raise FileNotFoundError(f"No such file: {path}")
    return TREE[path]


def list_files(folder: str) -> list:
    return [path for path in TREE if path.startswith(folder)]


def replace(path: str, old: str, new: str) -> str:
    TREE[path] = TREE[path].replace(old, new)
    return TREE[path]


MODEL = [
    ("read_file", {"path": "src/auth/tokens.py"}),
    ["There is no tokens.py. Listing the folder.", ("list_files", {"folder": "src/auth/"})],
    ("read_file", {"path": "src/auth/token.py"}),
    ("replace", {"path": "src/auth/token.py", "old": "3600", "new": "1800"}),
    "Tokens now expire after 1800 seconds (src/auth/token.py).",
]
LABEL = "passes"

if __name__ == "__main__":
    print(
        Agent(read_file, list_files, replace, wire="anthropic").run(
            "Halve the expiry of auth tokens, 3600 s now."
        )
    )
    assert TREE["src/auth/token.py"] == "EXPIRY = 1800\n"
