"""A message another thread changes while it is recorded: the next request is still rebuilt as it was sent."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from reenact import Recording, Tap


@pytest.fixture
def hasty_threads() -> Any:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_requests_and_answers_changed_while_recorded_give_no_wrong_base(
    tmp_path: Path, hasty_threads: None
) -> None:
    sent: dict[str, str] = {}
    stop = False
    block: dict[str, Any] = {"type": "text", "text": "a", "n": 0}

    def meddle() -> None:
        while not stop:
            block["n"] += 1
            block["text"] = "x" * (block["n"] % 50)

    meddler = threading.Thread(target=meddle)
    meddler.start()
    with Tap(tmp_path / "run.jsonl", redact=False) as tap:
        try:
            for turn in range(400):
                message = {"role": "assistant", "content": [block, {"type": "text", "text": f"turn {turn}"}]}
                call = tap.record_model_request(
                    {"model": "m", "messages": [{"role": "user", "content": [block]}]}
                )
                tap.record_model_response({"type": "message", "id": "m", **message}, call=call)
                # What is sent now stands still; it may equal what was recorded, or only seem to.
                still = json.loads(
                    json.dumps({"model": "m", "messages": [{"role": "user", "content": [block]}, message]})
                )
                sent[tap.record_model_request(still)] = json.dumps(still)
        finally:
            stop = True
            meddler.join()
    recording = Recording.load(str(tmp_path / "run.jsonl"))
    rebuilt = {
        event.call: json.dumps(event.payload["body"])
        for event in recording.events
        if event.call in sent and event.kind == "model.request"
    }
    assert rebuilt == sent
    assert recording.findings == []
