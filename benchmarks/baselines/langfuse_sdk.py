"""Langfuse SDK, one observation an event. There is no server here, so what it queues is dropped.

Its figures are what the caller pays in record(); with a live server they will differ.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from langfuse import Langfuse

from .common import Baseline


class LangfuseBaseline(Baseline):
    remark = "no server here: drops"

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        for name in ("langfuse", "opentelemetry", "backoff"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        # Port 9 (discard) of loopback: nothing listens, so nothing leaves the machine.
        self.client = Langfuse(
            public_key="pk-bench", secret_key="none", base_url="http://127.0.0.1:9", timeout=1
        )

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.client.start_observation(name=kind, input=payload).end()

    def close(self) -> None:
        pass  # a shutdown would only wait for a server that is not there
