"""Play an environment's cells and print what the program saw, a line each; this runs inside the environment.

`python -m versions.play NAME URL` plays bare, or recorded by whoever started it; with a third argument each client is
wrapped by a tap that writes there.
"""

from __future__ import annotations

import gc
import json
import sys
from contextlib import ExitStack
from typing import Any

from sdk import offline
from sdk.observe import Plain, _watch
from sdk.table import untouched

from .cells import cells_of, environments


def main(name: str, root: str, trace: str = "") -> None:
    plain = Plain(int(root.rpartition(":")[2]))
    with ExitStack() as stack:
        hand: Any = untouched
        if trace:
            from reenact import Tap

            hand = stack.enter_context(Tap(trace)).wrap
        stack.enter_context(offline.guarded())
        for number, cell in enumerate(cells_of(environments()[name])):
            site = cell.site(f"{root}/s/{cell.scenario}@{number}", hand)
            seen = plain.value(_watch(cell, site, lambda: True))
            print(json.dumps([str(cell), seen]), flush=True)
            gc.collect()  # old SDKs leave an answer to the collector


if __name__ == "__main__":
    main(*sys.argv[1:])
