"""Nothing public is undocumented, and no link leads nowhere."""

from __future__ import annotations

import importlib
import inspect
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import reenact
from reenact import errors, schema
from reenact.capture.front.options import OPTION_NAMES, Options
from reenact.cli.main import COMMANDS, Parser
from reenact.debugger.step_session import StepSession
from support.pages import DOCS, PAGES, ROOT, blocks, name_of

SOURCE = ROOT / "src" / "reenact"
REFERENCE = (DOCS / "reference.md").read_text(encoding="utf-8")
FORMAT = (DOCS / "format.md").read_text(encoding="utf-8")
READING = (DOCS / "guides" / "reading.md").read_text(encoding="utf-8")
LINKED = [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"))]

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def section(text: str, heading: str) -> str:
    """The part of a page under a heading, up to the next one of the same or a higher level."""
    level = heading.split(" ")[0]
    assert f"\n{heading}\n" in text, f"there is no section {heading!r}"
    rest = text.split(f"\n{heading}\n", 1)[1]
    return re.split(rf"\n#{{1,{len(level)}}} ", rest, maxsplit=1)[0]


def words(text: str) -> set[str]:
    """Everything that stands in backticks, and its words."""
    found = re.findall(r"`([^`\n]+)`", text)
    return {part for code in found for part in [code, *re.split(r"[\s=\[\]|(),:]+", code)]}


@pytest.mark.parametrize("name", reenact.__all__)
def test_every_public_name_is_in_the_reference(name: str) -> None:
    assert name in words(REFERENCE)


@pytest.mark.parametrize(
    "front_end",
    [
        reenact.Trace,
        reenact.StepLog,
        reenact.Tap,
        reenact.RunContext,
        reenact.EventBus,
        reenact.Debugger,
        StepSession,
    ],  # fmt: skip
)
def test_every_public_method_and_parameter_is_in_the_reference(front_end: type) -> None:
    known = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", REFERENCE))))
    inner = {"adopt", "after_fork", "receive", "recorder", "wants_full"}  # between our own modules
    for name, member in inspect.getmembers(front_end):
        if name.startswith("_") or name in inner:
            continue
        assert name in known, f"{front_end.__name__}.{name}"
        if inspect.isfunction(member):
            for parameter in inspect.signature(member).parameters:
                assert parameter in known | {"self", "args", "function", "end", "equal"}, (
                    f"{front_end.__name__}.{name}({parameter})"
                )


@pytest.mark.parametrize("name", OPTION_NAMES)
def test_every_option_is_in_the_table_with_its_default(name: str) -> None:
    row = next(
        (line for line in section(REFERENCE, "## Options").splitlines() if line.startswith(f"| `{name}` |")),
        None,
    )
    assert row is not None
    reported = row.split("|")[2].strip().strip("`").strip('"')
    default = getattr(Options(), name)
    units = (
        {
            "max_bytes": f"{default and default / 2**30:g} GB",
            "segment_bytes": f"{default and default / 2**20:g} MB",
        }
        if isinstance(default, int)
        else {}
    )
    assert reported == units.get(name, "none" if default is None else str(default))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_flag_is_in_the_reference(command: str) -> None:
    module = importlib.import_module(f"reenact.cli.commands.{command}")
    parser = Parser(f"reenact {command}", module.DESCRIPTION, module.EXAMPLES)
    module.configure(parser)
    documented = words(section(REFERENCE, f"### `reenact {command}`")) | {"-h", "--help"}
    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert flags <= documented, flags - documented
    reported = {word for word in documented if re.fullmatch(r"--?[a-zA-Z][a-z-]*", word)}
    assert reported <= flags, f"documented but not there: {reported - flags}"


def test_every_error_class_is_in_the_reference() -> None:
    classes = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert classes <= words(section(REFERENCE, "## Errors"))


def test_every_kind_is_in_the_reference_and_the_format() -> None:
    kinds = {
        value
        for name, value in vars(schema).items()
        if name.isupper() and isinstance(value, str) and name not in ("VERSION", "FOUND")
    }
    assert kinds <= words(section(REFERENCE, "## Event kinds"))
    assert kinds <= words(section(FORMAT, "## Kinds"))


def test_every_reserved_name_and_the_version_are_in_the_format() -> None:
    assert schema.RESERVED <= words(section(FORMAT, "## Envelope and ids"))
    assert f"version {schema.VERSION}" in FORMAT


def sources(*folders: str) -> str:
    """The text of our own modules: all, or those of some folders."""
    files = sorted(file for folder in folders or ("",) for file in (SOURCE / folder).rglob("*.py"))
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def test_every_environment_variable_is_in_the_reference() -> None:
    variables = set(re.findall(r"\bREENACT_[A-Z]+\b", sources()))
    assert variables <= words(section(REFERENCE, "## Environment variables")), variables


def test_every_mark_the_writer_makes_is_in_the_format() -> None:
    marks = set(re.findall(r'"(\$[a-z]+)"', sources("capture"))) - {"$schema", "$ref"}
    assert len(marks) >= 8
    assert all(mark in FORMAT for mark in marks), marks


def test_every_finding_is_in_the_reading_guide() -> None:
    codes = set(
        re.findall(r'(?:note|once|Finding)\(\s*"([a-z-]+)"', sources("tracefile", "recording", "cli"))
    )
    assert {"torn", "gap", "chain"} <= codes
    missing = codes - words(section(READING, "## Damage"))
    assert not missing


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_every_relative_link_resolves(page: Path) -> None:
    for target in _LINK.findall(prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(file), f"{target}: there is no such heading"


def prose(page: Path) -> str:
    text = page.read_text(encoding="utf-8")
    for block in blocks(page):
        text = text.replace(block.text, "")
    return text


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#{1,6} (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("name", "shown"), [("show", "OverBudget:"), ("replay", "changed-request:")])
def test_a_picture_is_a_failed_run_and_loads_nothing_from_elsewhere(name: str, shown: str) -> None:
    picture = ElementTree.parse(DOCS / "images" / f"{name}.svg")
    texts = " ".join(element.text or "" for element in picture.iter() if element.tag.endswith("}text"))
    assert shown in texts.replace("\xa0", " ") and "reenact" in texts
    assert not [value for element in picture.iter() for value in element.attrib.values() if "//" in value]
    styles = "".join(element.text or "" for element in picture.iter() if element.tag.endswith("}style"))
    assert "url(" not in styles and "@import" not in styles
