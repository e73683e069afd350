"""The plan of a replay, passed to the agent's processes as JSON in an environment variable."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

from ..matching.equality_rules import STRICT

VARIABLE = "REENACT_REPLAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A recording, and how to replay it."""

    path: str
    """The trace file."""
    run: str
    report: str
    """The file that the agent's processes write their report to (``report.Report``)."""
    scratch: str
    """The folder that the agent may write to."""
    mode: str = STRICT
    live: tuple[str, ...] = ()
    """Tools that run instead of being answered."""
    relaxed: bool = False
    """True if the agent may change files and start programs."""
    guarded: bool = True
    """False if it may also open connections."""
    open: tuple[str, ...] = ()
    """Further folders that the agent may write to."""
    models: tuple[int, ...] = ()
    """Ports of this machine at which the recorded model listened (``guard.Guard``)."""
    blobs: str | None = None
    """A further folder with blobs."""
    inside: tuple[tuple[str, str], ...] = ()
    """Files and ids of the runs inside it."""
    fork: dict[str, Any] = field(default_factory=dict)
    """For a fork: where it goes live, and how it continues (``live.Fork``)."""

    @property
    def mark(self) -> str:
        """The file that exists once a fork has passed its cut."""
        return os.path.join(self.scratch, "passed")

    def text(self) -> str:
        """Return it as the variable's value."""
        return json.dumps(asdict(self))

    @classmethod
    def here(cls) -> Plan:
        """Return the plan of this process."""
        fields = json.loads(os.environ[VARIABLE])
        return cls(**{**fields, "live": tuple(fields["live"])})
