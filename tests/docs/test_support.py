"""The page of supported versions says what is tested."""

from __future__ import annotations

import re
import tomllib

import pytest

from reenact.capture.seams.coverage import SDKS
from reenact.capture.seams.libraries import FRAMEWORKS, SEAMS
from support.pages import DOCS, ROOT

PAGE = (DOCS / "support.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells[1:]
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
}
PINNED: dict[str, list[str]] = {}
for environment in tomllib.loads((ROOT / "tests" / "versions" / "environments.toml").read_text()).values():
    for pin in environment["install"]:
        name, equals, version = pin.partition("==")
        if equals:
            PINNED.setdefault(name, []).append(version)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


@pytest.mark.parametrize("name", ROWS)
def test_the_oldest_version_is_the_oldest_that_is_played(name: str) -> None:
    assert ROWS[name][0] == min(PINNED[name], key=numbers)


@pytest.mark.parametrize("name", [name for name, cells in ROWS.items() if len(cells) == 3])
def test_the_versions_of_an_sdk_are_those_that_are_played(name: str) -> None:
    assert ROWS[name][1].split(", ") == sorted(PINNED[name], key=numbers)


def test_every_seam_and_every_sdk_is_in_a_table() -> None:
    of_python = {"http", "threading", "concurrent", "asyncio", "uvloop"}  # not libraries that talk to models
    libraries = {module.partition(".")[0] for module, seam in SEAMS.items() if seam != FRAMEWORKS} - of_python
    sdks = {sdk.replace(".", "-") for sdk in SDKS} - {"litellm"}  # a framework, with its own page of tests
    assert libraries | sdks <= set(ROWS) and set(PINNED) == set(ROWS)
