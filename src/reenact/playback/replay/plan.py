"""What an agent's process is told of the recording that answers it: one JSON text in its environment."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Any

from ..matching.rules import STRICT

VARIABLE = "REENACT_REPLAY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A recording, and what is to be done with it."""

    path: str
    """The trace file."""
    run: str
    report: str
    """Where the agent's processes write what happened (``reenacting.Report``)."""
    scratch: str
    """The folder that the agent may write to."""
    mode: str = STRICT
    live: tuple[str, ...] = ()
    """Tools that are not answered but run."""
    relaxed: bool = False
    """True if files and programs are open to the agent."""
    guarded: bool = True
    """False if connections are, too."""
    open: tuple[str, ...] = ()
    """Further folders that the agent may write to."""
    models: tuple[int, ...] = ()
    """Ports of this machine at which the recorded model listened (``guard.Guard``)."""
    blobs: str | None = None
    """Where else blobs are looked for."""
    inside: tuple[tuple[str, str], ...] = ()
    """Files and ids of the runs inside it."""
    fork: dict[str, Any] = field(default_factory=dict)
    """Of a run that goes live somewhere: where, and how it goes on (``going_live.Fork``)."""

    @property
    def mark(self) -> str:
        """The file that is there once a fork is past its cut."""
        return os.path.join(self.scratch, "passed")

    def text(self) -> str:
        """Return it as the variable's value."""
        return json.dumps(asdict(self))

    @classmethod
    def here(cls) -> Plan:
        """Return the plan of this process."""
        told = json.loads(os.environ[VARIABLE])
        return cls(**{**told, "live": tuple(told["live"])})
