"""Which secret of this run is which secret of the recording: their placeholders are numbered by who met them.

What the recording answers holds placeholders of its own, which the agent sends back as they are, beside the
secrets it really has. So those met now are numbered far from the recorded ones, and translated as soon as a
request that holds them has been found in the recording.
"""

from __future__ import annotations

from threading import Lock
from typing import Any

from ...protocols import FIRST_SECRET
from . import rules
from .fingerprint import Request
from .tape import RecordedCall


def _is_new(placeholder: str) -> bool:
    return int(placeholder[:-1].rpartition(":")[2]) >= FIRST_SECRET


class SecretsNow:
    """What is known so far of the secrets of one execution."""

    def __init__(self) -> None:
        self._recorded: dict[str, str] = {}
        self._lock = Lock()

    @property
    def known(self) -> int:
        """How many are known."""
        return len(self._recorded)

    def translated(self, value: Any) -> Any:
        """Return a redacted value with recorded placeholders for the secrets that are known by now."""
        if not self._recorded:
            return value
        if type(value) is str:
            if "<redacted:" not in value:
                return value
            return rules.PLACEHOLDER.sub(lambda found: self._recorded.get(found[0], found[0]), value)
        if type(value) is dict:
            return {key: self.translated(item) for key, item in value.items()}
        return [self.translated(item) for item in value] if type(value) is list else value

    def learn(self, request: Request, call: RecordedCall) -> None:
        """A request is this one of the recording: so the secrets at the same places are the same."""
        now = request.placeholders()
        if any(map(_is_new, now)):
            with self._lock:
                for one, other in zip(now, call.request.placeholders(), strict=False):
                    if _is_new(one):
                        self._recorded.setdefault(one, other)
