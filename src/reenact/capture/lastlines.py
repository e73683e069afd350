"""The last lines of a run, read back by the supervisor once the agent is dead: its own ``run.end`` completed.

``run.end`` is the agent's to write. It does not know its exit code, and if it was killed it wrote nothing: so
the supervisor, as that same writer, adds a line that holds what the agent's said and what it could not know.
"""

from __future__ import annotations

import os
import time

from .. import schema
from ..lines import dumps, envelope, quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIRST_LOOK, _FAR = 64 << 10, 64 << 20
_KEPT = ("error", "dropped", "redacted", "unredacted_signed", "overhead_us", "unseen", "tot")
"""What the agent's own last line may know."""


def complete_end(path: str, run_id: str, w: str, told: dict[str, Any]) -> list[dict[str, Any]]:
    """Append the ``run.end`` that counts; returns what the processes of the run say was not seen."""
    stem = path.removesuffix(".jsonl")
    files = _files_of(stem)
    last = max((file for file in files if file.startswith(f"{stem}.s")), default=path)
    step, own, torn = _read_back(last, w)
    fields: dict[str, Any] = {"status": _status(own, told["exit"]), **told, "by": "supervisor"}
    fields["events"] = step + 1
    fields.update({key: own[key] for key in _KEPT if key in own})
    if own.get("step") != step:
        fields.pop("tot", None)  # exit handlers recorded more after it
    opening = envelope(time.time(), run_id, w, step + 1, schema.RUN_END)
    text = "".join(f", {quote(key)}: {dumps(value)}" for key, value in fields.items())
    fd = os.open(last, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(fd, ("\n" if torn else "").encode() + f"{opening}{text}}}\n".encode())
    finally:
        os.close(fd)
    others = [_read_back(file)[1] for file in files if file.startswith(f"{stem}.p")]
    return [each for end in (own, *others) for each in end.get("unseen") or ()]


def _files_of(stem: str) -> list[str]:
    folder, name = os.path.split(stem)
    found = [file for file in os.listdir(folder) if file.startswith(f"{name}.") and file.endswith(".jsonl")]
    return sorted(os.path.join(folder, file) for file in found)


def _status(own: dict[str, Any], code: int) -> str:
    """The agent's own word on an error or a cancellation is the better one; else its exit decides."""
    told = own.get("status")
    if told in ("error", "cancelled") and code != 0:
        return str(told)
    return "ok" if code == 0 else "error" if code > 0 else "killed"


def _read_back(path: str, w: str | None = None) -> tuple[int, dict[str, Any], bool]:
    """Return the last step of a writer, its end line ({} if there is none), and whether the file is torn."""
    size = os.path.getsize(path)
    look = min(size, _FIRST_LOOK)
    while True:
        with open(path, "rb") as file:
            file.seek(size - look)
            data = file.read(look)
        lines = data.split(b"\n") if look == size else data.split(b"\n")[1:]
        step, end = _last(lines, w)
        if step or look == size or look >= _FAR:
            return step, end, not data.endswith(b"\n")
        look = min(size, look * 8)


def _last(lines: list[bytes], w: str | None) -> tuple[int, dict[str, Any]]:
    import json

    step = 0
    for line in reversed(lines):
        try:
            fields = json.loads(line)
            if w is not None and fields["w"] != w:
                continue
            step = step or int(fields["step"])
        except (ValueError, TypeError, KeyError, RecursionError):
            continue  # torn, or not ours
        if fields.get("kind") in (schema.RUN_END, schema.PROC_END):
            return step, fields
    return step, {}
