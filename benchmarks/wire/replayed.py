"""``python replayed.py TASK``: an agent to be recorded and replayed, changed or not by the variable ``TWIST``.

It prints one JSON object: the CPU time of its calls, the milliseconds until each stream's first event, what the
answers were. As ``test_replayed.py`` beside it the same is a test of pytest-recording's.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.wire.agent import tool_loop


def main(task: str) -> None:
    from anthropic import Anthropic

    client = Anthropic(api_key="none", base_url=os.environ["MODEL_URL"], max_retries=0)
    with _cassette():
        told = TASKS[task](client)
    Path(os.environ["RESULT"]).write_text(json.dumps(told), "utf-8")


def loop(client: Any) -> dict[str, Any]:
    begun = time.process_time()
    messages = tool_loop(client, int(os.environ["TURNS"]), stream=False)
    return {"cpu": time.process_time() - begun, "messages": len(messages)}


def streamed(client: Any) -> dict[str, Any]:
    first = []
    for number in range(6):
        begun = time.perf_counter()
        with client.messages.create(**_asked(number), stream=True) as events:
            next(iter(events))
            first.append((time.perf_counter() - begun) * 1000)
            list(events)
    return {"first_ms": first}


def six(client: Any) -> dict[str, Any]:
    """Six questions; with TWIST=insert another one before the third, with TWIST=edit the third is another."""
    twist, questions = os.environ.get("TWIST"), [f"question {number}" for number in range(6)]
    if twist == "insert":
        questions.insert(2, "one more question")
    if twist == "edit":
        questions[2] = "another question"
    answers: dict[str, str | None] = {}
    for question in questions:
        try:
            answers[question] = client.messages.create(**_asked(question)).id
        except Exception:
            answers[question] = None
    return {"answers": answers}


def killed(client: Any) -> dict[str, Any]:
    for number in range(3):
        client.messages.create(**_asked(number))
    Path(os.environ["RESULT"]).write_text("{}", "utf-8")
    time.sleep(600)
    return {}


def _asked(question: object) -> dict[str, Any]:
    said = [{"role": "user", "content": str(question)}]
    return {"model": "m", "max_tokens": 99, "system": "PLAN []", "messages": said}


def _cassette() -> AbstractContextManager[Any]:
    if "VCR" not in os.environ:
        return nullcontext()
    import vcr

    return vcr.use_cassette(os.environ["VCR"], record_mode=os.environ["VCR_MODE"])  # type: ignore[no-any-return]


TASKS = {"loop": loop, "streamed": streamed, "six": six, "killed": killed}

if __name__ == "__main__":
    main(sys.argv[1])
