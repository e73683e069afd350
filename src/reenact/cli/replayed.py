"""What became of a run that was re-enacted, for a person and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from .text import count


class Outcome:
    """The report of all processes of a replay, from the lines they wrote (``playback.reenacting``)."""

    def __init__(self, told: list[dict[str, Any]], live: Iterable[str]) -> None:
        self._diverged = [each for each in told if "diverged" in each]
        self._answered = sum(each.get("answered", 0) for each in told)
        self._refused = [each["refused"] for each in told if "refused" in each]
        self._stand_ins = [each["stand_in"] for each in told if "stand_in" in each]
        self._unknown = [each["unknown"] for each in told if "unknown" in each]
        self._doubts = [each["doubt"] for each in told if "doubt" in each]
        self._live = list(live)
        self._began = bool(told)

    @property
    def is_other(self) -> bool:
        """True if this was not the recorded run again; what only a library was refused does not count."""
        return not self._began or bool(self._diverged or self._unknown or self._by_agent())

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "answered": self._answered,
            "diverged": [each["diverged"] for each in self._diverged],
            "refused": self._refused,
            "stand_ins": self._stand_ins,
            "unknown": self._unknown,
            "doubts": self._doubts,
            "live": self._live,
        }

    def lines(self) -> list[str]:
        """Return it for a person, the verdict last."""
        lines = [each["text"] + "\n" for each in self._diverged]
        for (what, where), times in _counted(self._refused, "what", "where").items():
            place = f" at {where}" if where else ""
            often = f", {times} times" if times > 1 else ""
            lines.append(f"reenact: refused to {what}{place}{often}")
        told = [{**each, "why": ", ".join(each["why"])} for each in self._stand_ins]
        for (tool, why), times in _counted(told, "tool", "why").items():
            lines.append(f"reenact: {count(times, 'result')} of tool {tool} not given as it was: {why}")
        lines += [
            f"reenact: {each['call']} was answered with a doubt: {each['why']}" for each in self._doubts
        ]
        lines += [f"reenact: {each}" for each in self._unknown]
        live = f"tools that ran: {', '.join(self._live)}" if self._live else "none live"
        return [*lines, f"reenact: {self._verdict()}; {count(self._answered, 'call')} answered, {live}"]

    def _verdict(self) -> str:
        if not self._began:
            return "nothing was re-enacted"
        if self._diverged:
            return f"left its recording in {count(len(self._diverged), 'place')}"
        if self._unknown:
            return "went as recorded as far as the recording goes"
        if self._by_agent():
            return "was refused what it did then"
        doubts = count(len(self._doubts), "doubt")
        return f"went on with {doubts}" if self._doubts else "went as recorded"

    def _by_agent(self) -> bool:
        return any(each.get("by") == "agent" for each in self._refused)


def _counted(told: list[dict[str, Any]], *names: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(each.get(name) for name in names) for each in told)


def read_report(path: str) -> list[dict[str, Any]]:
    """Return the lines that the processes of a replay wrote; none if it was never begun."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []
