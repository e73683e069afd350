"""What went wrong, as ``{"type", "message", "frames"}``: from an exception, or from its text.

Used by every front end and by the crash hooks.
"""

from __future__ import annotations

import os
import sys

from ...lines import dumps
from .. import guard
from ..recorder.jsonable import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any


MAX_FRAMES = 3
MAX_TEXT = 100_000
MAX_CAUSES = 3
MAX_MEMBERS = 5
"""Of an exception group; ``message`` has their number."""


def failure(error: Any) -> dict[str, Any] | None:
    """Return the error as it stands in an event, None for None.

    Text that is the message of the exception being handled right now gets that exception's
    type and frames, so that ``error=str(exc)`` in an except block loses nothing.
    """
    if error is None:
        return None
    try:
        return _failure(error)
    except Exception as exc:  # an object whose very class raises
        guard.pass_on(exc)
        return {"type": None, "message": _described(error), "frames": []}


def _failure(error: Any) -> dict[str, Any]:
    if isinstance(error, BaseException):
        return _exception(error, MAX_CAUSES)
    if isinstance(error, type) and issubclass(error, BaseException):
        return {"type": error.__name__, "message": "", "frames": []}
    if isinstance(error, dict):
        return error
    text = error if isinstance(error, str) else _described(error)
    current = sys.exc_info()[1]
    if current is not None and message(current) == text:
        return _failure(current)
    return {"type": None, "message": text, "frames": []}


def _exception(error: BaseException, deeper: int) -> dict[str, Any]:
    """Describe an exception with what it came from: ``raise … from``, and the members of a group."""
    fields: dict[str, Any] = {
        "type": type(error).__name__,
        "message": message(error),
        "frames": frames(error.__traceback__),
    }
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None and cause is not error and deeper:
        fields["cause"] = _exception(cause, deeper - 1)
    if isinstance(error, BaseExceptionGroup) and deeper:
        fields["group"] = [_exception(member, deeper - 1) for member in error.exceptions[:MAX_MEMBERS]]
    return fields


def _described(error: Any) -> str:
    """Return an odd error as text, bounded: the repr of a small list can be endless."""
    plain = jsonable(error)
    short = plain.get("$repr") if isinstance(plain, dict) else None
    return short if isinstance(short, str) else dumps(plain)[:MAX_TEXT]


def message(exc: BaseException) -> str:
    """Return str(exc), whatever it does."""
    try:
        return str.__str__(str(exc))
    except Exception as worse:
        guard.pass_on(worse)
        return f"<no message: __str__ raised {type(worse).__name__}>"


def frames(tb: TracebackType | None) -> list[str]:
    """Return the three innermost frames as ``agent.py:41 in plan``, innermost first; ours are left out.

    Those of the agent's own code stand before those of libraries. If all three are of libraries, the last
    one gives way to the innermost of the agent's own.
    """
    found: list[tuple[bool, str]] = []
    own: tuple[bool, str] | None = None
    while tb is not None:
        code = tb.tb_frame.f_code
        if not code.co_filename.startswith(_HERE):
            place = f"{os.path.basename(code.co_filename)}:{tb.tb_lineno} in {code.co_name}"
            found.append((not is_agents(code.co_filename), place))
            own = own if found[-1][0] else found[-1]
            del found[:-MAX_FRAMES]
        tb = tb.tb_next
    if own is not None and all(is_library for is_library, _ in found):
        found[0] = own
    found.reverse()
    return [place for _, place in sorted(found, key=lambda frame: frame[0])]


def is_agents(filename: str) -> bool:
    """True for a file that is neither of a library, nor of Python's own, nor ours."""
    return not filename.startswith((_OURS, "<frozen ")) and not any(part in filename for part in _LIBRARIES)


def is_ours(filename: str) -> bool:
    """True for a file of this package."""
    return filename.startswith(_OURS)


_HERE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_OURS = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_LIBRARIES = (
    os.sep + "site-packages" + os.sep,
    os.sep + "dist-packages" + os.sep,
    os.path.dirname(os.__file__) + os.sep,
)


# Who made a call: the innermost frames of the agent's own code, libraries and ourselves left out.


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
