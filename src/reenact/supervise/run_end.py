"""The last lines of a run, read back by the supervisor once the agent is dead, and its ``run.end`` completed.

``run.end`` is the agent's to write. It does not know its exit code, and if it was killed it wrote nothing: so
the supervisor, as that same writer, adds a line that holds what the agent wrote and what it could not know.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from .. import lines, schema
from ..totals import Totals

_FIRST_LOOK, _FAR = 64 << 10, 64 << 20
_KEPT = ("error", "http_status", "dropped", "redacted", "unredacted_signed", "overhead_us", "unseen")
"""What the agent's own last line may know."""


class LastLines:
    """What the last file of one writer says: its last step, its end, its sums."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.step = 0
        self.end: dict[str, Any] = {}
        """The fields of ``run.end`` or ``proc.end``; empty if it got to none."""
        self.totals = Totals()
        size = os.path.getsize(path)
        look = min(size, _FIRST_LOOK)
        while True:
            with open(path, "rb") as file:
                file.seek(size - look)
                data = file.read(look)
            self.is_torn = not data.endswith(b"\n")
            if self._read(data.split(b"\n")[look < size :]) or look in (size, _FAR):
                return
            look = min(size, look * 8, _FAR)

    def _read(self, tail: list[bytes]) -> bool:
        """Sum up the lines from the last that carries sums; False if there is none."""
        after: list[dict[str, Any]] = []
        earlier = list(tail)
        while earlier:
            line = earlier.pop()
            try:
                fields = json.loads(line)
                self.step = max(self.step, int(fields["step"]))
                after.append(fields)
            except (ValueError, TypeError, KeyError, RecursionError):
                continue  # torn
            if isinstance(fields.get("tot"), dict):
                break
        self.totals, self.end = Totals(), {}
        for fields in reversed(after):
            kind, tot = str(fields.get("kind")), fields.get("tot")
            if isinstance(tot, dict):
                self.totals.resume(kind, fields, tot)
            else:
                self.totals.add(kind, fields)
            if kind in (schema.RUN_END, schema.PROC_END):
                self.end = fields
        if not self.end:  # an answer that nobody had read comes after it
            self.end = next((json.loads(line) for line in reversed(earlier) if _is_end(line)), {})
        return bool(after) and isinstance(after[-1].get("tot"), dict)


def _is_end(line: bytes) -> bool:
    return any(lines.kind_part(kind).encode() in line[:200] for kind in (schema.RUN_END, schema.PROC_END))


def complete_end(
    path: str, run_id: str, w: str, known: dict[str, Any]
) -> tuple[str, Totals, list[dict[str, Any]]]:
    """Append the ``run.end`` that counts; returns status and sums of the run, and what was not seen."""
    files = _last_files(path)
    last = LastLines(files.pop(0))
    own = last.end
    status = _status(own.get("status"), known["exit"])
    fields = {"status": status, **known, "by": "supervisor", "events": last.step + 1}
    fields.update({key: own[key] for key in _KEPT if key in own})
    fields["tot"] = last.totals.as_tot()
    line = lines.whole(time.time(), run_id, w, last.step + 1, schema.RUN_END, fields).encode("ascii")
    fd = os.open(last.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(fd, b"\n" + line if last.is_torn else line)
    finally:
        os.close(fd)
    unseen = list(fields.get("unseen") or ())
    for file in files:
        other = LastLines(file)
        last.totals += other.totals
        unseen += other.end.get("unseen") or ()
    return status, last.totals, unseen


def _status(own: object, code: int) -> str:
    """The agent's own word on an error or a cancellation is the better one; else its exit decides."""
    if own in ("error", "cancelled") and code != 0:
        return str(own)
    return "ok" if code == 0 else "error" if code > 0 else "killed"


def _last_files(path: str) -> list[str]:
    """Return the last file of every writer of a run, the first writer's first."""
    folder, name = os.path.split(path.removesuffix(".jsonl"))
    found: dict[str, str] = {"": path}
    for file in sorted(os.listdir(folder)):
        if file.startswith(f"{name}.") and file.endswith(".jsonl"):
            process = next((part for part in file[len(name) :].split(".") if part.startswith("p")), "")
            found[process] = os.path.join(folder, file)
    return list(found.values())
