"""loguru with ``serialize=True`` to a file, written on the caller's thread (its default)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from loguru import logger

from .common import Baseline


class LoguruBaseline(Baseline):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        if not getattr(LoguruBaseline, "_quiet", False):
            logger.remove()
            LoguruBaseline._quiet = True
        self.logger = logger.bind(sink=str(path))
        self.sink = logger.add(
            path, serialize=True, format="{message}", filter=lambda r: r["extra"].get("sink") == str(path)
        )

    def record(self, kind: str, payload: dict[str, Any]) -> None:
        self.logger.bind(payload=payload).info(kind)

    def close(self) -> None:
        logger.remove(self.sink)
