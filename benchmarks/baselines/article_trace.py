"""The first article's recorder, from its description: append, line-buffered text, one json.dumps a step."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path
from typing import Any

from .common import Baseline


class ArticleTrace:
    """Keys in the order ts, run, kind, then the caller's fields; a run id of 8 hex digits."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.run_id = str(uuid.uuid4())[:8]
        self.file = open(self.path, "a", buffering=1)

    def step(self, kind: str, **fields: Any) -> None:
        event = {"ts": time.time(), "run": self.run_id, "kind": kind, **fields}
        self.file.write(json.dumps(event) + "\n")

    def close(self) -> None:
        self.file.close()


class TraceBaseline(Baseline):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.trace = ArticleTrace(path)

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.trace.step(kind, **payload)

    def close(self) -> None:
        self.trace.close()
