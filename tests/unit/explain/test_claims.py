"""Claims of an answer and their sources: from the wire of real SDKs, from the agent, and from neither."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import anthropic
import openai
import pytest
from google import genai

import reenact
from reenact import Citation, CitationStore, Debugger, Tap, UsageError
from reenact.capture.front.citations import InMemorySink, JsonlSink, attribute, unique_marker_ids, validate
from reenact.explain.claims import ALL, CANNOT_TELL, CITED, NONE, NOT_FOUND, SOME, SUPPORTED, UNSUPPORTED
from reenact.wire.claims import markers, sentences
from support.runs_to_debug import answer, request, user
from support.sample_runs import SAMPLES, present
from support.typed import typed

GUIDE = "The city of Lisbon was built on seven hills. Its trams have run since 1873."
SEVEN = {
    "type": "char_location", "cited_text": "Lisbon was built on seven hills.", "document_index": 0,
    "document_title": "Guide", "start_char_index": 12, "end_char_index": 44, "file_id": None,
}  # fmt: skip
WEB = {"title": "Trams", "url": "https://trams.example/history"}


def sse(*events):
    return "".join(f"event: {each.get('type', '')}\ndata: {json.dumps(each)}\n\n" for each in events).encode()


def anthropic_body():
    blocks = [
        {"type": "text", "text": "Lisbon has "},
        {"type": "text", "text": "seven hills.", "citations": [SEVEN]},
        {"type": "text", "text": " It is always sunny there."},
    ]
    return answer("") | {"id": "msg_1", "content": blocks}


def anthropic_stream():
    body = anthropic_body()
    events = [{"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}]
    for index, block in enumerate(body["content"]):
        start = {"type": "text", "text": "", **({"citations": []} if "citations" in block else {})}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        deltas = [{"type": "citations_delta", "citation": each} for each in block.get("citations", ())]
        for delta in [*deltas, {"type": "text_delta", "text": block["text"]}]:
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
    return sse(*events, end, {"type": "message_stop"})


CHAT_TEXT = "Trams run since 1873 (trams.example). It is always sunny there."
CHAT_NOTE = {"type": "url_citation", "url_citation": {"start_index": 21, "end_index": 36, **WEB}}


def chat_body():
    message = {"role": "assistant", "content": CHAT_TEXT, "annotations": [CHAT_NOTE]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


def chat_stream():
    def chunk(delta, end=None):
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        return {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }

    pieces = [
        {"role": "assistant", "content": CHAT_TEXT[:30]},
        {"content": CHAT_TEXT[30:]},
        {"annotations": [CHAT_NOTE]},
    ]
    lines = [f"data: {json.dumps(chunk(piece))}\n\n" for piece in pieces]
    return "".join([*lines, f"data: {json.dumps(chunk({}, 'stop'))}\n\n", "data: [DONE]\n\n"]).encode()


def responses_body():
    note = {"type": "url_citation", "start_index": 21, "end_index": 36, **WEB}
    file = {"type": "file_citation", "index": len(CHAT_TEXT), "file_id": "file-1", "filename": "sun.pdf"}
    part = {"type": "output_text", "text": CHAT_TEXT, "annotations": [note, file], "logprobs": []}
    item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": "r1", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": [item],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


def responses_stream():
    body = responses_body()
    (item,) = body["output"]
    (part,) = item["content"]
    at = {"item_id": "m1", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": {**body, "output": [], "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**part, "text": "", "annotations": []}},
        {"type": "response.output_text.delta", **at, "delta": CHAT_TEXT, "logprobs": []},
        *(
            {"type": "response.output_text.annotation.added", **at, "annotation_index": n, "annotation": each}
            for n, each in enumerate(part["annotations"])
        ),
        {"type": "response.output_text.done", **at, "text": CHAT_TEXT, "logprobs": []},
        {"type": "response.completed", "response": body},
    ]
    return sse(*({**event, "sequence_number": n} for n, event in enumerate(events)))


def gemini_body():
    text = "São Paulo é grande. Trams run since 1873. It is sunny there."
    begin = len("São Paulo é grande. ".encode())
    support = {
        "segment": {"startIndex": begin, "endIndex": begin + 21, "text": "Trams run since 1873."},
        "groundingChunkIndices": [0], "confidenceScores": [0.9],
    }  # fmt: skip
    metadata = {
        "groundingChunks": [{"web": {"uri": WEB["url"], "title": WEB["title"]}}],
        "groundingSupports": [support],
    }
    content = {"role": "model", "parts": [{"text": text}]}
    return {"candidates": [{"content": content, "finishReason": "STOP", "groundingMetadata": metadata}]}


def gemini_stream():
    whole = gemini_body()["candidates"][0]
    text = whole["content"]["parts"][0]["text"]
    first = {"candidates": [{"content": {"role": "model", "parts": [{"text": text[:25]}]}}]}
    last = {"candidates": [{**whole, "content": {"role": "model", "parts": [{"text": text[25:]}]}}]}
    return "".join(f"data: {json.dumps(each)}\r\n\r\n" for each in (first, last)).encode()


@pytest.fixture
def serve():
    """A server on loopback that answers every request with the same body."""
    servers = []

    def start(body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = "text/event-stream" if isinstance(body, bytes) else "application/json"

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"] or 0))
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ask_anthropic(tap, url, stream):
    client = tap.wrap(anthropic.Anthropic(base_url=url, api_key="none"))
    document = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": GUIDE},
                "title": "Guide", "citations": {"enabled": True}}  # fmt: skip
    content = [document, {"type": "text", "text": "How many hills?"}]
    messages = [{"role": "user", "content": content}]
    if stream:
        with client.messages.stream(model="m", max_tokens=9, messages=messages) as events:
            events.until_done()
    else:
        client.messages.create(model="m", max_tokens=9, messages=messages)


def ask_chat(tap, url, stream):
    client = tap.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="none"))
    messages = [{"role": "user", "content": "Since when are there trams?"}]
    got = client.chat.completions.create(model="m", messages=messages, stream=stream)
    for _ in got if stream else ():
        pass


def ask_responses(tap, url, stream):
    client = tap.wrap(openai.OpenAI(base_url=f"{url}/v1", api_key="none"))
    got = client.responses.create(model="m", input="Since when are there trams?", stream=stream)
    for _ in got if stream else ():
        pass


def ask_gemini(tap, url, stream):
    client = tap.wrap(genai.Client(api_key="none", http_options={"base_url": url}))
    if stream:
        for _ in client.models.generate_content_stream(model="m", contents="Trams?"):
            pass
    else:
        client.models.generate_content(model="m", contents="Trams?")


WIRE = {
    "anthropic": (ask_anthropic, anthropic_body, anthropic_stream, ["Lisbon has seven hills."], SUPPORTED),
    "openai-chat": (ask_chat, chat_body, chat_stream, ["Trams run since 1873 (trams.example)."], CITED),
    "openai-responses": (
        ask_responses, responses_body, responses_stream,
        ["Trams run since 1873 (trams.example).", "It is always sunny there."], CITED,
    ),
    "gemini": (ask_gemini, gemini_body, gemini_stream, ["Trams run since 1873."], CITED),
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("name", WIRE)
def test_citations_of_the_provider_are_read_from_the_wire(tmp_path, serve, name, stream):
    ask, body, streamed, cited, state = WIRE[name]
    tap = Tap(tmp_path / "t.jsonl")
    ask(tap, serve(streamed() if stream else body()), stream)
    tap.close()
    found = Debugger.load(tmp_path / "t.jsonl").claims()
    assert [claim.text for claim in found.claims if claim.is_covered] == cited
    assert {claim.state for claim in found.claims if claim.is_covered} == {state}
    assert found.verdict == (ALL if len(cited) == len(found.claims) else SOME)
    support = next(claim.supports[0] for claim in found.claims if claim.supports)
    assert support.by == "provider"
    if name == "anthropic":
        assert (support.event.step, support.text, support.title) == (2, SEVEN["cited_text"], "Guide")
    else:
        assert support.source == WEB["url"]


def record(path, text, *, cited=True, content="full"):
    with reenact.run("guide", path=path, content=content) as run:
        tap = Tap()
        use = answer("", ("t1", "look", {"q": "hills"}))
        tap.record_model_response(use, call=tap.record_model_request(request(user("Hills?")), "anthropic"))
        tool = tap.record_tool_call("look", {"q": "hills"})
        tap.record_tool_result("look", GUIDE, call=tool)
        result = {"type": "tool_result", "tool_use_id": "t1", "content": GUIDE}
        messages = [
            user("Hills?"),
            {"role": "assistant", "content": use["content"]},
            {"role": "user", "content": [result]},
        ]
        tap.record_model_response(
            answer(text), call=tap.record_model_request(request(*messages), "anthropic")
        )
        if cited:
            run.cite("Lisbon has seven hills.", tool, quote="built on seven hills")
            tap.cite("Trams run since 1873.", "https://trams.example")
    return Debugger.load(path)


def test_what_the_agent_cites_is_an_event_of_the_answer(tmp_path):
    text = "Lisbon has seven hills. Trams run since 1873. It is nice in [2024]. The array a[0] is empty."
    dbg = record(tmp_path / "t.jsonl", text)
    found = dbg.claims()
    assert [claim.state for claim in found.claims] == [SUPPORTED, CITED, UNSUPPORTED, UNSUPPORTED]
    (support,) = found.claims[0].supports
    assert (support.by, support.event.step, support.path, support.text) == (
        "agent",
        5,
        "result",
        "built on seven hills",
    )
    begin, end = support.span
    assert GUIDE[begin:end] == support.text
    assert (found.coverage, found.verified, found.verdict) == (0.5, 0.25, SOME)
    cited = dbg.where(event_type="citation")
    assert [event.call for event in cited] == [found.event.call] * 2
    assert dbg.recording.index.turn_of(cited[0]).number == 2


def test_an_answer_without_citations_is_not_clean(tmp_path):
    found = record(tmp_path / "t.jsonl", "Lisbon has seven hills, see a[0] and [2024].", cited=False).claims()
    assert (found.verdict, found.coverage, found.citations) == (NONE, 0.0, 0)
    done = typed("why", tmp_path / "t.jsonl", "--claims")
    assert done.code == 1 and "no citations: 0 of 1 claim with a source (0%)" in done.out


def test_a_quote_that_nobody_sent_is_reported(tmp_path):
    dbg = record(tmp_path / "t.jsonl", "Lisbon has seven hills.", cited=False)
    with Tap(tmp_path / "q.jsonl") as tap:
        call = tap.record_model_request(request(user("Hills?")), "anthropic")
        block = {"type": "text", "text": "Lisbon has nine hills.", "citations": [SEVEN]}
        tap.record_model_response(answer("") | {"content": [block]}, call=call)
    found = Debugger.load(tmp_path / "q.jsonl").claims()
    assert found.claims[0].state == NOT_FOUND and found.coverage == 0
    assert dbg.claims(2).claims == ()  # the first answer only calls a tool


def test_withheld_sources_cannot_be_told(tmp_path):
    with Tap(tmp_path / "t.jsonl") as tap:
        with reenact.private():
            call = tap.record_model_request(request(user(GUIDE)), "anthropic")
        block = {"type": "text", "text": "Lisbon has seven hills.", "citations": [SEVEN]}
        tap.record_model_response(answer("") | {"content": [block]}, call=call)
    assert Debugger.load(tmp_path / "t.jsonl").claims().claims[0].state == CANNOT_TELL


def test_the_store_writes_to_the_run_and_to_its_sink(tmp_path):
    text = "Lisbon has seven hills [1]. Trams run since 1873 [2, 1]."
    store = CitationStore(JsonlSink(tmp_path / "c.jsonl"))
    with reenact.run("guide", path=tmp_path / "t.jsonl"):
        tap = Tap()
        tap.record_model_response(
            answer(text), call=tap.record_model_request(request(user("?")), "anthropic")
        )
        store.attach("turn-1", text, (Citation(n, f"doc-{n}.pdf", span=(1, 9), page=2) for n in "12"))
    found = Debugger.load(tmp_path / "t.jsonl").claims()
    assert [{each.source for each in claim.supports} for claim in found.claims] == [
        {"doc-1.pdf"}, {"doc-1.pdf", "doc-2.pdf"},
    ]  # fmt: skip
    assert found.verdict == ALL and found.verified == 0
    with open(tmp_path / "c.jsonl", "a") as file:
        file.write('{"turn_id": "torn')
    assert [record["turn_id"] for record in store.export()] == ["turn-1"]
    assert "turn-1: 100% of 2 claims cited" in store.render_text_summary()
    assert JsonlSink(tmp_path / "none.jsonl").read_all() == []


def test_citations_are_checked_hashable_and_round_trip():
    one = Citation("1", "a.pdf", span=(1, 2), confidence=0.5, metadata={"k": 1})
    assert Citation.from_dict(json.loads(json.dumps(one.to_dict()))) == one and len({one, one}) == 1
    for wrong in (
        {"id": " ", "source_uri": "a"},
        {"id": "1", "source_uri": ""},
        {"id": "1", "source_uri": "a", "confidence": 2},
    ):
        with pytest.raises(UsageError):
            Citation(**wrong)
    store = CitationStore(sink := InMemorySink())
    assert store.sink is sink


def test_validation_counts_claims_and_ids():
    report = validate(
        "Lisbon has hills [1]. It is sunny there. Trams run daily [7].",
        [Citation("1", "a"), Citation("1", "b")],
    )
    assert report.facts_with_citations == ("Lisbon has hills [1].",) and report.coverage_ratio == 1 / 3
    assert (report.dangling_citation_ids, report.duplicate_citation_ids) == (("7",), ("1",))
    assert not report.is_clean and "unknown id: 7" in report.as_markdown()
    assert validate("Lisbon has hills [1].", [Citation("1", "a")]).is_clean
    assert not validate("Lisbon has seven hills.", []).is_clean
    assert not validate("", []).is_clean


def test_markers_and_sentences():
    assert unique_marker_ids("x [1], a[0], [2024], [1, 3], [link](u), f(x)[2], [^4], [b]") == ["1", "3", "4"]
    assert [each.id for each in attribute("see [b] and [2024]", {"b", "2024"})] == ["b", "2024"]
    text = "Dr. Silva paid 4.50 EUR on 3 May. Is it true?\n- A list item here\n```\ncode is no claim at all\n```\nThe end is near. [1] Next one comes now."
    found = [each.text for each in sentences(text)]
    assert found == [
        "Dr. Silva paid 4.50 EUR on 3 May.", "Is it true?", "- A list item here", "The end is near. [1]",
        "Next one comes now.",
    ]  # fmt: skip
    assert all(text[each.begin : each.end] == each.text for each in sentences(text))
    assert markers("") == [] and sentences("") == []


def test_a_recorder_that_fails_leaves_the_agent_alone(tmp_path, capsys):
    tap = Tap(tmp_path / "t.jsonl")
    tap.close()
    tap.cite("a claim", object(), quote=object(), other=1)
    with reenact.run("x", path=tmp_path / "u.jsonl") as run:
        run.cite(None, object())
        run.cite("claim", {"url": "https://a.example"}, page=3, section="two")
    event = Debugger.load(tmp_path / "u.jsonl").last(event_type="citation")
    assert event.metadata == {"section": "two"} and event.page == 3


def test_the_claims_as_json_and_unusable_input(tmp_path):
    record(tmp_path / "t.jsonl", "Lisbon has seven hills. It is \x1b[31msunny there always.")
    done = typed("why", tmp_path / "t.jsonl", "--claims", COLUMNS="80")
    assert done.code == 1 and "✓ supported    Lisbon has seven hills." in done.out and "\x1b" not in done.out
    (row,) = typed("why", tmp_path / "t.jsonl", "--claims", "--json").rows
    assert (row["verdict"], row["coverage"]) == (SOME, 0.5)
    assert row["claims"][0]["supports"][0]["event"] == "5"
    Tap(tmp_path / "e.jsonl").close()
    for words in (
        ["e.jsonl", "--claims"],
        ["t.jsonl", "99", "--claims"],
        ["t.jsonl", "--claims", "--uses", "2"],
    ):
        done = typed("why", *words, cwd=tmp_path)
        assert done.code == 2 and done.out == "" and done.err


@present
def test_annotations_of_recorded_traffic_of_others():
    """A file search of OpenAI's Responses, plain and streamed, as recorded by somebody else."""
    from reenact.wire import reading
    from reenact.wire.streams import assemble

    found = 0
    for path in sorted((SAMPLES / "wire" / "openai-responses").glob("openai-file-search-tool.*.json")):
        body = json.loads(path.read_text())
        cited = reading.citations(body)
        text = reading.answer_text(body)
        assert all(0 <= each.begin <= each.end <= len(text) and each.source for each in cited)
        found += len(cited)
        chunks = path.with_name(path.name.replace(".json", ".chunks.txt"))
        if chunks.exists():
            lines = [line for line in chunks.read_text().splitlines() if line.strip()]
            data = "".join(f"data: {line}\n\n" for line in lines).encode()
            streamed = assemble(data, "openai-responses").body
            assert reading.citations(streamed) and all(each.source for each in reading.citations(streamed))
    assert found
