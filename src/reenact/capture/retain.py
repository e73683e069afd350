"""Which runs are worth keeping: decided when the run ends, by the writer that began it."""

from __future__ import annotations

import os

from . import guard

TYPE_CHECKING = False
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
    if sink is None or not sink.regular:
        return
    if not sink.own_from_start or _measures(recorder.stem + ".jsonl", sink.size, recorder.segment):
        guard.tell(
            f"retain:{recorder.stem}", f"{recorder.stem}.jsonl holds other runs too, so retain= is ignored."
        )
        return
    _delete(recorder.stem)


def _share(run_id: str) -> float:
    """Return a number from 0 to 1 that is the same in every process of the run."""
    from hashlib import blake2b

    return int.from_bytes(blake2b(run_id.encode("utf-8", "replace"), digest_size=4).digest(), "big") / 2**32


def _measures(path: str, size: int, segment: int) -> bool:
    """True if somebody else has written to our first file."""
    return segment == 0 and os.path.getsize(path) != size


def _delete(stem: str) -> None:
    """Remove ``<stem>.jsonl``, its segments, further processes and blobs."""
    folder, base = os.path.split(stem)
    for name in os.listdir(folder or "."):
        path = os.path.join(folder, name)
        if name == f"{base}.blobs":
            for blob in os.listdir(path):
                os.unlink(os.path.join(path, blob))
            os.rmdir(path)
        elif name.endswith(".jsonl") and _is_part(name.removesuffix(".jsonl"), base):
            os.unlink(path)


def _is_part(stem: str, base: str) -> bool:
    """True for ``base``, ``base.s0001`` and ``base.p77aa01bc``, not for another run's longer name."""
    if stem == base:
        return True
    rest = stem.removeprefix(base + ".")
    return rest != stem and all(
        part[:1] in ("s", "p") and all(digit in "0123456789abcdef" for digit in part[1:])
        for part in rest.split(".")
    )
