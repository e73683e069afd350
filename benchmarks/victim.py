"""A process to be killed: records numbered events and acknowledges each on stdout once record() returned.

``python -m benchmarks.victim NAME PATH N``; run by the crash row, never by itself.
"""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from pathlib import Path

from .baselines import available
from .ours import ReenactTrace
from .workload import payloads


def mark(number: int) -> str:
    return f"mark-{number:06d}-end"


def main() -> None:
    name, path, wanted = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    make = partial(ReenactTrace, path) if name == "reenact" else partial(available([name])[0][name], path)
    recorder = make()
    for number, fields in enumerate(payloads(300, wanted)):
        recorder.record("note", {**fields, "mark": mark(number)})
        os.write(1, b"%d\n" % number)
    time.sleep(60)


if __name__ == "__main__":
    main()
