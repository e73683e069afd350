"""replay() of runs whose requests are recorded: every provider's shape, every way to say up to where."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import reenact
from reenact import Tap, UsageError, replay
from reenact.errors import NoSuchEvent, TraceFileError
from support.spoken import ANSWER, CALLED, FINAL, LONG, REQUEST, RESULT, SECOND, SHAPES, codes, record

PROVIDERS = sorted(SHAPES)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_after_every_event_the_list_is_what_a_provider_accepts(provider: str, tmp_path: Path) -> None:
    path, shape = record(tmp_path / "run.jsonl", provider), SHAPES[provider]
    first, second = [shape.user], [shape.user, *shape.answer, *shape.result]
    for n, messages, findings in [
        (0, [], []),
        (REQUEST, first, []),
        (ANSWER, first, ["cut"]),
        (CALLED, first, ["cut"]),
        (RESULT, second, []),
        (SECOND, second, []),
        (FINAL, second + shape.final_answer, []),
        (99, second + shape.final_answer, []),
        (None, second + shape.final_answer, []),
    ]:
        got = replay(path, n)
        assert (got, codes(got)) == (messages, findings), n
        if n != 0:
            assert got.provider == provider and got.key == shape.key


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_request_is_returned_whole(provider: str, tmp_path: Path) -> None:
    path, shape = record(tmp_path / "run.jsonl", provider), SHAPES[provider]
    got = replay(path, turn=2)
    body = {**shape.rest, shape.key: [shape.user, *shape.answer, *shape.result]}
    assert got.request() == body
    assert json.dumps(got) == json.dumps(body[shape.key]), "the order of keys too"
    tools = shape.rest.get("tools") or shape.rest["toolConfig"]["tools"]
    assert got.tools == tools
    assert replay(path, turn=1).request() == {**shape.rest, shape.key: [shape.user]}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_result_no_request_shows_is_made_from_the_recorded_one(provider: str, tmp_path: Path) -> None:
    path, shape = record(tmp_path / "run.jsonl", provider, upto=RESULT), SHAPES[provider]
    got = replay(path)
    assert list(got) == [shape.user, *shape.answer, *shape.built]
    assert codes(got) == ["rebuilt"]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_failed_tool_is_marked_where_the_provider_has_a_mark(provider: str, tmp_path: Path) -> None:
    got = replay(record(tmp_path / "run.jsonl", provider, upto=RESULT, error="no such city"))
    assert codes(got) == ["rebuilt"]
    text = json.dumps(got[-1])
    assert "no such city" in text
    mark = {"anthropic": '"is_error": true', "bedrock": '"status": "error"', "gemini": '{"error": '}
    assert mark.get(provider, "") in text


def test_the_worked_example_of_the_design(tmp_path: Path) -> None:
    path = record(tmp_path / "run.jsonl", "anthropic")
    assert [message["role"] for message in replay(path, n=2)] == ["user"]
    assert codes(replay(path, n=2)) == ["cut"]
    assert "search (toolu_1)" in replay(path, n=2).findings[0].message
    assert [message["role"] for message in replay(path, n=4)] == ["user", "assistant", "user"]
    assert replay(path, n=4)[2]["content"][0]["content"][0]["text"] == LONG


def test_strict_raises_instead_of_cutting(tmp_path: Path) -> None:
    path = record(tmp_path / "run.jsonl", "openai")
    with pytest.raises(TraceFileError, match=r"no result for search \(call_1\)") as raised:
        replay(path, n=2, strict=True)
    assert raised.value.hint and raised.value.path == str(path)
    assert len(replay(path, n=4, strict=True)) == 3


def test_a_call_is_named_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    path = record(tmp_path / "run.jsonl", "openai")
    model, tool, second = [call.id for call in reenact.Recording.load(path).calls()]
    assert model and tool and second
    assert len(replay(path, call=model)) == 1
    assert len(replay(path, call=tool)) == 1, "what led to the tool"
    assert len(replay(path, call=second)) == 3
    with pytest.raises(NoSuchEvent):
        replay(path, call="ffff")
    with pytest.raises(NoSuchEvent) as several:
        replay(path, call=model[:4])
    assert several.value.hint and second in several.value.hint


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": -1}, {"n": "3"}, {"n": True}, {"n": 1.0}, {"turn": 0}, {"turn": "1"}, {"call": ""}, {"call": 7},
        {"n": 1, "turn": 1}, {"turn": 1, "call": "a"}, {"prompt": 7}, {"prompt": ["hello"]},
    ],
)  # fmt: skip
def test_a_wrong_argument_is_a_usage_error(wrong: dict, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        replay(record(tmp_path / "run.jsonl", "openai"), **wrong)
    assert raised.value.hint


def test_a_turn_there_is_not_is_named(tmp_path: Path) -> None:
    with pytest.raises(NoSuchEvent, match="no turn 3"):
        replay(record(tmp_path / "run.jsonl", "openai"), turn=3)


def test_a_prompt_is_not_used_where_requests_are_recorded(tmp_path: Path) -> None:
    got = replay(record(tmp_path / "run.jsonl", "openai"), n=1, prompt="Another")
    assert (got[0]["content"], codes(got)) == ("Plan Lisbon", ["prompt-unused"])


def two_uses(
    path: Path, *, ids: bool, result_order: tuple[int, ...] = (0, 1), report_ids: bool = True
) -> Path:
    """An answer with two uses of one tool, whose results come in some order; no second request."""
    blocks = [
        {"functionCall": {"name": "price", "args": {"hotel": hotel}} | ({"id": f"u{hotel}"} if ids else {})}
        for hotel in (0, 1)
    ]
    answer = {"candidates": [{"content": {"role": "model", "parts": blocks}, "finishReason": "STOP"}]}
    with Tap(path) as tap:
        tap.record_model_request({"contents": [{"role": "user", "parts": [{"text": "?"}]}]}, "gemini")
        if report_ids:
            tap.record_model_response(answer)
        else:  # reported late, so that no tool can claim its use
            calls = [tap.record_tool_call("price", {"hotel": 7}) for _ in result_order]
            tap.record_model_response(answer)
        if report_ids:
            calls = [tap.record_tool_call("price", {"hotel": hotel}) for hotel in (0, 1)]
        for hotel in result_order:
            tap.record_tool_result("price", {"eur": hotel}, call=calls[hotel])
    return path


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_results_stand_in_the_order_of_the_uses(ids: bool, order: tuple[int, ...], tmp_path: Path) -> None:
    got = replay(two_uses(tmp_path / "run.jsonl", ids=ids, result_order=order))
    responses = [part["functionResponse"] for part in got[-1]["parts"]]
    assert [response["response"] for response in responses] == [{"eur": 0}, {"eur": 1}]
    assert [response.get("id") for response in responses] == (["u0", "u1"] if ids else [None, None])


def test_one_of_two_results_is_not_enough(tmp_path: Path) -> None:
    got = replay(two_uses(tmp_path / "run.jsonl", ids=True, result_order=(1,)))
    assert len(got) == 1 and "price (u0)" in got.findings[-1].message


def test_without_a_tool_id_nothing_is_guessed(tmp_path: Path) -> None:
    got = replay(two_uses(tmp_path / "run.jsonl", ids=True, report_ids=False))
    assert (len(got), codes(got)) == (1, ["cut"])


def test_lanes_side_by_side_never_mix(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        calls = {}
        for lane in ("red", "blue"):
            body = {"model": "gpt-5", "messages": [{"role": "user", "content": lane}]}
            calls[lane] = tap.record_model_request(body, "openai", lane=lane)
        for lane in ("red", "blue"):
            message = {"role": "assistant", "content": f"{lane} said"}
            tap.record_model_response({"choices": [{"message": message}]}, call=calls[lane])
    printed = {n: [message["content"] for message in replay(path, n)] for n in range(1, 5)}
    assert printed == {1: ["red"], 2: ["blue"], 3: ["red", "red said"], 4: ["blue", "blue said"]}
    assert codes(replay(path, 3)) == ["lane"]


def test_processes_that_both_say_main_are_lanes_of_their_own(tmp_path: Path) -> None:
    first, second = record(tmp_path / "run.jsonl", "openai"), record(tmp_path / "other.jsonl", "anthropic")
    run, writer = [json.loads(path.read_text().splitlines()[0]) for path in (first, second)]
    text = second.read_text().replace(writer["run"], run["run"]).replace('"kind": "run.', '"kind": "proc.')
    (tmp_path / f"run.p{writer['w']}.jsonl").write_text(text)
    second.unlink()
    (tmp_path / "other.blobs").rename(tmp_path / "blobs")
    events = reenact.Recording.load(first).events
    assert len(events) == 12
    ends = {run["w"]: "openai", writer["w"]: "anthropic"}
    for n in range(1, 13):
        got = replay(first, n, blobs=str(tmp_path / "blobs"))
        assert got.provider == ends[events[n - 1].writer] and "lane" in codes(got)
        assert got[0] == SHAPES[got.provider].user
    assert len(got) == 4


def test_agents_that_share_a_lane_are_distinguished_by_their_links(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        tap.record_model_request(
            {"model": "gpt-5", "messages": [{"role": "user", "content": "red"}]}, "openai"
        )
        use = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
        answer = {"role": "assistant", "content": None, "tool_calls": [use]}
        tap.record_model_response({"choices": [{"message": answer}]})
        tool = tap.record_tool_call("t", {})
        tap.record_model_request(
            {"model": "gpt-5", "messages": [{"role": "user", "content": "blue"}]}, "openai"
        )
        tap.record_tool_result("t", "done", call=tool)
    assert [message["content"] for message in replay(path, 4)] == ["blue"]
    assert [message["content"] for message in replay(path, 5)] == ["red", None, "done"]


def test_a_failed_answer_is_no_message_and_its_retry_is_another_request(tmp_path: Path) -> None:
    path, body = tmp_path / "run.jsonl", {"model": "gpt-5", "messages": [{"role": "user", "content": "?"}]}
    with Tap(path) as tap:
        tap.record_model_request(body, "openai", attempt=1)
        tap.record_model_response({"error": {"type": "overloaded", "message": "busy"}}, status=529)
        tap.record_model_request(body, "openai", attempt=2)
        tap.record_model_response({"choices": [{"message": {"role": "assistant", "content": "yes"}}]})
    assert [len(replay(path, n)) for n in range(5)] == [0, 1, 1, 1, 2]
    assert len(replay(path, turn=1)) == 1


def test_a_request_the_provider_must_have_refused_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    use = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {}}
    messages = [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": "Hello?"},
    ]
    with Tap(path) as tap:
        tap.record_model_request({"model": "claude", "max_tokens": 9, "messages": messages}, "anthropic")
        orphan = {"type": "tool_result", "tool_use_id": "toolu_9", "content": "x"}
        tap.record_model_request(
            {"messages": [messages[0], {"role": "user", "content": [orphan]}]}, "anthropic"
        )
    assert (replay(path, turn=1), codes(replay(path, turn=1))) == ([messages[0]], ["cut"])
    got = replay(path, turn=2)
    assert (list(got), "toolu_9" in got.findings[0].message) == ([messages[0]], True)


def test_what_only_the_provider_has_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    output = {"type": "function_call_output", "call_id": "call_0", "output": "x"}
    with Tap(path) as tap:
        tap.record_model_request({"model": "gpt-5", "previous_response_id": "resp_0", "input": [output]})
        tap.record_model_request({"model": "gpt-5", "conversation": "conv_1", "input": "Go on"})
    assert (list(replay(path, 1)), codes(replay(path, 1))) == ([output], ["not-whole"])
    assert (list(replay(path, 2)), codes(replay(path, 2))) == (
        [{"role": "user", "content": "Go on"}],
        ["not-whole"],
    )


def test_of_several_choices_the_first_is_taken_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    choices = [{"index": n, "message": {"role": "assistant", "content": f"{n}"}} for n in range(3)]
    with Tap(path) as tap:
        tap.record_model_request({"model": "gpt-5", "messages": [{"role": "user", "content": "?"}], "n": 3})
        tap.record_model_response({"choices": choices})
    got = replay(path)
    assert (got[-1]["content"], codes(got)) == ("0", ["choice"])


@pytest.mark.parametrize(
    "body",
    [
        {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": []}}]},
        {"candidates": [{"content": {"role": "model"}, "finishReason": "MAX_TOKENS"}]},
        {"surprise": True},
        "<html>busy</html>",
    ],
)
def test_an_answer_that_cannot_be_sent_back_is_left_out_and_reported(body: object, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        tap.record_model_request({"messages": [{"role": "user", "content": "?"}]})
        tap.record_model_response(body)
    assert (len(replay(path)), codes(replay(path))) == (1, ["lost"])


def test_a_tool_output_with_a_form_of_its_own_is_not_made_up(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    call = {"type": "computer_call", "call_id": "c1", "action": {"type": "screenshot"}}
    with Tap(path) as tap:
        tap.record_model_request({"model": "gpt-5", "input": "Look"}, "openai-responses")
        tap.record_model_response({"object": "response", "status": "completed", "output": [call]})
        tap.record_tool_call("computer", {"type": "screenshot"})
        tap.record_tool_result("computer", "a picture")
    assert (len(replay(path)), codes(replay(path))) == (1, ["cut"])


@pytest.mark.long
def test_the_time_grows_with_the_turns_and_not_with_their_square(tmp_path: Path) -> None:
    def turns(count: int) -> float:
        path, messages = tmp_path / f"{count}.jsonl", [{"role": "user", "content": "go"}]
        with Tap(path, redact=False) as tap:
            for number in range(count):
                tap.record_model_request({"model": "gpt-5", "messages": messages}, "openai")
                use = {"id": f"c{number}", "type": "function", "function": {"name": "t", "arguments": "{}"}}
                message = {"role": "assistant", "content": None, "tool_calls": [use]}
                tap.record_model_response({"choices": [{"message": message}]})
                tap.record_tool_call("t", {})
                tap.record_tool_result("t", f"result {number} " * 20)
                result = {"role": "tool", "tool_call_id": f"c{number}", "content": f"result {number} " * 20}
                messages += [message, result]
        best = 9e9
        for _ in range(3):
            begin = time.process_time()
            assert len(replay(path)) == 2 * count + 1
            best = min(best, time.process_time() - begin)
        return best

    assert turns(1000) < 10 * turns(250), "four times the turns; sixteen times the time would be quadratic"
