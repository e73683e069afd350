"""The first lines of `show`: an error that the run survived is one of them, the error that ended it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reenact import Tap
from reenact.cli.main import main

ASKS = {"model": "m", "messages": [{"role": "user", "content": "What time is it?"}]}
USE = {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {}}


def remarks(path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["show", "--json", str(path)]) == 0
    return [each["text"] for each in json.loads(capsys.readouterr().out.splitlines()[0]).get("remarks", ())]


@pytest.mark.parametrize(
    ("survived", "ended_with", "is_remark"),
    [
        (TimeoutError(), ValueError("no answer"), True),
        (TimeoutError(), TimeoutError(), False),
        (TimeoutError("slow"), ValueError("no answer"), True),
        (TimeoutError("slow"), RuntimeError("gave up: slow"), False),
    ],
    ids=repr,
)
def test_an_error_that_did_not_end_the_run_is_a_remark(
    survived: Exception,
    ended_with: Exception,
    is_remark: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(type(ended_with)), Tap(tmp_path / "run.jsonl") as tap:
        call = tap.record_model_request(ASKS)
        tap.record_model_response({"type": "message", "role": "assistant", "content": [USE]}, call=call)
        with pytest.raises(type(survived)):
            tap.tool(name="clock")(failing)(survived)
        raise ended_with
    found = remarks(tmp_path / "run.jsonl", capsys)
    assert any("TimeoutError" in text for text in found) is is_remark, found


def failing(error: Exception) -> None:
    raise error
