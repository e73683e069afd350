"""Run an agent's script with its tools decorated: `decorating.py SCRIPT ARGS...`."""

from __future__ import annotations

import os
import runpy
import sys

from reenact import Tap

script, *rest = sys.argv[1:]
sys.path.insert(0, os.path.dirname(script))
import work  # noqa: E402  (it stands beside the script)

tap = Tap()
for name in work.TOOLS:
    setattr(work, name, tap.tool(getattr(work, name)))
sys.argv = [script, *rest]
runpy.run_path(script, run_name="__main__")
