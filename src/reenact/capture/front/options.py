"""The options every front end takes, checked once, at construction: the only place capture raises."""

from __future__ import annotations

from ...errors import UsageError
from ..runs.location import variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GB = 1 << 30
CONTENT_VARIABLE = "REENACT_CONTENT"

_CHOICES = {"content": ("full", "hash", "none"), "durability": ("auto", "sync", "fsync")}
_TYPES: dict[str, tuple[type, ...]] = {
    "redact": (bool,),
    "max_bytes": (int,),
    "min_free": (int, float),
    "segment_bytes": (int,),
    "name": (str, type(None)),
    "meta": (dict, type(None)),
    "deltas": (bool,),
}


class Options:
    """How to record. ``Options(content="hash")``; unknown or ill-typed options are a UsageError."""

    redact: bool = True
    """Replace secrets before bytes exist."""
    content: str = "full"
    """``full``, ``hash`` (equal stays equal) or ``none``."""
    durability: str = "auto"
    """``auto``: synchronous, queued while the device stalls; ``sync``: never queued; ``fsync``: flushed."""
    max_bytes: int = 5 * GB
    """All traces of the folder together; beyond it only metadata is recorded."""
    min_free: float = 0.05
    """Share of the disk that stays free; below it only metadata is recorded."""
    segment_bytes: int = 256 << 20
    """A file grows to this size, then the next segment begins. 0: never."""
    retain: Any = "all"
    """``all``, ``failed``, or the share of good runs to keep, 0 to 1. Decided when the run ends."""
    name: str | None = None
    meta: dict[str, Any] | None = None
    """What ``ls --where`` filters by: agent version, task type, environment."""
    bus: Any = None
    deltas: bool = False
    """A writer callback gets requests as written to a file, not rebuilt."""

    def __init__(self, **options: Any) -> None:
        if "content" not in options and variable(CONTENT_VARIABLE) in _CHOICES["content"]:
            self.content = variable(CONTENT_VARIABLE)
        for key, value in options.items():
            if key not in OPTION_NAMES:
                raise UsageError(f"unknown option {key!r}", hint="options are: " + ", ".join(OPTION_NAMES))
            choices = _CHOICES.get(key)
            if choices and value not in choices:
                raise UsageError(f"{key}={value!r}", hint=f"{key} is one of: " + ", ".join(choices))
            types = _TYPES.get(key)
            if types and (not isinstance(value, types) or (isinstance(value, bool) and bool not in types)):
                raise UsageError(
                    f"{key}={value!r} is a {type(value).__name__}", hint=f"expected {types[0].__name__}"
                )
            if key == "retain":
                check_retain(value)
            if key == "bus" and value is not None and not hasattr(type(value), "receive"):
                raise UsageError(f"bus={value!r} is not an EventBus", hint="from reenact import EventBus")
            setattr(self, key, value)
        if self.max_bytes < 0 or self.segment_bytes < 0 or not 0 <= self.min_free < 1:
            raise UsageError(
                "max_bytes and segment_bytes are sizes in bytes, min_free is a share from 0 to 1"
            )


OPTION_NAMES = ("redact", "content", "durability", "max_bytes", "min_free", "segment_bytes", "retain",
                "name", "meta", "bus", "deltas")  # fmt: skip


def check_retain(value: Any) -> None:
    if value in ("all", "failed") and isinstance(value, str):
        return
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1:
        return
    raise UsageError(f"retain={value!r}", hint='retain is "all", "failed" or a share from 0 to 1')


def check_path(path: Any) -> str:
    """Return the path as text; UsageError for what can never be one."""
    if hasattr(type(path), "__fspath__"):
        path = path.__fspath__()
    if isinstance(path, bytes):
        path = path.decode("utf-8", "surrogateescape")
    if not isinstance(path, str):
        raise UsageError(
            f"a path is text, not {type(path).__name__}", hint='for example Trace("traces/run.jsonl")'
        )
    if not path:
        raise UsageError("the path is empty", hint='for example Trace("traces/run.jsonl")')
    if "\0" in path:
        raise UsageError("the path holds a NUL character")
    if path.split("://", 1)[0] in ("s3", "gs", "az", "http", "https") and "://" in path:
        raise UsageError(
            f"{path}: object storage cannot be written to yet",
            hint="record to a local folder and upload it, or hand over a callback: Tap(writer=...)",
        )
    return str(path)
