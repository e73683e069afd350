"""The stdlib's logging with a FileHandler and a small JSON formatter."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from .common import Baseline


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        event = {"ts": record.created, "level": record.levelname, "kind": record.getMessage()}
        return json.dumps({**event, "payload": record.__dict__["payload"]})


class LoggingBaseline(Baseline):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.handler = logging.FileHandler(path)
        self.handler.setFormatter(JsonFormatter())
        self.logger = logging.Logger(f"bench.{path.name}", logging.INFO)
        self.logger.addHandler(self.handler)

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.logger.info(kind, extra={"payload": payload})

    def close(self) -> None:
        self.handler.close()
