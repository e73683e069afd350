"""Which tests are for this environment."""

from __future__ import annotations

import os

collect_ignore = [] if os.environ.get("REENACT_TRACERS") else ["apart"]
"""Tracers have an environment of their own: `make test-neighbours`."""
