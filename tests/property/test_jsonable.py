"""jsonable() answers for any Python value, with one line that parses; JSON values come back exactly."""

from __future__ import annotations

import copy
import dataclasses
import datetime
import enum
import json
import math
import sys
import threading
import uuid
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque, namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact import Tap, Trace, lines, read_events, schema
from reenact.capture.recorder.jsonable import jsonable, to_json
from support.examples import long, up_to

numbers = st.one_of(
    st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70)
)
text = st.text(st.characters(codec=None), max_size=30) | st.sampled_from(
    ["\x7f", "\u2028", "é", "\ud800", "\udfff\ud800", "😀", "\x00", '"\\/', "$", "$$a", "$float", "\n\r"]
)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | text,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(text, inner, max_size=5),
    max_leaves=25,
)


class Hostile(Exception):
    pass


class RaisingRepr:
    def __repr__(self) -> str:
        raise Hostile


class RaisingEverything:
    def _no(self, *args: Any, **kwargs: Any) -> Any:
        raise Hostile

    __eq__ = __hash__ = __iter__ = __len__ = __bool__ = __format__ = _no  # type: ignore[assignment]
    __getattr__ = __dir__ = __reduce__ = __index__ = __int__ = __float__ = _no  # type: ignore[assignment]

    def __repr__(self) -> str:
        raise SystemExit("hostile")

    __str__ = __repr__

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise Hostile


class RaisingItems(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        raise Hostile

    __iter__ = keys = values = __len__ = items  # type: ignore[assignment]


class EndlessItems(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        while True:
            yield ("more", "and more")


class EndlessList(list):  # type: ignore[type-arg]
    def __iter__(self) -> Any:
        while True:
            yield "more"

    def __len__(self) -> int:
        return 2**60


class LyingStr(str):
    def __str__(self) -> str:
        return "a lie"

    __repr__ = __format__ = __str__  # type: ignore[assignment]

    def encode(self, *args: Any) -> bytes:
        raise Hostile


class LyingInt(int):
    def __repr__(self) -> str:
        return "not a number"

    __str__ = __repr__

    def __add__(self, other: object) -> Any:
        return RaisingRepr()


class LyingFloat(float):
    def __repr__(self) -> str:
        return "NaN"


class BadMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__module__", "__qualname__", "__mro__", "__dataclass_fields__"):
            raise Hostile
        return super().__getattribute__(name)


class OfBadMeta(metaclass=BadMeta):
    pass


class Dumps:
    def __init__(self, made: Any) -> None:
        self.made = made

    def model_dump(self) -> Any:
        if isinstance(self.made, BaseException):
            raise self.made
        return self.made


class DumpsItself:
    def model_dump(self) -> Any:
        return {"again": DumpsItself()}


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


Pair = namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = object()


def generator() -> Any:
    yield from range(3)


def cyclic() -> Any:
    made: dict[str, Any] = {"list": []}
    made["list"].append(made)
    made["self"] = made
    return made


def deep(levels: int) -> Any:
    made: Any = "bottom"
    for _ in range(levels):
        made = [made]
    return made


def shared(levels: int) -> Any:
    made: Any = ["x"]
    for _ in range(levels):
        made = [made, made]
    return made


ODD: list[Any] = [
    object(), RaisingRepr(), RaisingEverything(), RaisingItems(a=1), EndlessItems(a=1), EndlessList([1]),
    LyingStr("truth"), LyingInt(7), LyingFloat(1.5), OfBadMeta(), OfBadMeta, Dumps({"a": {1}}), Dumps(Hostile()),
    Dumps(SystemExit()), DumpsItself(), Point(1, {2}), Pair(1, RaisingRepr()), Colour.RED, cyclic(), deep(10_000),
    float("nan"), float("inf"), -math.inf, 10**5_000, -(10**100_000), "\ud800", b"\xff\x00",
    bytearray(b"a"), memoryview(b"abc"), {1, "a", None}, frozenset({1.5}), {1: "a", "1": "b", None: 1, False: 2},
    {(1, 2): "tuple key"}, {RaisingRepr: 1}, {"$float": "nan", "$blob": 1, "$$": 2}, datetime.datetime(2026, 1, 1),
    datetime.timedelta(1), uuid.UUID(int=5), Decimal("NaN"), Decimal("1.10"), Path("a/b"), ValueError("x"),
    mock.Mock(), mock.MagicMock(), mock.MagicMock(spec=dict), mock.Mock(spec=str), mock.MagicMock(spec=list),
    mock.AsyncMock(), range(10**9), deque([1, 2]), Counter("aab"), OrderedDict(a=1), defaultdict(list, a=[1]),
    UserDict(a=1), ChainMap({"a": 1}), sys, len, Hostile, type, type(None), NotImplemented, ..., 1j, lambda: 0,
    threading.Lock(), open, iter([1, 2]), zip([1], [2]), [1, [2, {"a": (3, {4})}]],
]  # fmt: skip


def strictly(line: str) -> Any:
    """Parse as any strict JSON parser would: no NaN, no Infinity."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(line, parse_constant=refuse)


@pytest.mark.parametrize("which", range(len(ODD)), ids=lambda which: type(ODD[which]).__name__)
def test_any_object_becomes_one_line_of_ascii_that_parses(which: int) -> None:
    value = ODD[which]  # by number: pytest itself looks too closely at hostile objects
    for each in (value, [value], {"key": value}, (value, value), {"deep": [{"er": value}]}):
        line = to_json(each)
        assert line.isascii() and "\n" not in line
        strictly(line)
        assert len(line) < 50_000_000


odd_leaves = st.integers(0, len(ODD) - 1).map(lambda which: ODD[which])


@up_to(150)
@given(
    st.recursive(
        odd_leaves | json_values,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.tuples(inner, inner)
            | st.dictionaries(text | st.integers() | st.none() | st.tuples(st.integers()), inner, max_size=4)
            | st.builds(Point, inner, inner)
            | st.builds(Dumps, inner)
        ),
        max_leaves=8,
    )
)
def test_any_mixture_becomes_one_line_that_parses(value: Any) -> None:
    line = to_json(value)
    assert line.isascii() and "\n" not in line
    strictly(line)


@up_to(300)
@given(value=json_values)
def test_json_values_come_back_exactly(value: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("round") / "run.jsonl"
    with Trace(path, redact=False) as trace:
        trace.step("note", value=value)
    (event,) = [each for each in read_events(path) if each.kind == "note"]
    back = event.payload["value"]
    assert back == value
    assert same_types(back, value)


def same_types(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same_types(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return all(map(same_types, one, other))
    return str(one) == str(other)  # tells 0.0 from -0.0


@up_to(100)
@given(fields=st.dictionaries(text.filter(lambda name: name != "kind"), json_values, max_size=5))
def test_fields_of_any_name_come_back(
    fields: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("names") / "run.jsonl"
    with Trace(path, redact=False) as trace:
        trace.step("mine", **fields)
    (event,) = [each for each in read_events(path) if each.kind == "mine"]
    apart = event.payload.get("fields", {})
    for name, value in fields.items():
        assert (apart if name in schema.RESERVED else event.payload)[name] == value


@contextmanager
def _orjson(is_used: bool) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_accelerated", None)  # restored at the end, whatever is set in between
        assert not is_used or lines.accelerate()
        yield


@up_to(500)
@given(json_values)
def test_lines_are_the_same_bytes_with_and_without_orjson(value: Any) -> None:
    with _orjson(False):
        slow = to_json(value)
    with _orjson(True):
        assert to_json(value) == slow


@given(st.floats() | st.floats(1e-7, 1e17) | st.integers(-(2**65), 2**65) | st.floats(width=32))
def test_numbers_are_the_same_bytes_with_and_without_orjson(number: float) -> None:
    with _orjson(False):
        slow = to_json([number, {"n": number}])
    with _orjson(True):
        assert to_json([number, {"n": number}]) == slow


@given(json_values)
def test_the_agents_objects_are_left_as_they_were(value: Any) -> None:
    before = copy.deepcopy(value)
    jsonable(value)
    to_json(value)
    assert value == before and same_types(value, before)


def test_iterators_are_not_consumed() -> None:
    for make in (generator, lambda: iter([0, 1, 2]), lambda: map(int, "012"), lambda: (n for n in range(3))):
        each = make()
        to_json({"it": each, "list": [each]})
        assert list(each) == [0, 1, 2]


def test_a_list_changed_later_does_not_change_the_past(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    messages: list[dict[str, Any]] = [{"role": "user", "content": "first"}]
    events: list[dict[str, Any]] = []
    tap = Tap(path, writer=events.append, redact=False)
    call = tap.record_model_request({"messages": messages})
    tap.record_model_response({"role": "assistant", "content": ["a"]}, call=call)
    messages[0]["content"] = "changed in place"
    messages.append({"role": "assistant", "content": ["a"]})
    tap.record_model_request({"messages": messages})
    messages.clear()
    tap.close()
    bodies = [each.payload["body"]["messages"] for each in read_events(path) if each.kind == "model.request"]
    assert bodies == [
        [{"role": "user", "content": "first"}],
        [{"role": "user", "content": "changed in place"}, {"role": "assistant", "content": ["a"]}],
    ]
    assert [each["body"]["messages"] for each in events if each["kind"] == "model.request"] == bodies


def test_subclasses_that_lie_are_taken_for_what_they_are() -> None:
    assert strictly(to_json([LyingStr("truth"), LyingInt(7), LyingFloat(1.5)])) == ["truth", 7, 1.5]
    assert strictly(to_json({LyingStr("key"): RaisingItems(a=1), "b": EndlessList([1, 2])})) == {
        "key": {"a": 1},
        "b": [1, 2],
    }


def test_values_json_cannot_hold_have_one_spelling_each() -> None:
    assert jsonable([math.nan, math.inf, -math.inf]) == [
        {"$float": "nan"},
        {"$float": "inf"},
        {"$float": "-inf"},
    ]
    assert jsonable(b"\x00\xff") == {"$bytes": "AP8=", "bytes": 2}
    assert jsonable({"$a": {"$$b": 1}}) == {"$$a": {"$$$b": 1}}
    assert jsonable(cyclic())["self"] == {"$cut": "cycle"}
    assert jsonable(RaisingRepr())["type"].endswith("RaisingRepr")
    assert jsonable({1: "a", "1": "b"}) == {"1": "a", "1'1": "b"}


@pytest.mark.parametrize(
    "bomb",
    [
        lambda: [[0] * 1_000_000] * 1_000,
        lambda: [["x"] * 100_000] * 10_000,
        long(lambda: [dict.fromkeys(map(str, range(100_000)), 0)] * 1_000),
        long(lambda: shared(40)),
        lambda: [{RaisingRepr(): 1 for _ in range(3_000)}],
    ],
)
def test_a_small_object_that_unfolds_without_end_is_cut(bomb: Any) -> None:
    line = to_json(bomb())
    assert len(line) < 100_000_000
    assert "$cut" in line or "whose repr raised" in line


@pytest.mark.long
def test_an_error_that_unfolds_without_end_is_cut(tmp_path: Path) -> None:
    with Tap(tmp_path / "run.jsonl", redact=False) as tap:
        tap.record_tool_result("t", None, error=shared(60))
    assert (tmp_path / "run.jsonl").stat().st_size < 1_000_000


def test_a_lowered_limit_for_long_numbers_costs_nothing_else() -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        found = strictly(to_json({"long": 10**700, "short": 5}))
    finally:
        sys.set_int_max_str_digits(before)
    assert found["short"] == 5 and found["long"]["type"] == "int"


def test_containers_another_thread_is_changing_are_recorded_all_the_same() -> None:
    changing: dict[str, Any] = {"a": 1, "list": [], "inner": {}}
    stop = False

    def change() -> None:
        n = 0
        while not stop:
            n += 1
            changing[f"k{n % 50}"] = [n]
            changing.pop(f"k{(n * 7) % 50}", None)
            changing["inner"][str(n % 20)] = {n}
            changing["list"].append(n)
            del changing["list"][: n % 3]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(1_500):
            assert strictly(to_json(changing))["a"] == 1
    finally:
        stop = True
        thread.join()


def test_ctrl_c_in_a_repr_reaches_the_agent() -> None:
    class Interrupted:
        def __repr__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        to_json([Interrupted()])


@pytest.mark.parametrize("which", range(len(ODD)), ids=lambda which: type(ODD[which]).__name__)
def test_every_front_end_takes_any_object_anywhere(which: int, tmp_path: Path, capsys: Any) -> None:
    value = ODD[which]
    from reenact import StepLog

    with Trace(tmp_path / "t.jsonl", redact=False) as trace:
        trace.step("k", value=value, error=value, tool=value, usage=value, duration_ms=value)
        trace.step("llm_call", usage=value, input_tokens=value, error=value)
        lost = trace.lost
    with StepLog(tmp_path / "s.jsonl", redact=False) as log:
        log.record_llm_call(value, value, value, value, duration_ms=value, error=value)
        log.record_tool_call(value, value, value, value, value)
        log.summarize()
        lost += log.lost
    with Tap(tmp_path / "p.jsonl", redact=False) as tap:
        if isinstance(type(value), type) and type(value) is EndlessList:
            value = [1]  # telling the provider looks into the conversation itself
        call = tap.record_model_request({"messages": [value, {"content": value}], "x": value})
        tap.record_model_request(value)
        tap.record_model_response(value, call=call, error=None)
        tap.record_model_response({"content": value, "usage": value, "model": value})
        tap.record_tool_result("t", value, value, call=tap.record_tool_call("t", value))
        tap.record_model_request({"messages": [value, {"content": value}], "x": value})
        lost += tap.lost
    assert lost == 0 or type(value) is RaisingEverything, capsys.readouterr().err
    found = 0
    for name in ("t", "s", "p"):
        found += len([strictly(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()])
        list(read_events(tmp_path / f"{name}.jsonl"))
    assert found + lost == 4 + 4 + 9
