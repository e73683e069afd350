"""Clock and chance where they are recorded, and what stands in for Python's own modules."""

from __future__ import annotations

import builtins
import datetime as real_datetime
import json
import pickle
import random as real_random
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

import reenact
from reenact.capture.ambient import values
from reenact.capture.ambient.modules import _Builtins


def recorded(path: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in path.read_text().splitlines()]
    return [event for event in events if event["kind"] == "ambient"]


def test_outside_of_a_run_they_are_plain_and_begin_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("REENACT_RUN", "REENACT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("reenact.capture.runs.current._process_run", None)
    assert abs(reenact.now().timestamp() - real_datetime.datetime.now().timestamp()) < 60
    assert reenact.uuid().version == 4 and 0 <= reenact.random() < 1
    assert reenact.now(real_datetime.timezone(real_datetime.timedelta(hours=2))).utcoffset()
    assert list(tmp_path.iterdir()) == []


def test_in_a_run_they_are_recorded_as_passed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with reenact.run("r", path=path):
        now, made, number = reenact.now(), reenact.uuid(), reenact.random()
    reported = {event["name"]: event["value"] for event in recorded(path)}
    assert real_datetime.datetime.fromtimestamp(reported["now"], real_datetime.UTC) == now
    assert (uuid.UUID(reported["uuid"]), reported["random"]) == (made, number)


def test_a_clock_read_in_a_loop_does_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(values, "MOST", 5)
    path = tmp_path / "run.jsonl"
    with reenact.run("r", path=path):
        assert len({reenact.uuid() for _ in range(9)}) == 9
    assert len(recorded(path)) == 5 and "uuid was read 5 times" in capsys.readouterr().err


@pytest.fixture(scope="module")
def module() -> dict[str, Any]:
    """A module that was named by --ambient."""
    source = """
import datetime as dt, random, time, sys
from datetime import date, datetime
from random import choice, randint
class Mine(datetime): pass
def inner():
    import uuid
    return uuid
"""
    made: dict[str, Any] = {"__name__": "theirs", "__builtins__": _Builtins()}
    exec(source, made)
    return made


def test_a_datetime_is_a_genuine_one_however_it_is_made(module: dict[str, Any]) -> None:
    datetime, date = module["datetime"], module["date"]
    for made in (datetime.now(), datetime.utcnow(), datetime.today(), datetime(2024, 1, 2),
                 datetime.fromisoformat("2024-01-02"), datetime.strptime("2024", "%Y")):  # fmt: skip
        assert type(made) is real_datetime.datetime and isinstance(made, datetime) and isinstance(made, date)
        assert pickle.loads(pickle.dumps(made)) == made and {datetime: 1}[type(made)] == 1
    assert type(date.today()) is real_datetime.date and not isinstance(date.today(), datetime)
    assert type(module["Mine"].now()) is module["Mine"] and not isinstance(datetime.now(), module["Mine"])
    assert isinstance(module["Mine"].now(), datetime) and issubclass(real_datetime.datetime, date)
    assert datetime.now(real_datetime.UTC).tzinfo is real_datetime.UTC and datetime.utcnow().tzinfo is None
    assert datetime == real_datetime.datetime and datetime != real_datetime.date and datetime != date
    assert repr(datetime) == repr(real_datetime.datetime)


def test_a_seed_gives_what_it_gives_without_us(module: dict[str, Any]) -> None:
    def drawn(random: Any) -> list[Any]:
        random.seed(7)
        cards = list(range(9))
        random.shuffle(cards)
        return [random.random(), random.randint(1, 99), cards, random.sample(cards, 3), random.gauss(0, 1),
                random.getrandbits(70), random.choice("abc"), random.uniform(2, 3)]  # fmt: skip

    state = real_random.getstate()
    try:
        assert drawn(module["random"]) == drawn(real_random)
    finally:
        real_random.setstate(state)


def test_only_what_is_meant_is_replaced(module: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    assert module["time"].monotonic is sys.modules["time"].monotonic and module["sys"] is sys
    assert module["random"].Random is real_random.Random and module["dt"].UTC is real_datetime.UTC
    assert module["inner"]().UUID is uuid.UUID and module["inner"]().uuid4 is not uuid.uuid4
    monkeypatch.setattr(builtins, "later_made", 42, raising=False)  # names of Python's own stay alive
    exec("found = later_made\ntry:\n    nothing\nexcept NameError:\n    missed = True", module)
    assert module["found"] == 42 and module["missed"]
