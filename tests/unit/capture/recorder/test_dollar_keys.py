"""Keys that begin with ``$`` and values JSON cannot hold come back as given, however they came in."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from reenact import Recording, Tap

SCHEMA = {"$ref": "#/$defs/City", "$defs": {"City": {"type": "string"}}}


class Model:
    """An SDK's object: known by the method that makes it plain."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self) -> dict[str, Any]:
        return self.fields


def load(path: Path) -> dict[str, dict[str, Any]]:
    return {event.kind: event.payload for event in Recording.load(path).events}


def test_an_sdk_object_as_request_and_as_answer(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:
        tool = {"name": "search", "input_schema": SCHEMA}
        tap.record_model_request(
            Model(model="m", messages=[{"role": "user", "content": "x", "$a": 1}], tools=[tool])
        )
        tap.record_model_response(Model(role="assistant", content="y", schema=SCHEMA, score=float("nan")))
    found = load(path)
    request, answer = found["model.request"]["body"], found["model.response"]["body"]
    assert request["messages"] == [{"role": "user", "content": "x", "$a": 1}]
    assert request["tools"][0]["input_schema"] == SCHEMA
    assert answer["schema"] == SCHEMA and math.isnan(answer["score"])


def test_what_a_generator_tool_yields(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path) as tap:

        @tap.tool
        def tool() -> Any:
            yield SCHEMA
            yield b"abc"
            yield float("inf")

        list(tool())
    yielded = load(path)["tool.result"]["result"]["yielded"]
    assert yielded == [SCHEMA, {"$bytes": "YWJj", "bytes": 3}, math.inf]
