"""`reenact diff --turns` and `--html`: what is printed, what is written, and that nothing else is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

import reenact
from reenact import Debugger, UsageError
from support.typed import record_trip, typed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    record_trip(tmp_path / "good.jsonl", fails=False)
    record_trip(tmp_path / "bad.jsonl")
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_two_turns_as_text_as_json_and_as_a_page(folder: Path) -> None:
    before = contents(folder)
    shown = typed("diff", folder / "good.jsonl", "--turns", "1", "2")
    assert (
        shown.code == 1
        and "turn 1 → turn 2  2 new, 1 as before" in shown.out
        and "new in turn 2: 2" in shown.out
    )
    assert "+ 1 assistant" in shown.out and "+ 2 tool" in shown.out and shown.err == ""
    (row,) = typed("diff", folder / "good.jsonl", "--turns", "1", "--json").rows
    assert row == json.loads(json.dumps(Debugger.load(folder / "good.jsonl").diff_turns(1, 2).as_dict()))
    assert [change["sort"] for change in row["changes"]] == ["new", "new"] and row["verdict"] == "different"
    assert contents(folder) == before
    done = typed("diff", "good.jsonl", "--turns", "1", "2", "--html", "turns.html", cwd=folder)
    assert (done.code, done.err) == (1, "page: turns.html\n") and len(done.out.splitlines()) == 1
    assert contents(folder).keys() - before.keys() == {"turns.html"}
    same = typed("diff", folder / "good.jsonl", "--turns", "2", "2")
    assert same.code == 0 and "the model saw the same" in same.out


def test_long_texts_are_whole_with_all(folder: Path) -> None:
    short, whole = (
        typed("diff", folder / "good.jsonl", "--turns", "1", *more).out for more in ((), ("--all",))
    )
    assert (
        "more lines; --all shows all" in short
        and "--all shows all" not in whole
        and len(whole) > 2 * len(short)
    )


def test_two_runs_as_a_page_and_nothing_else_is_written(folder: Path) -> None:
    before = contents(folder)
    done = typed("diff", "good.jsonl", "bad.jsonl", "--html", "diff.html", cwd=folder)
    assert done.code == 1 and done.err == "page: diff.html\n"
    assert "first difference" in done.out and len(done.out.splitlines()) == 3
    after = contents(folder)
    page = after.pop("diff.html")
    assert after == before and (folder / "diff.html").stat().st_mode & 0o777 == 0o600
    text = (folder / "diff.html").read_text()
    found = reenact.diff(folder / "good.jsonl", folder / "bad.jsonl")
    assert all(root.cause in text for root in found.roots) and "Side by side" in text
    assert str(folder) not in text and len(text) < 150_000 + 10 * (folder / "good.jsonl").stat().st_size
    assert typed("diff", "good.jsonl", "bad.jsonl", "--html", "diff.html", "--json", cwd=folder).rows[0][
        "verdict"
    ]
    assert contents(folder)["diff.html"] == page  # written again, the same


def test_a_file_of_somebody_else_needs_force_and_is_checked_first(folder: Path) -> None:
    (folder / "notes.html").write_text("mine")
    words = ["diff", "good.jsonl", "bad.jsonl", "--html", "notes.html"]
    refused = typed(*words, cwd=folder)
    assert refused.code == 2 and refused.out == "" and (folder / "notes.html").read_text() == "mine"
    assert refused.err == "notes.html exists, and is not a page of reenact\n\nhint: --force replaces it\n"
    assert typed(*words, "--force", cwd=folder).code == 1
    assert (folder / "notes.html").read_text().startswith("<!doctype html>")
    missing = typed("diff", "good.jsonl", "bad.jsonl", "--html", "no/where.html", cwd=folder)
    assert missing.code == 2 and "there is no folder no" in missing.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--turns", "1", "9"], "its turns are 1 to 2"),
        (["--turns", "0"], "its turns are 1 to 2"),
        (["--turns", "1", "2", "2"], "one turn or two"),
        (["--turns", "x"], "invalid int value: 'x'"),
        (["bad.jsonl", "--turns", "1", "2"], "two turns of one run"),
    ],
)
def test_turns_that_are_not_there_are_an_error_with_the_range(
    words: list[str], why: str, folder: Path
) -> None:
    done = typed("diff", "good.jsonl", *words, cwd=folder)
    assert done.code == 2 and why in done.err and done.out == ""


def test_only_a_comparison_becomes_a_page(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="dict is not a comparison"):
        reenact.write_html({}, tmp_path / "a.html")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
