"""content="none" and "hash": no text that was said is in the file, whatever field it stands in."""

from __future__ import annotations

import contextvars
import threading
from pathlib import Path
from typing import Any

import pytest

from reenact import StepLog, Tap, Trace, private

PRIVATE = "the patient is Maria"
LONG = PRIVATE + " and so on" * 30


@pytest.mark.parametrize("content", ["hash", "none"])
def test_no_content_is_in_the_file(tmp_path: Path, content: str) -> None:
    path = tmp_path / "run.jsonl"
    with Tap(path, content=content) as tap:
        body = {
            "model": "m",
            "system": PRIVATE,
            "messages": [{"role": "user", "content": PRIVATE}],
            "name": LONG,
        }
        tap.record_model_request({**body, "metadata": {"user": PRIVATE}}, url=f"https://host/v1?q={PRIVATE}")
        tap.record_model_response({"id": {"deep": PRIVATE}, "usage": {"note": PRIVATE}, "content": PRIVATE})
        tap.record_tool_call("search", {"q": PRIVATE})
        tap.record_tool_result("search", error={"type": "Odd", "message": PRIVATE, "detail": {"at": PRIVATE}})
        trace, log = Trace(tap._own), StepLog(tap._own)
        for name in ("name", "what", "where", "status", "type", "id", "turn", "model", "usage"):
            trace.step("note", **{name: {"deep": PRIVATE}})
            trace.step("note", **{name: LONG})
        log.record_tool_call("search", PRIVATE, PRIVATE, ValueError(PRIVATE), 1, extra=PRIVATE)
    assert PRIVATE not in path.read_text()


@pytest.mark.parametrize("content", ["hash", "none"])
def test_names_ids_counts_and_frames_stay(content: str) -> None:
    events: list[dict[str, Any]] = []
    tap = Tap(writer=events.append, content=content)
    tap.record_model_request({"model": "m", "max_tokens": 5, "messages": []}, provider="anthropic")
    tap.record_model_response({"id": "msg_1", "usage": {"input_tokens": 5, "output_tokens": 6}})
    tap.record_tool_call("search", tool_id="toolu_1", effect="read")
    try:
        raise KeyError(PRIVATE)
    except KeyError as exc:
        tap.record_tool_result("search", error=exc)
    tap.close()
    request, answer, called, result = events[1:5]
    assert request["body"] == {"model": "m", "max_tokens": 5, "messages": []}
    assert answer["body"] == {"id": "msg_1", "usage": {"input_tokens": 5, "output_tokens": 6}}
    assert (called["tool"], called["tool_id"], called["effect"]) == ("search", "toolu_1", "read")
    assert result["error"]["type"] == "KeyError" and "test_withheld" in result["error"]["frames"][0]


def test_a_private_block_of_a_generator_may_end_in_another_context() -> None:
    def generator() -> Any:
        with private():
            yield

    begun = generator()
    contextvars.copy_context().run(next, begun)
    begun.close()


def test_one_private_object_serves_several_threads(tmp_path: Path) -> None:
    shared = private()
    both = threading.Barrier(2)

    def work(trace: Trace) -> None:
        with shared:
            both.wait()
            trace.step("note", text=PRIVATE)
            both.wait()
        trace.step("note", text="said openly")

    with Trace(tmp_path / "run.jsonl") as trace:
        threads = [threading.Thread(target=work, args=(trace,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    written = (tmp_path / "run.jsonl").read_text()
    assert PRIVATE not in written and written.count("said openly") == 2
