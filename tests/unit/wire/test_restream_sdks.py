"""Real SDKs read what was written as a stream, from a server on loopback, as they read their provider's."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from reenact.wire import reading
from reenact.wire.streams import stream_of, stream_type

TEXT = "Lisbon has seven hills, \u2028 and 日本語 🦉 too: " + "up and down " * 30
ARGS = {"city": "Lisbon", "days": [1, 2.5, None], "note": 'a "quoted" naïve\n🦉'}
ASK = [{"role": "user", "content": "Plan Lisbon"}]


class Served:
    """A server that answers every request with the stream of one body."""

    def __init__(self) -> None:
        self.body: Any = None
        self.provider = ""
        served = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                self.send_response(200)
                self.send_header("content-type", stream_type(served.provider, self.path))
                self.send_header("connection", "close")
                self.end_headers()
                for piece in stream_of(served.body, served.provider, self.path):
                    self.wfile.write(piece)
                    self.wfile.flush()

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def of(self, provider: str, body: Any) -> str:
        self.provider, self.body = provider, body
        return self.url


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    serving = Served()
    thread = threading.Thread(target=serving.server.serve_forever, args=(0.01,))
    thread.start()
    yield serving
    serving.server.shutdown()
    thread.join()
    serving.server.server_close()


MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
    "content": [
        {"type": "thinking", "thinking": "Hills. " * 20, "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "text", "text": TEXT},
        {"type": "tool_use", "id": "toolu_1", "name": "plan", "input": ARGS},
        {"type": "tool_use", "id": "toolu_2", "name": "stop", "input": {}},
    ],
    "stop_reason": "tool_use", "stop_sequence": None,
    "usage": {"input_tokens": 12, "output_tokens": 34, "cache_read_input_tokens": 5},
}  # fmt: skip


def test_anthropic(served):
    import anthropic

    with anthropic.Anthropic(base_url=served.of("anthropic", MESSAGE), api_key="none") as client:
        with client.messages.stream(model="claude-x", max_tokens=9, messages=ASK) as stream:
            texts = "".join(stream.text_stream)
            found = stream.get_final_message()
    assert texts == TEXT
    assert {key: value for key, value in found.to_dict().items() if key in MESSAGE} == MESSAGE


CALLS = [
    {"id": "c1", "type": "function", "function": {"name": "plan", "arguments": json.dumps(ARGS)}},
    {"id": "c2", "type": "function", "function": {"name": "stop", "arguments": "{}"}},
]
COMPLETION = {
    "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-x",
    "choices": [{
        "index": 0, "finish_reason": "tool_calls", "logprobs": None,
        "message": {"role": "assistant", "content": TEXT, "tool_calls": CALLS},
    }],
    "usage": {"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46},
}  # fmt: skip


def test_openai_chat(served):
    import openai

    with openai.OpenAI(base_url=served.of("openai", COMPLETION), api_key="none") as client:
        with client.chat.completions.stream(
            model="gpt-x", messages=ASK, stream_options={"include_usage": True}
        ) as stream:
            done = [event for event in stream if event.type == "content.done"]
            found = stream.get_final_completion()
    assert [event.content for event in done] == [TEXT]
    (choice,) = found.choices
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", TEXT)
    assert [json.loads(call.function.arguments) for call in choice.message.tool_calls] == [ARGS, {}]
    assert [(call.id, call.function.name) for call in choice.message.tool_calls] == [
        ("c1", "plan"),
        ("c2", "stop"),
    ]
    assert found.usage.total_tokens == 46


RESPONSE = {
    "id": "resp_1", "object": "response", "created_at": 1.0, "model": "gpt-x", "status": "completed",
    "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
    "temperature": 1.0, "top_p": 1.0, "tool_choice": "auto", "tools": [],
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hills."}],
         "encrypted_content": "ZQ=="},
        {"id": "m_1", "type": "message", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": TEXT, "annotations": [], "logprobs": []}]},
        {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "plan", "status": "completed",
         "arguments": json.dumps(ARGS)},
    ],
    "usage": {"input_tokens": 12, "output_tokens": 34, "total_tokens": 46,
              "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 3}},
}  # fmt: skip


def test_openai_responses(served):
    import openai

    with openai.OpenAI(base_url=served.of("openai-responses", RESPONSE), api_key="none") as client:
        with client.responses.stream(model="gpt-x", input="Plan Lisbon") as stream:
            texts = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
            found = stream.get_final_response()
    assert texts == found.output_text == TEXT
    assert json.loads(found.output[2].arguments) == ARGS
    assert (found.status, found.usage.total_tokens) == ("completed", 46)


CONTENT = {
    "candidates": [{
        "content": {"role": "model", "parts": [
            {"text": "Hills.", "thought": True},
            {"text": TEXT},
            {"functionCall": {"name": "plan", "args": ARGS}, "thoughtSignature": "c2ln"},
        ]},
        "finishReason": "STOP", "index": 0,
    }],
    "usageMetadata": {"promptTokenCount": 12, "candidatesTokenCount": 34, "totalTokenCount": 46},
    "modelVersion": "gemini-x", "responseId": "r1",
}  # fmt: skip


def test_google_genai(served):
    from google import genai

    options = {"base_url": served.of("gemini", CONTENT)}
    with genai.Client(api_key="none", http_options=options) as client:
        chunks = list(client.models.generate_content_stream(model="gemini-x", contents="Plan Lisbon"))
    parts = [
        part for chunk in chunks for part in (chunk.candidates[0].content.parts or []) if chunk.candidates
    ]
    assert "".join(part.text for part in parts if part.text and not part.thought) == TEXT
    assert [part.function_call.args for part in parts if part.function_call] == [ARGS]
    assert [part.thought_signature for part in parts if part.thought_signature] == [b"sig"]
    assert chunks[-1].candidates[0].finish_reason == "STOP"
    assert chunks[-1].usage_metadata.total_token_count == 46


CONVERSED = {
    "output": {"message": {"role": "assistant", "content": [
        {"reasoningContent": {"reasoningText": {"text": "Hills.", "signature": "c2ln"}}},
        {"text": TEXT},
        {"toolUse": {"toolUseId": "t1", "name": "plan", "input": ARGS}},
    ]}},
    "stopReason": "tool_use",
    "usage": {"inputTokens": 12, "outputTokens": 34, "totalTokens": 46},
    "metrics": {"latencyMs": 7},
}  # fmt: skip


@pytest.fixture(scope="module")
def bedrock(served):
    import boto3

    keys = {"aws_access_key_id": "AKIANONE", "aws_secret_access_key": "none", "region_name": "us-east-1"}
    client = boto3.Session(**keys).client("bedrock-runtime", endpoint_url=served.url)
    yield client
    client.close()


def test_boto3_converse(served, bedrock):
    served.of("bedrock", CONVERSED)
    messages = [{"role": "user", "content": [{"text": "Plan Lisbon"}]}]
    events = list(bedrock.converse_stream(modelId="m.claude-v1:0", messages=messages)["stream"])
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    assert "".join(delta.get("text", "") for delta in deltas) == TEXT
    text = "".join(delta["toolUse"]["input"] for delta in deltas if "toolUse" in delta)
    assert json.loads(text) == ARGS
    [start] = [event["contentBlockStart"] for event in events if "contentBlockStart" in event]
    assert start["start"]["toolUse"] == {"toolUseId": "t1", "name": "plan"}
    assert {"stopReason": "tool_use"} in [event.get("messageStop") for event in events]
    assert events[-1]["metadata"]["usage"]["totalTokens"] == 46


def test_boto3_invoke(served, bedrock):
    served.of("anthropic", MESSAGE)
    answer = bedrock.invoke_model_with_response_stream(modelId="m.claude-v1:0", body=b"{}")
    events = [json.loads(event["chunk"]["bytes"]) for event in answer["body"]]
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == TEXT
    assert events[-1] == {"type": "message_stop"}


def test_ollama(served):
    import ollama

    message = {"role": "assistant", "content": TEXT, "thinking": "Hills."}
    calls = [{"function": {"name": "plan", "arguments": ARGS}}]
    body = {
        "model": "llama", "created_at": "2026-01-02T03:04:05Z", "done": True, "done_reason": "stop",
        "message": {**message, "tool_calls": calls}, "prompt_eval_count": 12, "eval_count": 34,
    }  # fmt: skip
    client = ollama.Client(served.of("ollama", body))
    chunks = list(client.chat("llama", ASK, stream=True))
    assert "".join(chunk.message.content for chunk in chunks) == TEXT
    assert "".join(chunk.message.thinking or "" for chunk in chunks) == "Hills."
    [used] = [call for chunk in chunks for call in chunk.message.tool_calls or ()]
    assert (used.function.name, dict(used.function.arguments)) == ("plan", ARGS)
    assert (chunks[-1].done, chunks[-1].done_reason, chunks[-1].eval_count) == (True, "stop", 34)


def test_mistral(served):
    from mistralai.client import Mistral

    with Mistral(api_key="none", server_url=served.of("openai", COMPLETION)) as client:
        with client.chat.stream(model="mistral-x", messages=ASK) as stream:
            chunks = [event.data for event in stream]
    printed = [choice.delta for chunk in chunks for choice in chunk.choices]
    assert "".join(delta.content for delta in printed if isinstance(delta.content, str)) == TEXT
    assert chunks[-1].usage.total_tokens == 46


def test_cohere(served):
    import cohere

    body = {
        "id": "chat-1", "finish_reason": "TOOL_CALL",
        "message": {"role": "assistant", "tool_plan": TEXT, "tool_calls": CALLS},
        "usage": {"tokens": {"input_tokens": 12, "output_tokens": 34}},
    }  # fmt: skip
    client = cohere.ClientV2(api_key="none", base_url=served.of("cohere", body))
    events = list(client.chat_stream(model="command-x", messages=ASK))
    plan = [event.delta.message.tool_plan for event in events if event.type == "tool-plan-delta"]
    assert "".join(plan) == TEXT
    pieces = [
        event.delta.message.tool_calls.function.arguments
        for event in events
        if event.type == "tool-call-delta" and event.index == 0
    ]
    assert json.loads("".join(pieces)) == ARGS
    assert events[-1].delta.finish_reason == "TOOL_CALL"


def test_every_body_here_is_read_as_the_dialect_it_is():
    bodies = (MESSAGE, COMPLETION, RESPONSE, CONTENT, CONVERSED)
    assert [reading.provider_of_answer(body) for body in bodies] == [
        "anthropic", "openai", "openai-responses", "gemini", "bedrock",
    ]  # fmt: skip
