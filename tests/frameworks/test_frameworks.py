"""Agents of every framework: nobody notices the recorder, and the recording tells what they did."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from support.provider import Received, plan
from support.provider.script import Turn

from .play import BARE, RUN, SPANS, WRAPPED, Played
from .table import ENVIRONMENT, ENVIRONMENTS, HERE, Case, Framework

Play = Callable[[Framework, str], Played]
STOP = {"end": "end_turn", "tools": "tool_use"}
EVERY = [
    pytest.param(framework, case, way, id=f"{framework}-{case.name}-{way}")
    for framework in HERE
    for way in (RUN, WRAPPED)
    if way == RUN or framework.is_wrapped
    for case in framework.cases
]
OF_FRAMEWORKS = {"final_answer", "finder", "transfer_to_clerk"}
"""Tools without a function of the program: what ends an agent, one that is managed, a hand-off."""
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_environment_is_the_one_it_claims_to_be() -> None:
    assert ENVIRONMENT in ENVIRONMENTS
    assert version("openai").split(".")[0] == ("3" if ENVIRONMENT == "newest" else "2")


@pytest.mark.parametrize("framework", HERE, ids=str)
def test_a_program_ends_and_speaks_as_without_us(framework: Framework, played: Play) -> None:
    bare, recorded = played(framework, BARE), played(framework, RUN)
    assert bare.exit == recorded.exit == framework.cases[-1].exit, recorded.stderr
    ours = [line for line in recorded.stderr if line.startswith("reenact: ")]
    assert [line for line in recorded.stderr if line not in ours] == bare.stderr
    (path,) = recorded.traces
    end = json.loads(path.read_text().splitlines()[-1])
    assert {each.get("tool", str(each)) for each in end["unseen"]} <= OF_FRAMEWORKS
    assert ours[0].startswith("reenact: runs/") and len(ours) == 1 + bool(end["unseen"])
    assert (end["kind"], end["exit"], end["dropped"]) == ("run.end", recorded.exit, 0)


@pytest.mark.parametrize(("framework", "case", "way"), EVERY)
def test_the_provider_and_the_user_see_no_difference(
    framework: Framework, case: Case, way: str, played: Play
) -> None:
    bare, recorded = played(framework, BARE), played(framework, way)
    assert recorded.exit == bare.exit, recorded.stderr
    assert recorded.lines(case) == bare.lines(case)
    assert recorded.requests(case) == bare.requests(case) != []


@pytest.mark.parametrize(("framework", "case", "way"), EVERY)
def test_every_call_is_recorded_once_with_its_answer(
    framework: Framework, case: Case, way: str, played: Play
) -> None:
    recorded = played(framework, way)
    calls = model_calls(recorded, case)
    requests = [each for each in recorded.log[case.name] if SPANS not in each.target]
    assert Counter(map(canonical, (call.begin.body for call in calls))) == Counter(
        canonical(json.loads(each.body)) for each in requests
    )
    for call in calls:
        check_answer(case, call, next(each for each in requests if json.loads(each.body) == call.begin.body))
    assert [call.attempt for call in calls] == (
        [1, 2] + [1] * 3 if case.name == "retried" else [1] * len(calls)
    )


@pytest.mark.parametrize(("framework", "case", "way"), EVERY)
def test_agents_are_distinguished(framework: Framework, case: Case, way: str, played: Play) -> None:
    calls = model_calls(played(framework, way), case)
    lanes: dict[str, set[str]] = {}
    for call in calls:
        lanes.setdefault(turn_of(call.begin.body, case).id[:8], set()).add(call.lane)
    assert all(len(names) == 1 for names in lanes.values()), lanes
    assert len(set().union(*lanes.values())) == case.lanes, lanes


@pytest.mark.parametrize(("framework", "case", "way"), EVERY)
def test_tools_are_found_where_functions_are_watched_and_else_known_by_the_wire(
    framework: Framework, case: Case, way: str, played: Play
) -> None:
    recorded = played(framework, way)
    calls = recorded.calls
    mine = {call.id for call in calls if call.kind == "model" and recorded.is_of(case, call.begin.url)}
    tools = [call for call in calls if call.kind == "tool" and call.parent in mine]
    turns = [turn_of(json.loads(each.body), case) for each in recorded.log[case.name] if each.status == 200]
    expected = Counter(canonical([use.name, use.args]) for turn in turns for use in turn.tools)
    assert Counter(canonical([call.tool, call.args]) for call in tools) == expected
    derived = {call.tool for call in tools if call.derived}
    assert derived <= OF_FRAMEWORKS if way == RUN else all(call.derived for call in tools)
    for did in recorded.tools(case):
        matching = [call for call in tools if (call.tool, call.args) == (did["tool"], did["args"])]
        if not matching:  # a tool called another one's function
            continue
        call = next((call for call in matching if shown(did) in outcome(call)), matching[0])
        tools.remove(call)
        if call.is_open:
            assert case.exit, "only an agent that died leaves a tool unanswered"
            continue
        is_hidden = "error" in did and call.derived  # some frameworks keep it from the model
        assert shown(did) in outcome(call) or (is_hidden and "error occurred" in outcome(call))
        flags_errors = not call.derived or case.flags_errors or framework.tools_are_text
        assert (call.error is not None) == (flags_errors and "error" in did)


def shown(did: dict[str, Any]) -> str:
    """Return what a tool said it returned or raised."""
    return str(did.get("error") or did["result"])


def outcome(call: Any) -> str:
    return str(call.result if call.derived or call.error is None else call.error)


def model_calls(recorded: Played, case: Case) -> list[Any]:
    calls = [call for call in recorded.calls if call.kind == "model"]
    return [call for call in calls if recorded.is_of(case, call.begin.url)]


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def turn_of(body: Any, case: Case) -> Turn:
    return plan.turn(body, case.name)


def check_answer(case: Case, call: Any, received: Received) -> None:
    fields = call.end.stored_fields
    if call.attempt == 1 and "status-429" in received.target and fields["status"] == 429:
        assert fields["error"] is not None
        return
    turn = turn_of(json.loads(received.body), case)
    assert (fields["status"], fields["error"], fields["ended"]) == (200, None, "complete")
    assert fields["stop_reason"] == STOP[turn.stop]
    assert turn.usage is not None
    usage = fields.get("usage")
    if usage is None:  # chat completions stream it only if they are asked to
        body = json.loads(received.body)
        assert body["stream"] and not body.get("stream_options", {}).get("include_usage")
    else:
        assert (usage["input"], usage["output"]) == (turn.usage.input, turn.usage.output)
