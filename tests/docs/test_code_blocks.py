"""Every Python and shell block of README and docs does what the page says, run as a reader would run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.examples import long
from support.page_reader import compare, follow, split_commands
from support.pages import FRAMEWORKS, PAGES, blocks, name_of

RUN = ("python", "console")
SHOWN = ("text", "json", "toml", "diff", "")
LONGEST = (
    "docs/guides/debugger.md",
    "docs/guides/fork.md",
    "docs/guides/many-runs.md",
    "docs/guides/replay.md",
    "docs/guides/testing.md",
    "docs/tutorial-debug.md",
    "docs/tutorial-test.md",
)
"""Pages that start dozens of processes, each of them with an SDK to import: a task of the long suite."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "page",
    [long(page) if name_of(page) in LONGEST else page for page in PAGES if page not in FRAMEWORKS],
    ids=name_of,
)
def test_the_code_on_the_page_runs_and_prints_what_it_says(page: Path, tmp_path: Path) -> None:
    follow(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_is_left_out_only_with_a_reason(page: Path) -> None:
    for block in blocks(page):
        where = f"{name_of(page)}:{block.line}"
        assert block.language in RUN + SHOWN, f"{where}: a {block.language} block would never be run"
        assert block.marks.get("not run", "a reason"), f"{where}: no reason is given"
        if block.language == "console":
            assert block.text.startswith("$ "), f"{where}: a console block begins with a command"


def test_an_ellipsis_stands_for_anything_and_nothing_else_does() -> None:
    compare(["a … c", "…", "last"], ["a  b c", "x", "y", "last", ""], "here")
    with pytest.raises(AssertionError):
        compare(["a … c"], ["a b d"], "here")
    with pytest.raises(AssertionError):
        compare(["one"], ["one", "two"], "here")


def test_a_command_may_go_on_over_several_lines() -> None:
    assert split_commands("$ a \\\n  b\nout\n$ c\n") == [("a   b", ["out"]), ("c", [])]
