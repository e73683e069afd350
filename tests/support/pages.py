"""The Markdown pages of the project, taken apart into their fenced blocks.

An HTML comment just before a block marks it:
``<!-- not run: why -->``, ``<!-- file: agent.py -->`` (saved instead of run), ``<!-- prints -->`` (a text
block that shows the output of the Python block before it), ``<!-- exits 1 -->`` (the last command's code),
``<!-- serves -->`` (runs until the end of the page; the variables it prints are exported).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FRAMEWORKS = sorted(DOCS.glob("frameworks/*.md"))
"""Pages that `make test-frameworks` follows, where their frameworks are."""

_COMMENT = re.compile(r"<!-- (not run|file|prints|exits|serves)(?:[: ] ?(.*?))? -->\s*$")
_FENCE = re.compile(r"^( *)(`{3,})(\w*)\s*$")


class Block(NamedTuple):
    """One fenced block."""

    language: str
    text: str
    line: int
    marks: dict[str, str]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    marks: dict[str, str] = {}
    lines = iter(enumerate(page.read_text(encoding="utf-8").splitlines(), 1))
    for number, line in lines:
        comment = _COMMENT.match(line)
        if comment:
            marks[comment[1]] = comment[2] or ""
            continue
        fence = _FENCE.match(line)
        if fence:
            indent, ticks, language = fence.groups()
            body = []
            for _, inner in lines:
                if inner.strip() == ticks:
                    break
                body.append(inner.removeprefix(indent))
            else:
                raise ValueError(f"{page}:{number}: the block has no end")
            yield Block(language, "\n".join(body) + "\n", number, marks)
        if line.strip():
            marks = {}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))
