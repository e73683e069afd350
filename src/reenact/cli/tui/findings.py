"""The findings pane: what deserves a look in a run, each with the address to jump to."""

from __future__ import annotations

from ...debugger.ending import ending_error
from ...debugger.remarks import remarks
from ...debugger.story import story_of
from ...recording.recording import Recording
from ...tracefile.events.event_text import address


def run_findings(recording: Recording) -> list[tuple[str, str]]:
    """Return remarks with their addresses, then the damage found in the file, which has none."""
    found = remarks(story_of(recording), ending_error(recording))
    places = [(address(each.event, recording.first_writer), each.text) for each in found]
    return places + [("", str(finding)) for finding in recording.findings]
