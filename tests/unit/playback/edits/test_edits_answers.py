"""``--response`` and ``--tool-result`` on recorded calls, and what is refused before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from reenact import Tap
from reenact.errors import UsageError
from reenact.playback.edits.cut_request import CutRequest
from reenact.playback.edits.edits import Edits
from reenact.playback.matching.recorded_answers import CUT, EXCEPTION, OK, Answer
from reenact.playback.matching.request import HTTP, MODEL, TOOL
from reenact.playback.matching.tape import RecordedCall, Tape
from reenact.wire import reading
from reenact.wire.streams import assemble
from support.provider import Provider
from support.spoken import SHAPES, record

ALL = pytest.mark.parametrize("name", SHAPES)
URLS = {
    "anthropic": "https://h/v1/messages",
    "openai": "https://h/v1/chat/completions",
    "openai-responses": "https://h/v1/responses",
    "gemini": "https://h/v1beta/models/m:streamGenerateContent?alt=sse",
    "bedrock": "https://h/model/m/converse-stream",
    "ollama": "https://h/api/chat",
}


@pytest.fixture(scope="module")
def tapes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tape]:
    folder = tmp_path_factory.mktemp("spoken")
    return {name: Tape.load(str(record(folder / f"{name}.jsonl", name))) for name in SHAPES}


def calls(tape: Tape, kind: str) -> list[RecordedCall]:
    return [call for call in tape.calls if call.kind == kind]


def spoken(edits: Edits, answer: Answer, name: str, is_stream: bool) -> dict[str, Any]:
    """The answer to be given, as an SDK would read its bytes."""
    found = edits.answer(answer, name, URLS[name], is_stream)
    assert (found.outcome, found.status, found.error, found.lossy) == (OK, 200, None, ())
    data = b"".join(piece for piece, _ in found.pieces or ())
    if not is_stream:
        assert found.headers["content-type"] == "application/json"
        return json.loads(data)
    read = assemble(data, name, found.headers["content-type"])
    assert (read.complete, read.problems) == (True, [])
    return read.body


@ALL
@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "streamed"])
def test_a_text_takes_the_place_of_the_models_response(tapes, name, is_stream):
    first, _ = calls(tapes[name], MODEL)
    edits = Edits.parse(response="Take the train.")
    edits.check(first, tapes[name])
    body = spoken(edits, first.answer, name, is_stream)
    assert reading.text(body) == "Take the train."
    assert reading.tool_uses(body) == []
    assert reading.stop_reason(body) == "end_turn"
    assert body.get("id") == first.answer.body.get("id")


@ALL
@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "streamed"])
def test_a_whole_body_takes_its_place_under_the_recorded_id(tapes, name, is_stream, tmp_path):
    first, second = calls(tapes[name], MODEL)
    answer = json.loads(json.dumps(first.answer.body).replace("hotels", "trains"))
    answer.pop("id", None)
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer), "utf-8")
    edits = Edits.parse(response=f"@{path}")
    edits.check(second, tapes[name])
    body = spoken(edits, second.answer, name, is_stream)
    assert [use[1:3] for use in reading.tool_uses(body)] == [("search", {"q": "trains"})]
    assert body.get("id") == second.answer.body.get("id")


@ALL
def test_an_object_of_another_shape_is_refused(tapes, name):
    first, _ = calls(tapes[name], MODEL)
    other = "gemini" if name != "gemini" else "openai"
    for response, expected in (
        ('{"city": "Lisbon"}', "not an answer of"),
        (json.dumps(SHAPES[other].final), f"has the shape of {other}"),
        ('{"type": "error", "error": {"type": "x", "message": "y"}}', "not an answer of"),
    ):
        with pytest.raises(UsageError, match=expected) as problem:
            Edits.parse(response=response).check(first, tapes[name])
        assert problem.value.hint
    edits = Edits.parse(response=json.dumps('{"city": "Lisbon"}'))  # quoted, it is a text
    edits.check(first, tapes[name])
    assert reading.text(spoken(edits, first.answer, name, False)) == '{"city": "Lisbon"}'


@ALL
def test_a_failed_call_can_get_a_response(name):
    for answer in (
        Answer(CUT, 200),
        Answer(EXCEPTION),
        Answer("status", 529, body={"error": {"message": "no"}}),
    ):
        for is_stream in (False, True):
            body = spoken(Edits.parse(response="Fine."), answer, name, is_stream)
            assert reading.text(body) == "Fine."
            assert reading.provider_of_answer(body) == name


@ALL
def test_what_may_be_changed_at_a_tool_and_what_not(tapes, name):
    tape = tapes[name]
    [tool] = calls(tape, TOOL)
    Edits.parse(tool_result="x", sets=["system=New.", "model=b"]).check(tool, tape)
    assert CutRequest.at(tool, tape).is_tools
    for edits in (Edits.parse(response="x"), Edits.parse(inject_user="x"), Edits.parse(drop=[1])):
        with pytest.raises(UsageError, match="is a tool call") as raised:
            edits.check(tool, tape)
        assert "cut at the model call" in raised.value.hint


@ALL
def test_a_tools_new_result_leaves_requests_alone_where_the_tool_itself_is_answered(tapes, name):
    tape = tapes[name]
    [tool] = calls(tape, TOOL)
    cut = CutRequest.at(tool, tape)
    later = calls(tape, MODEL)[1].request
    edits = Edits.parse(tool_result="x")
    assert edits.request(later.body, later.url or "", cut).body == later.body


@ALL
def test_edits_are_checked_on_the_recorded_request(tapes, name):
    tape = tapes[name]
    _, second = calls(tape, MODEL)
    Edits.parse(tool_result="x", inject_user="Go!", sets=["system+=Go!"]).check(second, tape)
    with pytest.raises(UsageError, match="without its partner"):
        Edits.parse(drop=[-1]).check(second, tape)
    with pytest.raises(UsageError, match="there is no"):
        Edits.parse(sets=["tools.0.nothing=x"]).check(second, tape)
    Edits.parse().check(second, tape)


def test_a_text_of_a_tool_stays_a_text_and_other_values_are_read_as_json():
    text, value = Answer(OK, body="found"), Answer(OK, body=[1])
    assert Edits.parse(tool_result='{"a": 1}').tool_answer(text).body == '{"a": 1}'
    assert Edits.parse(tool_result='{"a": 1}').tool_answer(value).body == {"a": 1}
    assert Edits.parse(tool_result="not JSON").tool_answer(value).body == "not JSON"
    assert Edits.parse(sets=["a=1"]).tool_answer(value) is value
    failed = Edits.parse(tool_result="fine").tool_answer(Answer(EXCEPTION))
    assert (failed.outcome, failed.body, failed.error) == (OK, "fine", None)


def test_results_of_mcp_and_of_generators_keep_their_form():
    block = {"type": "text", "text": "old"}
    mcp = Answer(OK, body={"content": [block], "structuredContent": {"n": 1}, "isError": True})
    assert Edits.parse(tool_result='{"n": 2}').tool_answer(mcp).body == {
        "content": [{"type": "text", "text": '{"n": 2}'}], "structuredContent": {"n": 2}, "isError": False,
    }  # fmt: skip
    whole = {"content": [block, block]}
    assert Edits.parse(tool_result=json.dumps(whole)).tool_answer(mcp).body == whole
    made = Answer(OK, body={"yielded": [1, 2], "count": 2, "returned": None})
    assert Edits.parse(tool_result="[3]").tool_answer(made).body == {
        "yielded": [3], "count": 1, "returned": None,
    }  # fmt: skip


def test_a_recorded_stream_of_a_real_sdk_is_replayed_as_a_stream(provider: Provider, tmp_path: Path):
    with Tap(tmp_path / "run.jsonl") as tap:
        with tap.wrap(openai.OpenAI(base_url=provider.url("text") + "/v1", api_key="none")) as client:
            messages: Any = [{"role": "user", "content": "Hi"}]
            list(client.chat.completions.create(model="gpt-a", messages=messages, stream=True))
            client.embeddings.create(model="e", input="x")
    tape = Tape.load(str(tmp_path / "run.jsonl"))
    [model] = calls(tape, MODEL)
    edits = Edits.parse(response="Take the train.")
    edits.check(model, tape)
    found = edits.answer(model.answer, "openai", model.request.url or "", model.is_stream)
    chunks = [
        line for piece, _ in found.pieces or () for line in piece.splitlines() if line.startswith(b"data: {")
    ]
    assert all(json.loads(chunk[6:])["choices"] for chunk in chunks)  # no bill: the agent asked for none
    assert found.body["id"] == model.answer.body["id"]
    assert found.headers["x-request-id"] == model.answer.headers["x-request-id"]
    [other] = calls(tape, HTTP)
    with pytest.raises(UsageError, match="is neither a model call nor a tool call"):
        edits.check(other, tape)


def test_an_answer_that_the_agent_goes_on_from_by_its_id_cannot_be_replaced(
    provider: Provider, tmp_path: Path
):
    with Tap(tmp_path / "run.jsonl") as tap:
        with tap.wrap(openai.OpenAI(base_url=provider.url("tools-1") + "/v1", api_key="none")) as client:
            first = client.responses.create(model="gpt-a", input="Hi")
            out: Any = [{"type": "function_call_output", "call_id": "call_0001", "output": "ok"}]
            client.responses.create(model="gpt-a", input=out, previous_response_id=first.id)
    tape = Tape.load(str(tmp_path / "run.jsonl"))
    first_call, second_call = calls(tape, MODEL)
    with pytest.raises(UsageError, match="refers to the answer's id"):
        Edits.parse(response="x").check(first_call, tape)
    Edits.parse(response="x", tool_result="y").check(second_call, tape)
    with pytest.raises(UsageError, match="the provider stores"):
        Edits.parse(drop=[1]).check(second_call, tape)


def test_the_recorded_request_shows_the_agent_behind_an_sdk(provider: Provider, tmp_path: Path):
    provider.reset()
    with Tap(tmp_path / "run.jsonl") as tap:
        client = tap.wrap(anthropic.Anthropic(base_url=provider.url("text"), api_key="none"))
        messages: Any = [{"role": "user", "content": "Hi"}]
        client.messages.create(model="claude-a", max_tokens=9, system="You plan.", messages=messages)
        client.close()
    tape = Tape.load(str(tmp_path / "run.jsonl"))
    [call] = calls(tape, MODEL)
    sent = json.loads(provider.settled()[-1].body)
    found = Edits.parse(sets=["system=New."]).request(sent, call.request.url or "", CutRequest.at(call, tape))
    assert found.body == {**sent, "system": "New."}
