"""Every page of docs/frameworks does what it says, where its framework is."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.page_reader import follow
from support.pages import FRAMEWORKS

from .play import QUIET
from .table import ENVIRONMENT, PAGES


def test_each_page_is_followed_somewhere() -> None:
    assert sorted(page.stem for page in FRAMEWORKS) == sorted(
        name for names in PAGES.values() for name in names
    )


@pytest.mark.parametrize(
    "page", [each for each in FRAMEWORKS if each.stem in PAGES[ENVIRONMENT]], ids=lambda page: page.stem
)
def test_the_page_of_a_framework_does_what_it_says(
    page: Path, tmp_path: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (environment | QUIET).items():
        monkeypatch.setenv(name, value)
    follow(page, tmp_path)
