"""What JSON made of a value is made that value again by its annotation."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import typing
import uuid
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
import pytest

from reenact.capture.recorder.jsonable import jsonable
from reenact.playback.replay.typed_values import StandIn, as_annotated, hints_of, yielded
from reenact.tracefile.events.stored_values import restore

if typing.TYPE_CHECKING:
    from somewhere import Unknown


class Colour(enum.Enum):
    RED = "red"
    PAIR = (1, 2)


class Level(enum.IntEnum):
    LOW = 1


class Place(NamedTuple):
    name: str
    at: tuple[float, float]


@dataclasses.dataclass(frozen=True)
class Leg:
    to: Place
    day: datetime.date
    before: Leg | None = None
    count: int = dataclasses.field(init=False, default=0)


@dataclasses.dataclass
class Price:
    amount: int
    currency: typing.ClassVar[str] = "EUR"


class Guest(pydantic.BaseModel):
    name: str = pydantic.Field(alias="guestName")
    born: datetime.date


class Room(pydantic.BaseModel):
    guests: list[Guest]
    key: uuid.UUID


class Note(typing.TypedDict):
    text: str
    tags: set[str]


class Code(str):
    pass


UserId = typing.NewType("UserId", int)
LEG = Leg(
    Place("Porto", (1.0, 2.5)), datetime.date(2026, 1, 2), Leg(Place("Faro", (0.0, 0.0)), datetime.date.max)
)
GUEST = Guest(guestName="Ann", born=datetime.date(1990, 1, 1))
KEY = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ((1, "a"), tuple[int, str]), ((1, 2, 3), tuple[int, ...]), ((), tuple), ((1,), tuple),
        ({"a", "b"}, set[str]), (frozenset({1}), frozenset[int]), ({(1, 2)}, set[tuple[int, int]]),
        ([(1, "a")], list[tuple[int, str]]), ({1: (2,)}, dict[int, tuple[int]]),
        ({Colour.RED: 1}, dict[Colour, int]),
        (Colour.RED, Colour), (Colour.PAIR, Colour), (Level.LOW, Level), (Level.LOW, Literal[Level.LOW]),
        ("a", Literal["a", "b"]), (LEG, Leg), ([LEG], list[Leg]), (LEG, "Leg | None"), (None, "Leg | None"),
        (datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC), datetime.datetime),
        (datetime.time(1, 2), datetime.time), (KEY, uuid.UUID), (KEY, uuid.UUID | int), (5, uuid.UUID | int),
        (pathlib.Path("/a/b"), pathlib.Path), (decimal.Decimal("1.50"), decimal.Decimal), (b"\x00\xff", bytes),
        ([b"\x00"], list[bytes]), (Room(guests=[GUEST], key=KEY), Room), ([GUEST], list[Guest]),
        ({"text": "x", "tags": {"a"}}, Note), (Code("x"), Code), (UserId(3), UserId), (1.5, float), (1, float),
        ((1,), Annotated[tuple[int], "why"]), ([(1,)], typing.Sequence[tuple[int]]), (float("inf"), float),
        ({"a": [1, None]}, Any), ({"a": 1}, dict), (LEG, Place | Leg), ((1, 2), int | tuple[int, int]),
        (Price(5), Price), ([Price(5)], list[Price]),
    ],
)  # fmt: skip
def test_a_value_comes_back_as_what_it_was(value: Any, hint: Any) -> None:
    hint = typing.get_type_hints(
        type("h", (), {"__annotations__": {"x": hint}}), globals(), include_extras=True
    )["x"]
    stored = restore(json.loads(json.dumps(jsonable(value))), lambda reference: None)
    made, is_it = as_annotated(stored, hint)
    assert is_it and made == value and type(made) is type(value)


class Picky:
    def __init__(self) -> None:
        raise RuntimeError("not like this")


@pytest.mark.parametrize(
    ("stored", "hint"),
    [
        ("x", int), (1, str), (True, int), ([1], tuple[int, int]), ({"a": 1}, Leg), ("no date", datetime.date),
        ("green", Colour), ({"x": 1}, Picky), ({"guests": 1, "key": "x"}, Room), ("x", list[str]), (3, None),
        ({"$repr": "<thing>", "type": "thing"}, dict), ("c", Literal["a"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_stays_as_it_was_recorded(stored: Any, hint: Any) -> None:
    made, is_it = as_annotated(stored, hint)
    assert made is stored and not is_it


def test_a_stand_in_may_stand_anywhere() -> None:
    missing = StandIn({"$repr": "<socket>"})
    made, is_it = as_annotated([["Porto", missing]], list[Place])
    assert is_it and made == [Place("Porto", missing)]  # type: ignore[arg-type]
    assert repr(made[0].at) == "<socket>"


def test_annotations_that_only_a_type_checker_knows_are_left_out() -> None:
    def plan(leg: Leg, other: Unknown, n: int | None = None) -> tuple[int, ...]:
        raise NotImplementedError

    assert hints_of(plan) == {"leg": Leg, "n": int | None, "return": tuple[int, ...]}


def test_what_a_generator_yields_and_returns() -> None:
    assert yielded(typing.Iterator[Leg]) == (Leg, Any)
    assert yielded(typing.Generator[Leg, None, Place]) == (Leg, Place)
    assert yielded(typing.AsyncIterator[int]) == (int, Any)
    assert yielded(list[int]) == (Any, Any)
