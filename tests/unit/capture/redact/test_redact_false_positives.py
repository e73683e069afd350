"""The samples hold no real secrets, so whatever is replaced in them is a false positive."""

from __future__ import annotations

import base64
import json
import random
import uuid
from pathlib import Path

import pytest

from reenact.capture.redact.redactor import Redactor
from reenact.lines import dumps

SAMPLES = Path(__file__).parents[4] / ".." / "shared" / "samples"

ALLOWED_PER_STRING = 1 / 20_000
"""Measured: none of 67,406 strings."""
ALLOWED_PER_BYTE = 0.0005
"""Measured: none in the samples; 0.005 % of program code, whose examples of passwords are counted, too."""
ALLOWED_SUSPICIOUS = 0.05
"""Measured: 2 of 100 lines and files go the slow way."""


def documents() -> list[object]:
    found: list[object] = []
    for path in sorted(SAMPLES.rglob("*")):
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        pieces = text.split("\n") if path.suffix == ".jsonl" else [text]
        for piece in filter(None, pieces):
            try:
                found.append(json.loads(piece))
            except ValueError:
                found.append(piece)
    return found


def strings(value: object) -> int:
    if isinstance(value, dict):
        return sum(map(strings, value.values()))
    if isinstance(value, list):
        return sum(map(strings, value))
    return isinstance(value, str)


class Measured(Redactor):
    """Also adds up the bytes that it replaces."""

    bytes = 0

    def _replace(self, kind: str, secret: str, times: int = 1) -> str:
        self.bytes += len(secret.encode()) * times
        return super()._replace(kind, secret, times)


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="the samples are not beside this checkout")
def test_samples_are_left_as_they_are() -> None:
    redactor = Measured({})
    documents_seen, suspicious, seen, size = 0, 0, 0, 0
    for value in documents():
        documents_seen += 1
        size += len(dumps(value))
        seen += strings(value)
        announced = redactor.may_hold(dumps(value))
        suspicious += announced
        assert redactor.clean(value) is value or announced
    rate = redactor.total / seen
    print(
        f"{redactor.total} of {seen} strings replaced: {redactor.counts}; {suspicious}/{documents_seen} looked at"
    )
    assert seen > 50_000
    assert rate <= ALLOWED_PER_STRING
    assert redactor.bytes <= ALLOWED_PER_BYTE * size
    assert suspicious / documents_seen <= ALLOWED_SUSPICIOUS


def test_program_code_is_left_as_it_is() -> None:
    redactor, size = Measured({}), 0
    for path in sorted(Path(json.__file__).parents[1].glob("*/*.py"))[::5]:
        if path.parent.name == "test":  # of cookies and logins, among others
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        size += len(text)
        redactor.clean(text)
    assert size > 900_000
    assert redactor.bytes <= ALLOWED_PER_BYTE * size, redactor.counts


@pytest.mark.parametrize("sort", ["hex", "base64", "uuid", "words", "numbers"])
def test_random_ids_and_numbers_are_left_as_they_are(sort: str) -> None:
    chance = random.Random(4)
    make = {
        "hex": lambda: chance.randbytes(chance.choice((8, 16, 20, 32))).hex(),
        "base64": lambda: base64.b64encode(chance.randbytes(chance.choice((12, 24, 48)))).decode(),
        "uuid": lambda: str(uuid.UUID(int=chance.getrandbits(128))),
        "words": lambda: "-".join(
            chance.choices(["key", "pa", "secret", "fw", "lin", "auth", "pass", "age"], k=6)
        ),
        "numbers": lambda: f"{chance.random()}:{chance.getrandbits(64)}",
    }[sort]
    text = "\n".join(f"{number} {make()}" for number in range(10_000))
    redactor = Measured({})
    redactor.clean(text)
    assert redactor.bytes <= ALLOWED_PER_BYTE * len(text), redactor.counts
