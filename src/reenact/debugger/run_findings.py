"""The findings of a run: its suspects, each with the address to jump to, and the damage in its file."""

from __future__ import annotations

from ..recording.recording import Recording
from .story import story_of
from .suspects.search import suspects_of


def run_findings(recording: Recording) -> list[tuple[str, str]]:
    """Return suspects with their addresses, then the damage found in the file, which has none."""
    found = suspects_of(recording, story_of(recording))
    places = [(each.address, each.evidence) for each in found]
    return places + [("", str(finding)) for finding in recording.findings]
