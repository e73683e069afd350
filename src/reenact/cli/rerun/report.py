"""What became of a run that was re-enacted, for a person and for programs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from ...playback.matching.divergence import SENTENCES
from ...playback.matching.frontier import CHANGED, MISSING_CALL
from ...recording.recording import Recording
from ...tracefile.text import count

_MOST_SHOWN = 5
"""Calls that were never made, each in a line of its own."""

_DOUBTS = {
    "drift": ", it asks for something else than was recorded there",
    "reordered": ", other calls were made before it then",
    "ambiguous-duplicate": ", equal requests got different answers, and which was whose is not recorded",
}
"""What the words for a doubt mean."""


class Outcome:
    """The report of all processes of a replay, from the lines they wrote (``playback.replay.reenacting``)."""

    def __init__(self, told: list[dict[str, Any]], live: Iterable[str]) -> None:
        self._told = told
        self._diverged = [each for each in told if "diverged" in each]
        self._missing = _left_out([each["diverged"] for each in self._diverged])
        self.answered = sum(each.get("answered", 0) for each in told)
        self._refused = [each["refused"] for each in told if "refused" in each]
        self._stand_ins = [each["stand_in"] for each in told if "stand_in" in each]
        self._unknown = [each["unknown"] for each in told if "unknown" in each]
        self._doubts = [each["doubt"] for each in told if "doubt" in each]
        self._inexact = [each["inexact"] for each in told if "inexact" in each]
        self._ended = next((each["ended"] for each in told if "ended" in each), None)
        self._input = [each["input"] for each in told if "input" in each]
        self._live = list(live)
        self._began = bool(told)

    @property
    def is_other(self) -> bool:
        """True if this was not the recorded run again; what only a library was refused does not count."""
        return not self._began or bool(self._diverged or self._unknown or self.is_refused)

    @property
    def is_refused(self) -> bool:
        """True if the agent itself was kept from something."""
        return any(each.get("by") == "agent" for each in self._refused)

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "answered": self.answered,
            "diverged": [each["diverged"] for each in self._diverged],
            "refused": self._refused,
            "stand_ins": self._stand_ins,
            "inexact": self._inexact,
            "unknown": self._unknown,
            "doubts": self._doubts,
            "input": self._input,
            "ended": self._ended,
            "live": self._live,
        }

    def all(self, name: str) -> list[Any]:
        """Return everything that was told by a name."""
        return [each[name] for each in self._told if name in each]

    def lines(self) -> list[str]:
        """Return it for a person, the verdict last."""
        live = f"tools that ran: {', '.join(self._live)}" if self._live else "none live"
        verdict = f"reenact: {self._verdict()}; {count(self.answered, 'call')} answered, {live}"
        return [*self.details(), verdict]

    def details(self) -> list[str]:
        """Return all but the verdict."""
        lines = [each["text"] + "\n" for each in self._diverged if each["diverged"]["code"] != MISSING_CALL]
        if self._missing:
            lines.append(_never_made(self._missing))
        for (what, where), times in _counted(self._refused, "what", "where").items():
            place = f" at {where}" if where else ""
            often = f", {times} times" if times > 1 else ""
            lines.append(f"reenact: refused to {what}{place}{often}")
        if self._input:
            lines.append(f"reenact: of the input not given as it was: {', '.join(self._input)}")
        told = [{**each, "why": ", ".join(each["why"])} for each in self._stand_ins]
        for (tool, why), times in _counted(told, "tool", "why").items():
            lines.append(f"reenact: {count(times, 'result')} of tool {tool} not given as it was: {why}")
        now, then = (self._ended or {}).get("now", ""), (self._ended or {}).get("recorded")
        if now == then and now.startswith("answered"):
            lines.append(f"reenact: {now}, as recorded")
        lines += [
            f"reenact: {each['call']} was not answered with all that came: {', '.join(each['why'])}"
            for each in self._inexact
        ]
        lines += [
            f"reenact: {each['call']} was answered with a doubt: {each['why']}{_DOUBTS.get(each['why'], '')}"
            for each in self._doubts
        ]
        return lines + [f"reenact: {each}" for each in self._unknown]

    def _verdict(self) -> str:
        if not self._began:
            return "nothing was re-enacted"
        if self._diverged:
            others = [each for each in self._diverged if each["diverged"]["code"] != MISSING_CALL]
            return f"left its recording in {count(len(others) + len(self._missing), 'place')}"
        if self._unknown:
            return "went as recorded as far as the recording goes"
        if self.is_refused:
            return "was refused what it did then"
        if self._ended is not None and self._ended["now"] != self._ended["recorded"]:
            return f"ended otherwise: {self._ended['now']}, recorded: {self._ended['recorded']}"
        doubts = count(len(self._doubts), "doubt")
        return f"went on with {doubts}" if self._doubts else "went as recorded"


def _left_out(diverged: list[dict[str, Any]]) -> list[str]:
    """Return the recorded calls that were never made; in the place of some another one was, which is told."""
    replaced = [each.get("call") for each in diverged if each["code"] == CHANGED]
    missing = [each for each in diverged if each["code"] == MISSING_CALL]
    return [each["recorded"] for each in missing if each.get("call") not in replaced]


def _never_made(calls: list[str]) -> str:
    """Return one report for all of them."""
    if len(calls) == 1:
        return f"{MISSING_CALL}: {SENTENCES[MISSING_CALL]}\n  recorded  {calls[0]}\n"
    shown = [f"  recorded  {label}" for label in calls[:_MOST_SHOWN]]
    more = [f"  … and {len(calls) - _MOST_SHOWN} more"] if len(calls) > _MOST_SHOWN else []
    head = f"{MISSING_CALL}: {len(calls)} recorded calls were never made."
    return "\n".join([head, *shown, *more]) + "\n"


def _counted(told: list[dict[str, Any]], *names: str) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(each.get(name) for name in names) for each in told)


def read_report(path: str) -> list[dict[str, Any]]:
    """Return the lines that the processes of a replay wrote; none if it was never begun.

    One that is not whole, because the disk is full, is told of as what is not known.
    """
    found: list[dict[str, Any]] = []
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    found.append({"unknown": "a line of the agent's report is not whole: is the disk full?"})
    except FileNotFoundError:
        pass
    return found


# How a run ended, beside how it had ended when it was recorded.

_COMPARED = ("http_status", "exit", "error", "status")
_UNSURE = ("unclosed", "unknown", "running")
"""Statuses that say only that nobody knows."""


def both_ends(then: Recording, now: Recording) -> dict[str, str] | None:
    """Return how both ended, ``recorded`` and ``now``, where that can be compared; None where it cannot."""
    before, after = _end(then), _end(now)
    known = [name for name in _COMPARED if name in before and name in after]
    if not known:
        return None
    told = next((name for name in known if before[name] != after[name]), known[0])
    return {"recorded": _said(told, before), "now": _said(told, after)}


def _end(recording: Recording) -> dict[str, Any]:
    told = recording.end.stored_fields if recording.end is not None else {}
    found: dict[str, Any] = {
        name: told[name] for name in ("http_status", "exit") if type(told.get(name)) is int
    }
    if recording.error is not None and recording.error.type:
        found["error"] = recording.error.type
    if recording.status not in _UNSURE:
        found["status"] = recording.status
    return found


def _said(name: str, end: dict[str, Any]) -> str:
    if name == "http_status":
        return f"answered {end[name]}"
    if name == "exit":
        return f"exit {end[name]}" if end[name] >= 0 else f"signal {-end[name]}"
    return str(end.get("error") or end[name])
