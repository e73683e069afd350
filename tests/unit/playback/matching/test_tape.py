"""What a recording can answer, as real SDKs recorded it; and real SDKs answered by it with no provider there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from reenact import Tap
from reenact.capture.http.watch import Watch
from reenact.capture.redact import redactor
from reenact.capture.redact.redactor import Redactor
from reenact.playback.matching.frontier import Miss, Served
from reenact.playback.matching.player import Player
from reenact.playback.matching.request import HTTP, MODEL, Request
from reenact.playback.matching.tape import NEVER, RecordedCall, Tape
from reenact.testing import write_trace
from reenact.wire.streams import assemble
from support.provider import Provider

QUESTION = [{"role": "user", "content": "Plan Lisbon"}]
TOOLS = [{"name": "search", "description": "d", "input_schema": {"type": "object"}}]


def talk(client: anthropic.Anthropic, turns: int, *, stream: bool) -> list[Any]:
    """A small agent: asks, does as it is told, asks again."""
    messages: list[Any] = list(QUESTION)
    for _ in range(turns):
        arguments: dict[str, Any] = {
            "model": "claude-sonnet-4-6",
            "max_tokens": 99,
            "messages": messages,
            "tools": TOOLS,
        }
        if stream:
            with client.messages.stream(**arguments) as coming:
                answer = coming.get_final_message()
        else:
            answer = client.messages.create(**arguments)
        content = [block.to_dict() for block in answer.content]
        messages.append({"role": "assistant", "content": content})
        uses = [block for block in content if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": use["id"], "content": f"{use['name']} done"}
            for use in uses
        ]
        messages.append({"role": "user", "content": results or "go on"})
    return messages


def recorded(tmp_path: Path, url: str, use: Any, **options: Any) -> Tape:
    with Tap(tmp_path / "run.jsonl") as tap:
        client = tap.wrap(anthropic.Anthropic(base_url=url, api_key="none", max_retries=2, **options))
        try:
            use(client)
        except (anthropic.APIError, httpx2.HTTPError):
            pass
        client.close()
    return Tape.load(str(tmp_path / "run.jsonl"))


class FromTape(httpx2.BaseTransport):
    """A transport that a player answers."""

    def __init__(self, player: Player) -> None:
        self.player = player

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        question = Request(MODEL, request.method, json.loads(request.read()), url=str(request.url))
        found = self.player.ask(question)
        if isinstance(found, Miss):
            raise AssertionError(self.player.explain(found).text())
        answer = found.call.answer
        assert answer.lossy == ()
        assert answer.status is not None
        return httpx2.Response(answer.status, headers=answer.headers, stream=Pieces(answer.pieces or []))


class Pieces(httpx2.SyncByteStream):
    def __init__(self, pieces: list[tuple[bytes, float]]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Any:
        return (data for data, _ in self.pieces)


@pytest.mark.parametrize(
    "words",
    ["tools-3", "tools-3,gzip", "tools-2,shred-7", "thinking", "unicode", "status-429,times-2,tools-1"],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_real_sdk_is_answered_by_its_tape(
    provider: Provider, tmp_path: Path, words: str, stream: bool
) -> None:
    seen: list[Any] = []
    provider.reset()
    tape = recorded(tmp_path, provider.url(words), lambda client: seen.extend(talk(client, 4, stream=stream)))
    assert len(seen) == 9
    assert all(call.is_stream is stream for call in tape.calls)
    player = Player(tape)
    client = anthropic.Anthropic(
        base_url=f"http://nobody.invalid/s/{words}", api_key="none", max_retries=2,
        http_client=httpx2.Client(transport=FromTape(player)),
    )  # fmt: skip
    assert talk(client, 4, stream=stream) == seen
    assert player.report() == []


def test_a_stream_comes_in_the_pieces_it_came_in(provider: Provider, tmp_path: Path) -> None:
    tape = recorded(tmp_path, provider.url("long-20,drip-1"), lambda client: talk(client, 1, stream=True))
    (call,) = tape.calls
    answer = call.answer
    assert (call.outcome, call.kind, call.attempt, answer.status) == ("ok", MODEL, 1, 200)
    assert len(answer.pieces) > 5
    times = [at for _, at in answer.pieces]
    assert times == sorted(times) and times[0] > 0
    assert assemble(b"".join(data for data, _ in answer.pieces), "anthropic").body == answer.body


def one(tape: Tape) -> RecordedCall:
    return tape.calls[-1]


def test_how_calls_ended(provider: Provider, tmp_path: Path) -> None:
    def ended(words: str, use: Any, **options: Any) -> RecordedCall:
        folder = tmp_path / words.replace(",", "_")
        folder.mkdir()
        return one(recorded(folder, provider.url(words), use, **options))

    def leave(client: anthropic.Anthropic) -> None:
        with client.messages.stream(model="m", max_tokens=9, messages=QUESTION) as coming:
            next(iter(coming))

    plain, streamed = (lambda client, s=stream: talk(client, 1, stream=s) for stream in (False, True))
    provider.reset()
    refused = ended("status-400", plain)
    assert (refused.outcome, refused.answer.status, refused.answer.body["type"]) == ("status", 400, "error")
    assert refused.answer.headers["content-type"].startswith("application/json")
    failed = ended("silent", plain, timeout=0.2)
    assert failed.outcome == "exception" and failed.answer.pieces is None and failed.answer.error.type
    reset = ended("long-20,reset-4", streamed)
    assert reset.outcome == "exception" and len(reset.answer.pieces) >= 1 and reset.answer.lossy == ()
    closed = ended("long-50,drip-2", leave)
    assert closed.outcome == "closed" and not closed.ends_by_itself and closed.has_response
    reported = ended("long-20,error-4", streamed)
    assert reported.answer.outcome == "ok" and reported.answer.error is not None  # the error is in the bytes


def test_other_calls_of_an_api(provider: Provider, tmp_path: Path) -> None:
    with Tap(tmp_path / "run.jsonl") as tap:
        client = tap.wrap(openai.OpenAI(base_url=provider.url("text", "/v1"), api_key="none"))
        client.embeddings.create(model="e", input=["a", "b"], encoding_format="float")
        client.close()
    tape = Tape.load(str(tmp_path / "run.jsonl"))
    (embedded,) = tape.calls
    assert embedded.kind == HTTP
    assert embedded.answer.body["data"] and embedded.answer.lossy == ()
    assert json.loads(embedded.answer.pieces[0][0]) == embedded.answer.body
    found = Player(tape).ask(Request(HTTP, "POST", embedded.request.body, url=embedded.request.url))
    assert isinstance(found, Served) and found.call is embedded


def test_tools_and_what_they_called_themselves(tmp_path: Path) -> None:
    """A tool that is answered does not make the calls again that it made."""
    url = "https://api.anthropic.com/v1/messages"
    with Tap(tmp_path / "run.jsonl") as tap:
        begun = tap.record_tool_call("research", {"q": 1})
        tap.recorder().emit(
            "model.request",
            {
                "call": "00000000000000aa",
                "lane": "main",
                "parent": begun,
                "url": url,
                "body": {"messages": QUESTION},
            },
        )
        tap.record_model_response({"content": "inner"}, call="00000000000000aa", status=200)
        tap.record_tool_result("research", {"found": 7}, call=begun)
        failing = tap.record_tool_call("fail", {})
        tap.record_tool_result("fail", error=ValueError("no"), call=failing)
    tape = Tape.load(str(tmp_path / "run.jsonl"))
    research, inner, fail = tape.calls
    assert tape.inside(research) == [inner] and tape.inside(fail) == []
    assert (fail.outcome, fail.answer.error.type, str(fail.answer.error)) == ("exception", "ValueError", "no")
    player = Player(tape)
    assert player.ask(Request.tool("research", {"q": 1})).call.answer.body == {"found": 7}
    assert isinstance(player.ask(Request.tool("fail", {})), Served)
    assert player.report() == []
    live = Player(tape, calls=[call for call in tape.calls if call is not research])
    assert isinstance(live.ask(Request(MODEL, "POST", {"messages": QUESTION}, url=url)), Served)


def test_equal_calls_of_a_tool_are_distinguished_by_the_tool_use_first(tmp_path: Path) -> None:
    """Who calls may differ in a replay: tools that do not run start no threads."""
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        for number in (1, 2):
            call = tap.record_tool_call("burn", {"city": "Porto"}, tool_id=f"use_{number}")
            tap.record_tool_result("burn", number, call=call)
    begun = '"kind": "tool.called", '
    lines = path.read_text().split(begun)
    path.write_text(f'{lines[0]}{begun}"who": "main/a.0", {lines[1]}{begun}"who": "main/b.0", {lines[2]}')
    player = Player(Tape.load(str(path)))
    for tool_id, result in (("use_1", 1), ("use_2", 2)):
        found = player.ask(Request.tool("burn", {"city": "Porto"}, "main/b.0", tool_id))
        assert isinstance(found, Served) and found.call.answer.body == result
    assert player.report() == []


def test_what_is_not_there_is_reported(provider: Provider, tmp_path: Path) -> None:
    tape = recorded(tmp_path, provider.url("long-20"), lambda client: talk(client, 1, stream=True))
    for blob in (tmp_path / "run.blobs").iterdir():
        data = bytearray(blob.read_bytes())
        data[-1] ^= 1
        blob.write_bytes(data)
    assert one(tape).answer.lossy == ("blob-damaged",)
    for blob in (tmp_path / "run.blobs").iterdir():
        blob.unlink()
    assert one(tape).answer.lossy == ("blob-missing",)
    assert [(call.number, why) for call, why in tape.lossy()] == [(0, ("blob-missing",))]
    with Tap(tmp_path / "other.jsonl") as tap:
        by_hand = tap.record_model_request({"model": "m", "stream": True, "messages": QUESTION})
        tap.record_model_response({"content": "x"}, call=by_hand)
        call = tap.record_tool_call("look", {})
        tap.record_tool_result("look", {"key": "sk-ant-api03-" + "Ab3dEf9hIjKl" * 6}, call=call)
        tap.record_tool_result("look", object(), call=tap.record_tool_call("look", {}))
        tap.record_tool_call("look", {})
    reported = [call.answer.lossy for call in Tape.load(str(tmp_path / "other.jsonl")).calls]
    assert reported == [("no-stream",), ("redacted",), ("cut",), ()]


def test_a_stream_the_process_died_in(tmp_path: Path) -> None:
    body = json.dumps({"model": "m", "stream": True, "messages": QUESTION}).encode()
    with Tap(tmp_path / "run.jsonl") as tap:
        exchange = Watch(tap.recorder).begin("POST", "https://api.anthropic.com/v1/messages", [], body)
        exchange.answered(200, [("content-type", "text/event-stream")])
        for number in range(300):
            exchange.chunk(b"event: ping\ndata: {}\n\n: %d\n\n" % number)
        (call,) = Tape.load(str(tmp_path / "run.jsonl")).calls
        answer = call.answer
        assert (call.outcome, call.ends_by_itself, call.has_response) == ("in-flight", False, True)
        exchange.end()
    assert answer.pieces[0][0].startswith(b"event: ping\n") and answer.lossy == ("cut",)


def test_a_killed_run_and_lost_begins(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        for number in range(3):
            call = tap.record_model_request(
                {"model": "m", "messages": [{"role": "user", "content": f"{number}"}]}
            )
            tap.record_model_response({"content": "x"}, call=call, status=200)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0], *lines[2:6]]))  # the first request is lost, the last answer never came
    tape = Tape.load(str(path))
    assert len(tape.unusable) == 1
    assert [(call.outcome, call.end == NEVER) for call in tape.calls] == [("ok", False), ("in-flight", True)]
    assert tape.calls[-1].answer.pieces is None


@pytest.mark.parametrize(
    ("provider", "url", "header"),
    [
        ("anthropic", "https://api.anthropic.com/v1/messages", "request-id"),
        ("anthropic", "https://bedrock-runtime.eu.amazonaws.com/model/m/invoke", "x-amzn-requestid"),
        (
            "gemini",
            "https://generativelanguage.googleapis.com/v1/models/m:generateContent",
            "x-goog-request-id",
        ),
        ("openai", "https://api.openai.com/v1/chat/completions", "x-request-id"),
    ],
)
def test_the_request_id_comes_in_the_header_of_its_provider(
    tmp_path: Path, provider: str, url: str, header: str
) -> None:
    path = str(tmp_path / "run.jsonl")
    request = {"call": "a", "provider": provider, "url": url, "body": {"messages": QUESTION}}
    response = {"call": "a", "provider": provider, "body": {"x": 1}, "status": 200, "request_id": "req-7"}
    write_trace(path, [("model.request", request), ("model.response", response)])
    (call,) = Tape.load(path).calls
    assert call.answer.headers[header] == "req-7"


def test_a_recording_by_older_rules_is_compared_by_those_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "DB_PASS=" + "zz9981-Tr0ub4dor"
    body = {"model": "m", "system": secret, "messages": [{"role": "user", "content": f"it is {secret}"}]}
    with monkeypatch.context() as older:
        older.setattr(Redactor, "policy", "default-1")
        older.setattr(redactor, "scan", lambda data, env: False)
        with Tap(tmp_path / "run.jsonl") as tap:
            tap.record_model_request(body)
            tap.record_model_response({"role": "assistant", "content": "thanks"})
            tap.record_tool_call("connect", {"env": secret})
            tap.record_tool_result("connect", "done", None)
    assert secret in (tmp_path / "run.jsonl").read_text()
    tape = Tape.load(str(tmp_path / "run.jsonl"))
    now = Redactor({})
    model, tool = tape.calls
    assert model.fingerprint.l1 == Request(MODEL, "POST", now.clean(body)).fingerprint.l1
    assert secret not in str(model.request.body) and secret not in str(tool.request.body)
