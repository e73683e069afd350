"""``run.end`` of a supervised agent, completed once it is dead.

``run.end`` is the agent's to write. It does not know its exit code, and if it was killed it wrote nothing: so
the supervisor, as that same writer, adds a line that holds what the agent wrote and what it could not know.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from typing import Any

from .. import lines, schema
from ..capture import guard
from ..totals import Totals
from ..tracefile.file_ends import read_ends, summed
from ..tracefile.findings import Note
from ..tracefile.records import records
from ..tracefile.run_files import streams

_KEPT = (
    "error",
    "http_status",
    "dropped",
    "redacted",
    "unredacted_signed",
    "overhead_us",
    "unseen",
    "tool_uses",
)
"""What the agent's own last line may know."""


def complete_end(
    path: str, run_id: str, w: str, known: dict[str, Any], *, handled_stop: bool = False
) -> tuple[str, Totals, list[dict[str, Any]], dict[str, int]]:
    """Append the ``run.end`` that counts; returns status, sums, what was not seen, and the tool uses.

    ``handled_stop`` if the agent was sent SIGTERM and had a handler for it.
    """
    last_files = [files[-1] for files in streams(path)]
    (step, own, totals), *others = [_last_of(file) for file in last_files]
    status = _status(own.get("status"), known["exit"], handled_stop)
    fields = {"status": status, **known, "by": "supervisor", "events": step + 1}
    fields.update({key: own[key] for key in _KEPT if key in own})
    fields["tot"] = totals.as_tot()
    with guard.Swallowing("write how the agent ended"):  # on a full disk; the file still has its sums
        _append(last_files[0], lines.whole(time.time(), run_id, w, step + 1, schema.RUN_END, fields))
    unseen = list(fields.get("unseen") or ())
    uses = Counter(fields.get("tool_uses") or {})
    for _, end, sums in others:
        totals += sums
        unseen += end.get("unseen") or ()
        uses.update(end.get("tool_uses") or {})
    return status, totals, unseen, dict(uses)


def _last_of(path: str) -> tuple[int, dict[str, Any], Totals]:
    """Return the last step of a writer's last file, the fields of its end, and its sums."""
    ends = read_ends(path)
    if ends is not None:
        return ends.last[3], ends.end or {}, ends.totals
    note = Note(path, None)  # damaged: read whole
    totals, end = summed(record.fields or {} for record in records(path, note))
    step = max((record.envelope.step or 0 for record in records(path, note)), default=0)
    return step, end or {}, totals


def _append(path: str, line: str) -> None:
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        is_torn = os.pread(fd, 1, max(os.fstat(fd).st_size - 1, 0)) != b"\n"
        os.write(fd, (b"\n" if is_torn else b"") + line.encode("ascii"))
    finally:
        os.close(fd)


_STOPPED_EXIT = 128 + signal.SIGTERM
"""The exit code of a program that ends in order because of SIGTERM, and of a shell whose child did."""


def _status(own: object, code: int, handled_stop: bool) -> str:
    """The agent's own word on an error or a cancellation is the better one; else its exit decides.

    A server that has shut down in order may send itself the signal again, to end by it after all.
    """
    if own in ("error", "cancelled") and code != 0:
        return str(own)
    if code == _STOPPED_EXIT or (handled_stop and code in (0, -signal.SIGTERM)):
        return "stopped"
    return "ok" if code == 0 else "error" if code > 0 else "killed"
