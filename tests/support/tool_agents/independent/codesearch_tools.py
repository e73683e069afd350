"""Tools for codesearch.py. Plain functions and one class; nothing here knows about models."""

import re
from pathlib import Path

SOURCES = {
    "app/main.py": "import util\n\ndef main():\n    util.greet('hi')\n\nmain()\n",
    "app/util.py": "def greet(text):\n    print(text)\n\ndef unused():\n    pass\n",
    "README.md": "# App\nCall main() to greet.\n",
}


class NotInRepo(LookupError):
    pass


def _touch(name):
    with Path("effects.txt").open("a") as f:
        f.write(name + "\n")


def grep(pattern, glob="*"):
    """Yields 'path:line: text' for each match (a generator)."""
    _touch("grep")
    rx = re.compile(pattern)
    for path in sorted(SOURCES):
        if Path(path).match(glob):
            for no, line in enumerate(SOURCES[path].splitlines(), 1):
                if rx.search(line):
                    yield f"{path}:{no}: {line.strip()}"


def read(path, start=1, end=None):
    _touch("read")
    if path not in SOURCES:
        raise NotInRepo(path)
    return "\n".join(SOURCES[path].splitlines()[start - 1 : end])


class Editor:
    """Used as a namespace: Editor.replace and Editor.history are tools."""

    edits = []

    @staticmethod
    def replace(path, old, new):
        _touch("replace")
        before = SOURCES[path]
        if before.count(old) != 1:
            raise ValueError(f"{old!r} occurs {before.count(old)} times in {path}")
        SOURCES[path] = before.replace(old, new)
        Editor.edits.append((path, old, new))
        return True

    @classmethod
    def history(cls):
        _touch("history")
        return [f"{p}: {o} -> {n}" for p, o, n in cls.edits]
