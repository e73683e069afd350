"""Who made a call: the innermost frames of the agent's own code, libraries and ourselves left out."""

from __future__ import annotations

import os
import sys

from .failure import MAX_FRAMES, is_agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType


def caller_frames() -> list[str]:
    """Return up to three frames, innermost first, as ``agent.py:41 in plan``."""
    found: list[str] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and len(found) < MAX_FRAMES:
        name = frame.f_code.co_filename
        if is_agents(name):
            found.append(f"{os.path.basename(name)}:{frame.f_lineno} in {frame.f_code.co_name}")
        frame = frame.f_back
    return found
