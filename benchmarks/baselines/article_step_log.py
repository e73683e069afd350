"""The third article's recorder, from its description: a lock, a list in memory, the file opened per record.

What its code writes differs from what its text documents: ``run_id``, ``step`` and ``ts`` come last.
We write what the code writes.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from .common import Baseline


class ArticleStepLog:
    def __init__(self, path: str | Path, run_id: str) -> None:
        self.path = Path(path)
        self.run_id = run_id
        self.steps: list[dict[str, Any]] = []
        self.started = time.time()
        self._lock = threading.Lock()

    def record_llm_call(self, model: str, input_tokens: int, output_tokens: int, stop_reason: str) -> None:
        tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        self.write({"type": "llm_call", "model": model, **tokens, "stop_reason": stop_reason})

    def record_tool_call(
        self, tool: str, input: Any, output: Any = None, error: str | None = None, duration_ms: float = 0
    ) -> None:
        outcome = {"output": output, "error": error, "duration_ms": duration_ms}
        self.write({"type": "tool_call", "tool": tool, "input": input, **outcome})

    def write(self, record: dict[str, Any]) -> None:
        with self._lock:
            record |= {"run_id": self.run_id, "step": len(self.steps) + 1, "ts": time.time()}
            self.steps.append(record)
            with open(self.path, "a") as file:
                file.write(json.dumps(record) + "\n")


class StepLogBaseline(Baseline):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.log = ArticleStepLog(path, "run-1")

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.log.write({"type": kind, **payload})

    def close(self) -> None:
        pass
