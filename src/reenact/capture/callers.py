"""Who made a call: the innermost frames of the agent's own code, libraries and ourselves left out."""

from __future__ import annotations

import os
import sys

from .failure import MAX_FRAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_OURS = os.path.dirname(os.path.dirname(__file__)) + os.sep
_LIBRARIES = (
    os.sep + "site-packages" + os.sep,
    os.sep + "dist-packages" + os.sep,
    os.path.dirname(os.__file__) + os.sep,
)


def caller_frames() -> list[str]:
    """Return up to three frames, innermost first, as ``agent.py:41 in plan``."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < MAX_FRAMES:
        name = frame.f_code.co_filename
        if not name.startswith((_OURS, "<frozen ")) and not any(part in name for part in _LIBRARIES):
            found.append(f"{os.path.basename(name)}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back
    return found
