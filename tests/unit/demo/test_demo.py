"""The demo's agent and scripted model: the failure is real, and its cause stands in the trace before it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from reenact.demo.model_server import MODEL, answer_to, scripted_model
from reenact.wire import reading


def run_python(arguments, folder):
    """Run Python with traces going to ``folder``, behind a proxy that does not exist."""
    nowhere = "http://127.0.0.1:9"
    env = {
        **os.environ,
        "REENACT_DIR": str(folder),
        "http_proxy": nowhere,
        "HTTP_PROXY": nowhere,
        "no_proxy": "",
    }
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, timeout=60)


def events_in(folder):
    (path,) = folder.glob("*.jsonl")
    return [json.loads(line) for line in path.read_text("ascii").splitlines()]


def post(url, data):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, data=data), timeout=10) as response:
        return json.load(response), response.headers


@pytest.fixture(scope="module")
def failed_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    with scripted_model() as base_url:
        done = run_python(["-m", "reenact.demo.agent", "--base-url", base_url], folder)
    return done, events_in(folder)


def test_the_agent_dies_with_its_own_exception(failed_run):
    done, _ = failed_run
    assert done.returncode == 1
    assert "OverBudget: lisboa-plaza: 426 EUR for 3 nights, but the budget is 400 EUR" in done.stderr


def test_the_trace_holds_three_turns_and_four_tool_calls(failed_run):
    _, events = failed_run
    kinds = [event["kind"] for event in events]
    turn = ["model.request", "model.response"]
    tool = ["tool.called", "tool.result"]
    assert [
        kind for kind in kinds if kind.startswith(("model.", "tool."))
    ] == turn + tool + turn + tool * 2 + turn + tool
    assert kinds[0] == "run.start" and kinds[-1] == "run.end"


def test_the_failure_is_the_last_call_and_its_cause_an_earlier_result(failed_run):
    _, events = failed_run
    results = [event for event in events if event["kind"] == "tool.result"]
    assert [event["tool"] for event in results] == ["search_hotels", "get_price", "get_price", "book"]
    assert [bool(event["error"]) for event in results] == [False, False, False, True]
    assert results[-1]["error"]["type"].endswith("OverBudget")
    assert [event["result"]["per_night"] for event in results[1:3]] == [8900, 142]


def test_the_run_ends_as_a_failed_one_with_name_input_and_metadata(failed_run):
    _, events = failed_run
    assert events[0]["name"] == "trip-planner"
    assert "Lisbon" in events[0]["input"]["task"]
    assert events[0]["meta"]["environment"] == "demo"
    assert events[-1]["status"] == "error"
    assert events[-1]["tot"]["turns"] == 3


def test_tool_calls_carry_the_ids_of_the_scripted_answers(failed_run):
    _, events = failed_run
    tool_ids = [
        use[0]
        for event in events
        if event["kind"] == "model.response"
        for use in reading.tool_uses(event["body"])
    ]
    assert [event["tool_id"] for event in events if event["kind"] == "tool.called"] == tool_ids


def test_with_the_price_in_euros_the_same_agent_books_a_room(tmp_path):
    code = "import sys; from reenact.demo import agent; agent.PRICE_FEED['casa-do-tejo'] = 89; agent.main(sys.argv[1:])"
    with scripted_model() as base_url:
        done = run_python(["-c", code, "--base-url", base_url], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Your room at casa-do-tejo is booked: 267 EUR for 3 nights.\n"
    assert events_in(tmp_path)[-1]["status"] == "ok"


def test_importing_the_agent_writes_nothing(tmp_path):
    done = run_python(["-c", "import reenact.demo.agent"], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


def test_every_scripted_answer_says_that_it_is_scripted_and_has_the_providers_shape():
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Lisbon"}]}
    with scripted_model() as base_url:
        answer, headers = post(f"{base_url}/v1/messages", json.dumps(body).encode())
    assert answer == answer_to(body)
    assert headers["x-scripted"] == "true"
    assert "scripted" in answer["model"] and "scripted" in answer["id"]
    assert reading.provider_of_response(answer) == "anthropic"
    assert set(reading.usage(answer)) == {"input", "output"}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"messages": [1]}', b"\xff"])
def test_a_request_the_script_cannot_read_gets_an_error_body(data):
    with scripted_model() as base_url, pytest.raises(urllib.error.HTTPError) as caught:
        post(f"{base_url}/v1/messages", data)
    with caught.value as response:
        assert response.code == 400
        assert reading.error_of(json.load(response))[0] == "invalid_request_error"
