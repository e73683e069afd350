"""Agents of every shape run again from their recordings: the same, or the first difference is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from reenact.playback.matching import frontier as f
from reenact.playback.matching.modes import KEEP_GOING
from support import simulated
from support.examples import LONG
from support.simulated import SHAPES, Diverged, Ours, record, replay, reply, text_of, user

SEEDS = range(120 if LONG else 12)


@pytest.mark.parametrize("shape", SHAPES)
def test_unchanged_agents_see_the_very_same(shape: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        seen, tape = record(SHAPES[shape], tmp_path, seed)
        rule = Ours(tape)
        assert replay(SHAPES[shape], rule) == seen
        assert rule.frontier.missing() == []
        assert rule.release.abandoned == set()
        assert rule.release.order == [call.id for call in sorted(tape.calls, key=lambda call: call.end)]


@pytest.mark.parametrize("shape", SHAPES)
def test_so_they_do_on_uvloop(shape: str, tmp_path: Path) -> None:
    for seed in SEEDS[:8]:
        seen, tape = record(SHAPES[shape], tmp_path, seed)
        assert replay(SHAPES[shape], Ours(tape), uvloop.new_event_loop) == seen


@pytest.mark.parametrize("shape", SHAPES)
def test_a_prompt_edit_is_caught(shape: str, tmp_path: Path) -> None:
    for seed in SEEDS:
        _, tape = record(SHAPES[shape], tmp_path, seed)
        number = seed % sum(call.kind == "model" for call in tape.calls)
        with pytest.raises(Diverged) as caught:
            replay(edited(SHAPES[shape], number), Ours(tape))
        assert caught.value.found.code == f.CHANGED, seed
        assert "politely" in str(caught.value.found.request.body)


def edited(agent: simulated.Agent, number: int) -> simulated.Agent:
    """The same agent, whose n-th question is another one."""

    async def changed(io: Any) -> Any:
        request_numbers = iter(range(1_000_000))
        ask = io.ask

        async def other(messages: list[Any], lane: str = "main") -> Any:
            if next(request_numbers) == number:
                last = {**messages[-1], "content": messages[-1]["content"] + " politely"}
                messages = [*messages[:-1], last]
            return await ask(messages, lane)

        io.ask = other
        return await agent(io)

    return changed


def steps(
    *, swapped: bool = False, inserted: int | None = None, left_out: int | None = None
) -> simulated.Agent:
    """Six questions that do not build on each other, with two tools after them."""

    async def agent(io: Any) -> Any:
        seen = []
        for number, text in enumerate(["rome", "oslo", "paris", "berlin", "madrid", "vienna"]):
            if number == inserted:
                seen.append(("inserted", await io.ask([user("and how much is all that in dollars?")])))
            if number != left_out:
                seen.append(text_of(await io.ask([user(f"tell me about {text}")])))
        names = ["lock", "open"]
        for name in reversed(names) if swapped else names:
            seen.append(await io.tool(name, door=7))
        return seen

    return agent


def test_swapped_steps_are_caught(tmp_path: Path) -> None:
    for seed in SEEDS:
        _, tape = record(steps(), tmp_path, seed)
        with pytest.raises(Diverged) as caught:
            replay(steps(swapped=True), Ours(tape, patience=0.01))
        assert caught.value.found.code == f.REORDERED
        assert caught.value.found.nearest.tool == "open"


@pytest.mark.parametrize("at", range(6))
@pytest.mark.parametrize("mode", [KEEP_GOING, f.REBASE])
def test_an_inserted_call_is_named_and_takes_nobodys_answer(at: int, mode: str, tmp_path: Path) -> None:
    seen, tape = record(steps(), tmp_path, at)
    rule = Ours(tape, mode)
    again = replay(steps(inserted=at), rule)
    assert [each for each in again if type(each) is not tuple] == seen
    (miss,) = rule.frontier.misses
    assert (miss.code, miss.number) == (f.EXTRA, at + 1)
    assert "dollars" in str(miss.request.body)
    assert rule.frontier.missing() == []


def test_it_is_caught_where_the_run_must_be_the_same(tmp_path: Path) -> None:
    _, tape = record(steps(), tmp_path, 1)
    with pytest.raises(Diverged) as caught:
        replay(steps(inserted=3), Ours(tape))
    assert caught.value.found.code == f.EXTRA


def test_a_skipped_call_is_noticed_at_once_or_reported_at_the_end(tmp_path: Path) -> None:
    seen, tape = record(steps(), tmp_path, 1)
    with pytest.raises(Diverged) as caught:
        replay(steps(left_out=2), Ours(tape))
    assert caught.value.found.code == f.REORDERED
    rule = Ours(tape, KEEP_GOING)
    assert replay(steps(left_out=2), rule) == [*seen[:2], *seen[3:]]
    assert [call.number for call in rule.frontier.missing()] == [2]
    assert any(f.REORDERED in served.notes for served in rule.frontier.log)
    assert not rule.frontier.misses


def test_a_changed_prompt_may_be_accepted(tmp_path: Path) -> None:
    seen, tape = record(simulated.sequential, tmp_path, 1)

    async def other_prompt(io: Any) -> Any:
        messages = [user("please plan a trip")]
        for turn in range(4):
            answer = await io.ask(messages)
            first = await io.tool("search", q=text_of(answer))
            second = await io.tool("book", what=f"room {turn}")
            messages += [reply(answer), user(f"{first} {second}")]
        return messages

    rule = Ours(tape, f.REBASE)
    assert replay(other_prompt, rule)[1:] == seen[1:]
    drifted = [served for served in rule.frontier.log if f.DRIFT in served.notes]
    assert [served.call.kind for served in drifted] == ["model"] * 4
    assert not rule.frontier.misses
    assert not rule.frontier.missing()


@pytest.mark.parametrize("shape", ["as_completed", "pool of 2", "3 agents, lanes"])
def test_in_keep_going_others_keep_their_own_answers(shape: str, tmp_path: Path) -> None:
    agent = SHAPES[shape]
    for seed in SEEDS:
        _, tape = record(agent, tmp_path, seed)
        rule = Ours(tape, KEEP_GOING, patience=0.005)
        replay(edited(agent, 1), rule)
        assert rule.frontier.misses
        served = [found for found in rule.frontier.log if isinstance(found, f.Served)]
        assert len({found.call.id for found in served}) == len(served)
        assert len(served) + len(rule.frontier.missing()) == len(tape.calls)


def test_equal_parallel_calls_with_other_answers_are_reported_once(tmp_path: Path) -> None:
    _, tape = record(simulated.equal_parallel, tmp_path, 3)
    rule = Ours(tape)
    replay(simulated.equal_parallel, rule)
    assert [f.AMBIGUOUS in served.notes for served in rule.frontier.log] == [True, False, False, False, False]


@pytest.mark.parametrize("new_loop", [simulated.asyncio.new_event_loop, uvloop.new_event_loop])
def test_calls_that_never_come_hold_nobody_up(new_loop: Callable[[], Any], tmp_path: Path) -> None:
    """Half of the parallel calls are gone: the others are answered after one wait for each."""
    _, tape = record(simulated.gathered, tmp_path, 2)

    async def fewer(io: Any) -> Any:
        return await simulated.asyncio.gather(*(io.ask([user(f"part {n}")]) for n in (0, 3)))

    rule = Ours(tape, patience=0.02)
    assert len(replay(fewer, rule, new_loop)) == 2
    assert len(rule.frontier.missing()) == 4


def test_cancelling_one_that_waits_lets_the_others_go(tmp_path: Path) -> None:
    _, tape = record(simulated.gathered, tmp_path, 2)

    async def impatient(io: Any) -> Any:
        tasks = [simulated.asyncio.ensure_future(io.ask([user(f"part {n}")])) for n in range(5)]
        await simulated.asyncio.sleep(0)
        tasks[1].cancel()
        return await simulated.asyncio.gather(*tasks, return_exceptions=True)

    found = replay(impatient, Ours(tape))
    assert [isinstance(each, dict) for each in found] == [True, False, True, True, True]
