"""Someone who follows a page of the docs from top to bottom, and compares what is printed with what the page shows.

Blocks of a page run in one temporary folder: Python in one fresh interpreter, ``$ commands`` in a shell. A page that
calls a model starts ``reenact demo --serve`` itself. Output is compared line by line; runs of spaces count as one,
``…`` stands for anything, a line of only ``…`` for any number of lines.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from .pages import Block, blocks, name_of

INTERPRETER = Path(__file__).parent / "interpreter.py"
MARK = "--- end of block 5d1f ---"
OTHERS = ("hypothesispytest", "langsmith_plugin", "respx", "platformdirs", "timeout", "xdist", "anyio")
"""Plugins of pytest that are here for other reasons; loading them takes longer than a page's tests."""


def follow(page: Path, folder: Path) -> None:
    """Do all that a page says, in a folder."""
    reader = Reader(page, folder)
    try:
        for block in blocks(page):
            reader.follow(block)
    finally:
        reader.close()


class Reader:
    """Someone who types what the page says."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page = page
        self.folder = folder
        self.printed: list[str] | None = None
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("REENACT", "TRACEPARENT", "ANTHROPIC", "OPENAI"))
        }
        tools = str(Path(sys.executable).parent)
        self.env |= {
            "PATH": f"{tools}{os.pathsep}{self.env.get('PATH', '')}",
            "NO_COLOR": "1",
            "COLUMNS": "100",
        }
        self.env |= {"HOME": str(folder), "LC_ALL": "C.UTF-8", "PYTHONUNBUFFERED": "1", "TZ": "UTC"}
        self.env["PYTEST_ADDOPTS"] = " ".join(f"-p no:{name}" for name in OTHERS)
        self.python: subprocess.Popen[str] | None = None
        self.server: subprocess.Popen[str] | None = None

    def follow(self, block: Block) -> None:
        where = f"{name_of(self.page)}:{block.line}"
        if "not run" in block.marks:
            return
        if "file" in block.marks:
            path = self.folder / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif "prints" in block.marks:
            assert self.printed is not None, f"{where}: no Python block before it"
            compare(block.text.splitlines(), self.printed, where)
        elif block.language == "python":
            self.printed = self.run_python(block, where)
        elif "serves" in block.marks:
            self.serve(block, where)
        elif block.language == "console":
            self.run_console(block, where)
        elif block.language == "json" and "…" not in block.text:
            json.loads(block.text)

    def run_python(self, block: Block, where: str) -> list[str]:
        if self.python is None:
            self.python = subprocess.Popen(
                [sys.executable, str(INTERPRETER), MARK],
                cwd=self.folder, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, encoding="utf-8",
            )  # fmt: skip
        assert self.python.stdin is not None and self.python.stdout is not None
        self.python.stdin.write(json.dumps([where, block.text]) + "\n")
        self.python.stdin.flush()
        printed: list[str] = []
        for line in self.python.stdout:
            if line.startswith(MARK):
                assert line.split()[-1] == "ok", f"{where}:\n" + "\n".join(printed)
                return printed[:-1] if printed and not printed[-1] else printed
            printed.append(line.rstrip("\n"))
        raise AssertionError(f"{where}: the interpreter died\n" + "\n".join(printed))

    def run_console(self, block: Block, where: str) -> None:
        commands = split_commands(block.text)
        for command, expected in commands:
            done = subprocess.run(
                ["bash", "-c", command], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=200, check=False,
            )  # fmt: skip
            last = command is commands[-1][0]
            wanted = int(block.marks["exits"]) if last and "exits" in block.marks else 0
            assert done.returncode == wanted, (
                f"{where}: {command} exited with {done.returncode}\n{done.stdout}"
            )
            if expected:
                compare(expected, done.stdout.splitlines(), f"{where}: {command}")

    def serve(self, block: Block, where: str) -> None:
        """Start the command in another terminal, so to speak, and export what it prints."""
        ((command, expected),) = split_commands(block.text)
        self.server = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8",
        )  # fmt: skip
        assert self.server.stdout is not None
        printed: list[str] = []
        for line in self.server.stdout:
            printed.append(line.rstrip("\n"))
            if line.partition("=")[0] == expected[-1].partition("=")[0]:
                break
        compare(expected, printed, where)
        exported = [line.removeprefix("export ") for line in printed if line.startswith("export ")]
        self.env |= dict(line.split("=", 1) for line in exported)

    def close(self) -> None:
        if self.server is not None:
            self.server.send_signal(signal.SIGINT)
            self.server.communicate(timeout=60)
            assert self.server.returncode == 0, f"{name_of(self.page)}: Ctrl-C does not end the server"
        if self.python is not None:
            assert self.python.stdin is not None and self.python.stdout is not None
            self.python.stdin.close()
            self.python.stdout.read()
            self.python.stdout.close()
            self.python.wait(timeout=60)


def split_commands(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of a console block, each with the lines it should print."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1] = (found[-1][0][:-1] + line, [])
        else:
            found[-1][1].append(line)
    return found


def compare(expected: list[str], actual: list[str], where: str) -> None:
    """Assert that the output is as shown."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else as_pattern(line) + r"\n" for line in tidy(expected)
    )
    text = "".join(line + "\n" for line in tidy(actual))
    shown = "\n".join(actual)
    assert re.fullmatch(pattern, text), f"{where} does not print what the page shows but:\n{shown}"


def as_pattern(line: str) -> str:
    return ".*?".join(re.escape(part.strip()) for part in line.split("…"))


def tidy(lines: list[str]) -> list[str]:
    """Leave out what does not matter: spaces, empty lines at either end."""
    tidied = [" ".join(line.split()) for line in lines]
    while tidied and not tidied[-1]:
        tidied.pop()
    while tidied and not tidied[0]:
        tidied.pop(0)
    return tidied
