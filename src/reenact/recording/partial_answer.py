"""What had come of an answer when the process died: put together from ``<call>.part`` beside the trace."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..wire.streams import Assembled
    from .recording import Recording

_CALL = re.compile(r"[0-9a-f]{16}\Z")
MAX_PART = 256 << 20


def partial_answer(recording: Recording, call: str | None) -> tuple[Assembled, int] | None:
    """Return the answer of an open model call as far as it came, and how many bytes that is."""
    if call is None or _CALL.match(call) is None:  # a call id from a trace is no path
        return None
    for folder in recording.shelf.blobs.folders:
        path = os.path.join(folder, f"{call}.part")
        try:
            with open(path, "rb") as file:
                data = file.read(MAX_PART)
        except OSError:
            continue
        from ..wire.streams import assemble

        request = recording.request_of(call)
        return assemble(data, request.provider if request is not None else None), len(data)
    return None
