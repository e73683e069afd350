"""replay() of what is not whole: lost bases, missing and withheld texts, torn and foreign files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from reenact import Tap, Trace, private, replay
from reenact.errors import NewerSchema, NoSuchEvent, NotATrace, TraceFileError
from support.spoken import LONG, SHAPES, codes, record

CORPUS = Path(__file__).parents[2] / "corpus"


@pytest.mark.parametrize("path", sorted(CORPUS.rglob("*.jsonl")), ids=lambda path: path.stem)
def test_every_file_of_the_corpus_gives_a_list_or_a_sentence(path: Path) -> None:
    for which in ({}, {"n": 1}, {"n": 3}, {"turn": 1}, {"prompt": "?"}):
        try:
            got = replay(path, **which)
        except (NotATrace, NewerSchema, NoSuchEvent) as why:
            assert str(why) and ("turn" in which or path.parent.name == "foreign" or "newer" in path.name)
        else:
            assert "$gap" not in json.dumps(got) and (got or got.findings)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceFileError, match="does not exist"):
        replay(tmp_path / "none.jsonl")


def test_a_message_with_a_gap_cannot_be_sent(tmp_path: Path) -> None:
    path = record(tmp_path / "run.jsonl", "openai")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"step": 2,' not in line))  # the first request
    assert codes(replay(path, turn=1))[-1] == "no-request", "of its answer only"
    got = replay(path, turn=2)
    assert (list(got), {"base-lost", "lost"} <= set(codes(got))) == ([], True)
    assert got.params == {} and "model" in got.findings[-1].message
    with pytest.raises(TraceFileError):
        replay(path, strict=True)


def test_what_is_recorded_before_a_gap_is_returned(tmp_path: Path) -> None:
    path = record(tmp_path / "run.jsonl", "openai")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"step": 3,' not in line))  # the first answer
    got = replay(path, turn=2)
    assert (list(got), {"reference-lost", "lost"} <= set(codes(got))) == ([SHAPES["openai"].user], True)


def test_a_missing_blob_is_a_hole_and_another_folder_mends_it(tmp_path: Path) -> None:
    path = record(tmp_path / "run.jsonl", "anthropic")
    shutil.move(tmp_path / "run.blobs", tmp_path / "elsewhere")
    got = replay(path)
    assert (len(got), {"blob-missing", "lost"} <= set(codes(got))) == (1, True)
    assert LONG[:20] not in json.dumps(got), "a head is not what was sent"
    whole = replay(path, blobs=str(tmp_path / "elsewhere"))
    assert (len(whole), codes(whole)) == (4, [])


def test_a_result_without_its_blob_cannot_be_made_up(tmp_path: Path) -> None:
    path = record(tmp_path / "run.jsonl", "anthropic", upto=4)
    shutil.rmtree(tmp_path / "run.blobs")
    got = replay(path)
    assert (len(got), {"lost", "cut"} <= set(codes(got))) == (1, True)


@pytest.mark.parametrize("content", ["hash", "none"])
def test_withheld_content_is_a_hole(content: str, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path, content=content) as tap:
        tap.record_model_request(
            {"model": "m", "system": "secret", "messages": [{"role": "user", "content": "?"}]}, "anthropic"
        )
        tap.record_model_response({"role": "assistant", "content": [{"type": "text", "text": "yes"}]})
    got = replay(path)
    assert (list(got), codes(got)) == ([], ["lost", "lost"])
    assert "withheld" in got.findings[0].message and got.params == {"model": "m"}


def test_a_private_result_is_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    use = {"id": "c1", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    with Trace(path) as trace:
        trace.step("llm_call", content={"role": "assistant", "content": None, "tool_calls": [use]})
        trace.step("tool_call", name="t", args={})
        with private():
            trace.step("tool_result", id="c1", output="the patient is Maria")
    got = replay(path, prompt="?")
    assert (len(got), {"lost", "cut"} <= set(codes(got))) == (1, True)


def test_placeholders_for_secrets_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    secret = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2nOp5q" * 4 + "-AA"
    with Tap(path) as tap:
        tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": f"key {secret}"}]})
        tap.record_model_response({"choices": [{"message": {"role": "assistant", "content": secret}}]})
    got = replay(path)
    assert "<redacted:" in got[0]["content"] and codes(got) == ["redacted"]
    assert "in 2 of the texts" in got.findings[0].message


def test_a_users_own_dollar_keys_are_no_marks(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    args = {"$blob": "mine", "$gap": 3, "$ref": "#/x"}
    message = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "q", "input": args}]}
    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]}
    messages = [{"role": "user", "content": "?"}, message, result]
    tools = [{"name": "q", "input_schema": {"type": "object", "$schema": "s", "$defs": {"$x": {}}}}]
    with Tap(path) as tap:
        tap.record_model_request({"model": "m", "max_tokens": 1, "tools": tools, "messages": messages})
    got = replay(path, strict=True)
    assert (list(got), got.tools, codes(got)) == (messages, tools, [])


def test_bytes_are_returned_as_the_agent_had_them(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG\x00"}}}
    with Tap(path) as tap:
        tap.record_model_request({"modelId": "nova", "messages": [{"role": "user", "content": [image]}]})
    assert list(replay(path)) == [{"role": "user", "content": [image]}]


def test_objects_that_are_no_json_are_a_hole(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        odd: Any = object()
        tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "?"}, odd]})
    got = replay(path)
    assert (len(got), codes(got)) == (1, ["lost"])


def test_a_run_without_a_model_call_and_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path) as trace:
        trace.step("note", a=1)
    assert (list(replay(path)), codes(replay(path))) == ([], ["no-content"])
    (tmp_path / "empty.jsonl").write_bytes(b"")
    assert list(replay(tmp_path / "empty.jsonl")) == []


def test_before_the_first_request_there_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        Trace(tap._own).step("note", a=1)
        tap.record_model_request({"model": "m", "messages": [{"role": "user", "content": "?"}]})
    assert (list(replay(path, 1)), codes(replay(path, 1))) == ([], ["no-request"])
    assert len(replay(path, 2)) == 1


@pytest.mark.parametrize("body", ["not JSON at all", ["a list"], {"prompt": "an old completion"}, {}])
def test_a_request_that_is_no_conversation_is_reported(body: object, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        tap.record_model_request(body)
    assert (list(replay(path)), codes(replay(path))) == ([], ["lost"])


def test_every_torn_end_gives_a_list(tmp_path: Path) -> None:
    whole = record(tmp_path / "run.jsonl", "anthropic").read_bytes()
    torn = tmp_path / "torn.jsonl"
    shutil.copytree(tmp_path / "run.blobs", tmp_path / "torn.blobs")
    for size in range(0, len(whole), 37):
        torn.write_bytes(whole[:size])
        assert len(replay(torn)) in (0, 1, 3, 4)
