"""structlog as its performance page advises: orjson where installed, bytes to a file, no filtering."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import structlog

from .common import Baseline


def _dumps(value: Any, **options: Any) -> bytes:
    return json.dumps(value, **options).encode()


class StructlogBaseline(Baseline):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        try:
            import orjson

            serializer = orjson.dumps
        except ImportError:
            serializer = _dumps
        self.file = open(path, "ab")
        self.logger = structlog.wrap_logger(
            structlog.BytesLogger(self.file),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt=None),
                structlog.processors.JSONRenderer(serializer=serializer),
            ],
            wrapper_class=structlog.BoundLogger,
            context_class=dict,
            cache_logger_on_first_use=True,
        ).bind(run="run-1")

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.logger.info(kind, **payload)

    def close(self) -> None:
        self.file.close()
