"""Run an agent's script with what makes its calls wrapped: `wrapping.py TRACE SCRIPT ARGS...`."""

from __future__ import annotations

import os
import runpy
import sys

from reenact import Tap

trace, script, *rest = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
import work  # noqa: E402  (it stands beside the script)

with Tap(trace) as tap:
    work.hand = tap.wrap  # type: ignore[assignment]
    sys.argv = [script, *rest]
    runpy.run_path(script, run_name="__main__")
