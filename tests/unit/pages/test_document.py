"""A page on disk: whole or not there, readable by its owner only, and never over somebody else's file."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
from pathlib import Path

import pytest

from reenact import UsageError
from reenact.pages.document import MARKER, document, write_page

PAGE = document("t", "hello")


def only(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_page_allows_its_own_style_and_nothing_else() -> None:
    style = re.search(r"<style>(.*)</style>", PAGE, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert (
        policy in PAGE.replace("&#x27;", "'")
        and "<script" not in PAGE
        and "http:" not in PAGE
        and "https:" not in PAGE
    )
    assert len(PAGE) < 150_000


def test_a_new_file_is_written_whole_and_private_and_again_without_force(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    for page in (PAGE, document("t", "again")):
        write_page(str(path), page)
        assert path.read_text() == page and stat.S_IMODE(path.stat().st_mode) == 0o600
        assert only(tmp_path) == ["a.html"]


@pytest.mark.parametrize("content", ["", "mine", "<!doctype html>\n<p>mine", " " + MARKER])
def test_a_file_of_somebody_else_needs_force(content: str, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(content)
    with pytest.raises(UsageError, match="is not a page of reenact") as caught:
        write_page(str(path), PAGE)
    assert caught.value.hint == "--force replaces it" and path.read_text() == content
    write_page(str(path), PAGE, force=True)
    assert path.read_text() == PAGE and only(tmp_path) == ["a.html"]


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target.html", tmp_path / "link.html"
    target.write_text(PAGE)
    link.symlink_to(target)
    with pytest.raises(UsageError):
        write_page(str(link), document("t", "other"))
    write_page(str(link), document("t", "other"), force=True)
    assert target.read_text() == PAGE and not link.is_symlink()


def test_a_folder_a_pipe_and_a_missing_folder_are_refused_with_force_too(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe", "missing/a.html"):
        with pytest.raises(UsageError):
            write_page(str(tmp_path / name), PAGE, force=True)
    assert only(tmp_path) == ["pipe"]


def test_what_cannot_be_written_leaves_the_old_page_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.html"
    write_page(str(path), PAGE)
    monkeypatch.setattr(
        os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space"):
        write_page(str(path), document("t", "new"))
    assert path.read_text() == PAGE and only(tmp_path) == ["a.html"]


def test_a_file_that_appears_in_the_meantime_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, link = tmp_path / "a.html", os.link

    def late(source: str, target: str) -> None:
        path.write_text("mine")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(UsageError, match="is not a page of reenact"):
        write_page(str(path), PAGE)
    assert path.read_text() == "mine" and only(tmp_path) == ["a.html"]
