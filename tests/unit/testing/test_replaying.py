"""reenact.testing.replaying and wrap, with no test runner around them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap, UsageError, run
from reenact.capture import replay_hook
from reenact.errors import Diverged
from reenact.testing import replaying, wrap


class Broken(Exception):
    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what} broke ({code})")


class Dice:
    """Functions of every kind that never give the same twice."""

    def __init__(self) -> None:
        self.thrown = 0

    def roll(self, sides: int) -> int | None:
        self.thrown += 1
        if sides == 0:
            raise Broken("dice", self.thrown)
        return None if sides == 1 else self.thrown * 100 + sides

    async def roll_async(self, sides: int) -> int | None:
        await asyncio.sleep(0)
        return self.roll(sides)

    def rolls(self, sides: int, times: int) -> Iterator[int | None]:
        for _ in range(times):
            yield self.roll(sides)
        return "enough"

    async def rolls_async(self, sides: int, times: int) -> AsyncIterator[int | None]:
        for _ in range(times):
            yield self.roll(sides)
        raise KeyError("dry")


def play(dice: Dice) -> list[Any]:
    """Everything once; returns what came of it."""
    roll, roll_async = wrap(dice.roll), wrap(dice.roll_async, "later")
    rolls, rolls_async = wrap(dice.rolls), wrap(dice.rolls_async)
    seen: list[Any] = [roll(6), roll(6), roll(sides=6), roll(1)]
    for _ in range(2):
        try:
            roll(0)
        except Broken as exc:
            seen.append((type(exc), str(exc)))

    def drained() -> Iterator[Any]:
        seen.append((yield from rolls(4, 2)))

    seen += drained()

    async def main() -> None:
        seen.extend(await asyncio.gather(roll_async(6), roll_async(8), roll_async(1)))
        try:
            async for each in rolls_async(3, 2):
                seen.append(each)
        except KeyError as exc:
            seen.append(repr(exc))

    asyncio.run(main())
    thread = threading.Thread(target=lambda: seen.append(roll(20)))
    thread.start()
    thread.join()
    return seen


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    path = tmp_path_factory.mktemp("dice") / "dice.jsonl"
    with replaying(path, mode="rerecord"):
        seen = play(Dice())
    return path, seen


def test_functions_give_what_they_gave_and_do_not_run(trace: tuple[Path, list[Any]]) -> None:
    path, seen = trace
    dice = Dice()
    with replaying(path) as run:
        assert play(dice) == seen and dice.thrown == 0
    assert len(set(map(str, seen))) > 10  # no two throws are alike
    assert run.tools.count("roll") == 7 and run.tools.count("later") == 3
    assert run.recorded.count() == run.run.count() and replay_hook.responder is None


def test_outside_they_are_what_they_were() -> None:
    dice = Dice()
    assert wrap(dice.roll)(6) == 106 and wrap(dice.roll)(6) == 206


def test_other_arguments_are_a_miss_that_nobody_hides(trace: tuple[Path, list[Any]]) -> None:
    dice = Dice()
    with (
        pytest.raises(
            Diverged, match=r"changed-request: (.|\n)*differs at args.sides\n    recorded 6(.|\n)*now      7"
        ),
        replaying(trace[0]),
    ):
        wrap(dice.roll)(7)
    with pytest.raises(AssertionError, match="changed-request"), replaying(trace[0]) as run:
        try:
            wrap(dice.roll)(7)
        except BaseException:
            assert [each.code for each in run.divergences] == ["changed-request"]
    with pytest.raises(AssertionError, match="changed-request"), replaying(trace[0]):
        try:
            wrap(dice.roll)(7)
        except BaseException:
            raise ValueError("something else") from None
    assert dice.thrown == 0 and replay_hook.responder is None


def test_missing_calls_are_reported(trace: tuple[Path, list[Any]]) -> None:
    with (
        pytest.raises(AssertionError, match=r"11 recorded calls were never made:\n  step 4: tool roll"),
        replaying(trace[0]),
    ):
        wrap(Dice().roll)(6)
    with replaying(trace[0], allow_unused=True):
        wrap(Dice().roll)(6)
    with pytest.raises(ZeroDivisionError), replaying(trace[0]):
        1 / 0  # noqa: B018


def test_tools_that_are_live_run(trace: tuple[Path, list[Any]]) -> None:
    dice = Dice()
    with replaying(trace[0], live_tools=["roll"], allow_unused=True):
        assert wrap(dice.roll)(6) == 106
        assert list(wrap(dice.rolls)(4, 2)) == [704, 804]  # as recorded: it does not run
    assert dice.thrown == 1
    with replaying(trace[0], live_tools=["all"]):
        play(dice)


def test_a_recording_may_be_what_the_agent_writes_itself(
    trace: tuple[Path, list[Any]], tmp_path: Path
) -> None:
    own = tmp_path / "own.jsonl"
    with Tap(own) as tap:
        tap.tool(Dice().roll)(6)
    before = own.read_bytes()
    with replaying(own), Tap(own) as tap:
        assert tap.tool(Dice().roll)(6) == 106
    assert own.read_bytes() == before


def test_only_one_at_a_time_and_only_modes_there_are(
    trace: tuple[Path, list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        replaying(trace[0], allow_unused=True),
        pytest.raises(UsageError, match="already"),
        replaying(trace[0]),
    ):
        pass
    with pytest.raises(UsageError, match="mode='once'"), replaying(trace[0], mode="once"):
        pass
    with (
        pytest.raises(UsageError, match="there is no recording"),
        replaying(trace[0].with_name("none.jsonl")),
    ):
        pass
    monkeypatch.setenv("CI", "1")
    with (
        pytest.raises(UsageError, match="refused where CI is set"),
        replaying(trace[0], mode="record-missing"),
    ):
        pass
    monkeypatch.setenv("REENACT_OFF", "1")
    with pytest.raises(UsageError, match="REENACT_OFF"), replaying(trace[0]):
        pass
    assert replay_hook.responder is None


@dataclass
class Hill:
    name: str
    height: int


def test_a_result_of_another_type_than_the_function_returns_now_is_returned_as_recorded_and_reported(
    tmp_path: Path,
) -> None:
    def hill(name: str) -> dict[str, object]:
        return {"name": name, "metres": 75}

    def hills(names: list[str]) -> Iterator[dict[str, object]]:
        yield from map(hill, names)

    with replaying(tmp_path / "hills.jsonl", mode="rerecord"):
        then = wrap(hill)("Celio"), list(wrap(hills)(["Celio"])), wrap(hill, "kept")("Celio")

    def hill_now(name: str) -> Hill: ...

    def hills_now(names: list[str]) -> Iterator[Hill]:
        yield from ()

    with replaying(tmp_path / "hills.jsonl") as run:
        now = wrap(hill_now, "hill")("Celio"), list(wrap(hills_now, "hills")(["Celio"]))
        assert (*now, wrap(hill, "kept")("Celio")) == then
    why = ["the recorded value does not fit Hill, the function's return annotation"]
    assert [(name, reported["tool"], reported["why"]) for name, reported in run.notes] == [
        ("stand_in", "hill", why),
        ("stand_in", "hills", why),
    ]


def test_a_run_with_others_inside_it_is_answered_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = Dice()
    roll = wrap(dice.roll)
    inner = run("inner")(roll)

    @run("outer")
    def outer() -> list[Any]:
        return [roll(2), inner(3), inner(4), roll(5)]

    monkeypatch.setenv("REENACT_DIR", str(tmp_path))
    then = outer()
    (trace,) = tmp_path.glob("*-outer-*.jsonl")
    with replaying(trace):
        assert outer() == then
    assert dice.thrown == 4
