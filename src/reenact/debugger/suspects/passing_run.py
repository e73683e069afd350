"""Where a failed run first differs from one that passed: a suspect that needs a second run."""

from __future__ import annotations

from ...compare import report
from ...compare.diff import diff, passing_run
from ...errors import ReenactError
from ...recording.event_addresses import failure_of
from ...recording.recording import Recording
from ...tracefile import status as states
from ...tracefile.events.event_text import address
from ...tracefile.events.text import plain
from .suspect import DIFFERS, Suspect

_CONFIDENCE = {
    report.RESPONSE: 0.4,  # a model answers otherwise each time
    report.EXTRA: 0.4,
    report.MISSING: 0.4,
    report.UNKNOWN: 0.1,
}
_ITSELF = 0.1
"""Of the failure: that it is new explains nothing."""
_SURER = 0.6
"""Of other causes: an input, a prompt, a model or the result of a tool is not another one by chance."""


def first_root(recording: Recording) -> Suspect | None:
    """Return the first difference that nothing before it explains; None if no run passed, or none differs."""
    if recording.status in (states.OK, states.RUNNING):
        return None
    try:
        passed = passing_run(recording)
        roots = () if passed is None else diff(passed, recording).roots
    except (ReenactError, OSError):  # another run cannot be read: this one has its other suspects
        return None
    if passed is None or not roots:
        return None
    root = roots[0]
    step = next(iter((*root.right, *root.left)))
    failure = failure_of(recording)
    event = recording.event(step.address) if root.right and step.address else failure
    if event is None:
        return None
    is_failure = root.cause == report.END or (bool(root.right) and event == failure)
    confidence = _ITSELF if is_failure else _CONFIDENCE.get(root.cause, _SURER)
    against = f"compared with {plain(passed.run_id or '', 12)}, which passed"
    words = f"{plain(step.title, 120)}: {root.because}; {against}"
    where = address(event, recording.first_writer)
    return Suspect(DIFFERS, confidence, words, where, event=event)
