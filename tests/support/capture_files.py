"""What the capture tests share: a folder's lines as plain dicts, read naively."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def events(path: Path | str | None) -> list[dict[str, Any]]:
    assert path is not None
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def kinds(path: Path | str | None) -> list[str]:
    return [event["kind"] for event in events(path)]


def of(path: Path | str | None, kind: str) -> list[dict[str, Any]]:
    return [event for event in events(path) if event["kind"] == kind]


def one(path: Path | str | None, kind: str) -> dict[str, Any]:
    (found,) = of(path, kind)
    return found
