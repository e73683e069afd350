"""reenact demo --serve: the SDKs of Anthropic and OpenAI work against it, without a key."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess

import anthropic
import openai
import pytest

from support.typed import COMMAND, environment, typed

QUESTION = {"role": "user", "content": "Which city has seven hills?"}
FIELDS = {"type": "object", "properties": {"question": {"type": "string"}}}
HILLS = ["How high is hill 1?", "How high is hill 2?"]
ANSWER = "Lisbon has seven hills."


@contextlib.contextmanager
def serving(*words):
    """Start the command and yield its process with the lines it prints first."""
    child = subprocess.Popen(
        [COMMAND, "demo", "--serve", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    try:
        assert child.stdout is not None
        yield child, [child.stdout.readline().rstrip("\n") for _ in range(1 if "--json" in words else 4)]
    finally:
        child.kill()
        child.communicate(timeout=60)


@pytest.fixture(scope="module")
def exported():
    """The variables a reader would export."""
    with serving() as (_, lines):
        yield dict(line.removeprefix("export ").split("=", 1) for line in lines)


@pytest.fixture(autouse=True)
def pasted(exported, monkeypatch):
    for name, value in exported.items():
        monkeypatch.setenv(name, value)


def anthropic_answer(stream, messages, **more):
    tools = [{"name": "lookup", "input_schema": FIELDS}]
    request = {"model": "claude-sonnet-4-6", "max_tokens": 500, "messages": messages, "tools": tools, **more}
    with anthropic.Anthropic() as client:
        if not stream:
            return client.messages.create(**request)
        with client.messages.stream(**request) as events:
            return events.get_final_message()


@pytest.mark.parametrize("stream", [False, True])
def test_anthropics_sdk_gets_two_tool_calls_and_an_answer(stream):
    messages, questions = [QUESTION], []
    while True:
        answer = anthropic_answer(stream, messages)
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            break
        questions += [use.input["question"] for use in uses]
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": "75 m"} for use in uses]
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    assert questions == HILLS and answer.content[0].text == ANSWER
    assert (answer.model, answer.stop_reason) == ("claude-sonnet-4-6", "end_turn")
    assert answer.usage.input_tokens > 0 and answer.usage.output_tokens > 1


@pytest.mark.parametrize("stream", [False, True])
def test_openais_sdk_gets_two_tool_calls_and_an_answer(stream):
    tools = [{"type": "function", "function": {"name": "lookup", "parameters": FIELDS}}]
    messages, questions = [QUESTION], []
    while True:
        request = {"model": "gpt-5-mini", "messages": messages, "tools": tools}
        with openai.OpenAI() as client:
            if stream:
                with client.chat.completions.stream(
                    **request, stream_options={"include_usage": True}
                ) as events:
                    answer = events.get_final_completion()
            else:
                answer = client.chat.completions.create(**request)
        message = answer.choices[0].message
        if not message.tool_calls:
            break
        questions += [json.loads(call.function.arguments)["question"] for call in message.tool_calls]
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": "75 m"} for call in message.tool_calls
        ]
        messages += [message, *results]
    assert questions == HILLS and message.content == ANSWER
    assert answer.choices[0].finish_reason == "stop" and answer.usage.total_tokens > 0


def test_the_answer_follows_the_tools_and_the_system_prompt():
    assert anthropic_answer(False, [QUESTION], tools=[]).content[0].text == ANSWER
    assert anthropic_answer(False, [QUESTION], system="Answer at once.").content[0].text == ANSWER
    assert anthropic_answer(False, [QUESTION], system="Be brief.").stop_reason == "tool_use"


def test_an_endpoint_it_does_not_serve_is_named():
    with (
        openai.OpenAI(max_retries=0) as client,
        pytest.raises(openai.NotFoundError, match="/v1/messages and"),
    ):
        client.embeddings.create(model="m", input="x")


def test_ctrl_c_ends_it_and_frees_its_port():
    with serving() as (child, lines):
        port = int(lines[0].rpartition(":")[2])
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out) == (0, "") and "Traceback" not in err
        assert "not a real one" in err and "until Ctrl-C" in err
        assert err.splitlines()[0].endswith(
            f" http://127.0.0.1:{port}"
        )  # nothing behind it: terminals make it a link
    with serving("--port", str(port), "--json") as (_, lines):
        assert json.loads(lines[0])["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:{port}"


def test_a_taken_port_is_a_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, out, err = typed("demo", "--serve", "--port", port)
    assert (code, out) == (2, "") and f"cannot serve on port {port}" in err and "leave out --port" in err


@pytest.mark.parametrize(
    "words", [["--port", "80000"], ["--serve", "--port", "x"], ["--port", "1"], ["--serve", "--keep", "runs"]]
)
def test_wrong_options_are_refused(words, tmp_path):
    code, out, err = typed("demo", *words, cwd=tmp_path)
    assert (code, out) == (2, "") and err
    assert not list(tmp_path.iterdir())
