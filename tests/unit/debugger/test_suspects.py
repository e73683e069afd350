"""Suspects of small runs, one rule at a time: what is one, what is none, how they rank."""

from __future__ import annotations

ASKS = {"model": "m", "messages": [{"role": "user", "content": "What time is it?"}]}
USE = {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {}}


def failing(error: Exception) -> None:
    raise error
