"""Which runs are worth keeping: decided when the run ends, by the writer that began it."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import TYPE_CHECKING

from ...lines import parse
from ...schema import PROC_END
from .. import guard

if TYPE_CHECKING:
    from .recorder import Recorder


def drop_unwanted(recorder: Recorder, status: str) -> None:
    """Delete the files of a good run that the ``retain`` option does not want."""
    retain = recorder.options.retain
    if status != "ok" or recorder.totals.errors or recorder.lost:
        return
    if isinstance(retain, (int, float)) and _share(recorder.run_id) < retain:
        return
    sink = recorder.sink
    first = recorder.first_path
    if sink is None or first is None or not sink.regular:
        return
    if not sink.own_from_start or _measures(first, sink.size, recorder.segment):
        guard.tell(f"retain:{first}", f"{guard.shown(first)} holds other runs too, so retain= is ignored.")
        return
    _delete(first, recorder.stem, recorder.run_id)


def _share(run_id: str) -> float:
    """Return a number from 0 to 1 that is the same in every process of the run."""
    return int.from_bytes(blake2b(run_id.encode("utf-8", "replace"), digest_size=4).digest(), "big") / 2**32


def _measures(path: str, size: int, segment: int) -> bool:
    """True if somebody else has written to our first file."""
    return segment == 0 and os.path.getsize(path) != size


def _delete(first: str, stem: str, run_id: str) -> None:
    """Remove the file, and segments, further processes and blobs as far as they are this run's."""
    folder, base = os.path.split(stem)
    parts = [name for name in os.listdir(folder or ".") if _is_part(name, base)]
    others = [name for name in parts if not _begins_with(os.path.join(folder, name), run_id)]
    ours = [os.path.join(folder, name) for name in parts if name not in others]
    if not all(_ended_well(path) for path in ours if os.path.basename(path).startswith(base + ".p")):
        return
    for path in (first, *ours):
        os.unlink(path)
    blobs = stem + ".blobs"
    if not others and os.path.isdir(blobs) and not os.path.islink(blobs):
        for name in os.listdir(blobs):
            if len(name) >= 64 and _is_hex(name[:64]):
                os.unlink(os.path.join(blobs, name))
        if not os.listdir(blobs):
            os.rmdir(blobs)


def _is_part(name: str, base: str) -> bool:
    """True for ``base.s0001.jsonl`` and ``base.p77aa01bc.jsonl``, not for another run's longer name."""
    if not name.startswith(base + ".") or not name.endswith(".jsonl"):
        return False
    return all(
        (part[:1] == "s" and len(part) > 4 and part[1:].isdecimal())
        or (part[:1] == "p" and len(part) == 9 and _is_hex(part[1:]))
        for part in name[len(base) + 1 : -len(".jsonl")].split(".")
    )


def _begins_with(path: str, run_id: str) -> bool:
    """True if the first line is of this run: an earlier one may have left parts under the same name."""
    with open(path, "rb") as file:
        first = file.readline(1 << 16)
    try:
        return bool(parse(first).get("run") == run_id)
    except ValueError:
        return False


def _ended_well(path: str) -> bool:
    """True if a further process of the run has ended without an error; its file is kept otherwise."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - (1 << 16)))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    try:
        end = parse(last)
        return end.get("kind") == PROC_END and not end["tot"]["err"] and not end.get("dropped")
    except (ValueError, KeyError, TypeError):
        return False


def _is_hex(text: str) -> bool:
    return all(digit in "0123456789abcdef" for digit in text)
