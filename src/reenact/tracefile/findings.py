"""Findings: what was met while reading that is not as it should be.

Reading never stops for damage; it reports it here and continues. Used by everything in this package.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Finding(NamedTuple):
    """Damage or a gap, with the place where it was met."""

    code: str
    """One word for programs: ``torn fused gap repeat nul encoding no-header blob-missing …``"""
    message: str
    """One sentence for people."""
    path: str
    line: int | None = None
    """1-based, where known."""
    byte: int | None = None
    """Offset in the file, where known."""

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line is not None else ""
        return f"{self.path}{line}: {self.message}"


OnFinding = Callable[[Finding], object]


class Note:
    """Reports findings about one file, and only counts those of a kind that floods."""

    __slots__ = ("_counts", "_on_finding", "path")

    _EACH = 20
    """Of one code in one file; a log with a million foreign lines is one fact, not a million."""

    def __init__(self, path: str, on_finding: OnFinding | None) -> None:
        self.path = path
        self._on_finding = on_finding
        self._counts: dict[str, int] = {}

    def __call__(self, code: str, message: str, line: int | None = None, byte: int | None = None) -> None:
        if self._on_finding is None:
            return
        count = self._counts[code] = self._counts.get(code, 0) + 1
        if count <= self._EACH:
            self._on_finding(Finding(code, message, self.path, line, byte))

    def close(self) -> None:
        """Report how many more there were of each code that flooded."""
        if self._on_finding is None:
            return
        for code, count in self._counts.items():
            if count > self._EACH:
                message = f"{count - self._EACH:,} more findings of this sort ({code})"
                self._on_finding(Finding(code, message, self.path))
        self._counts.clear()

    def once(self, code: str, message: str, line: int | None = None, byte: int | None = None) -> None:
        """Report what is a property of the whole file a single time."""
        if code not in self._counts:
            self(code, message, line, byte)


class Findings(list[Finding]):
    """A list that stops growing at a bound, so that a hostile file cannot fill memory."""

    LIMIT = 10_000

    def add(self, finding: Finding) -> None:
        """Append unless full or already there."""
        if len(self) < self.LIMIT and finding not in self[-64:]:
            self.append(finding)
