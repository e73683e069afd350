"""``python -m reenact.playback.agent_parent LAUNCH FINISHED``: the parent of one agent, for ``launch.Apart``.

It reads what to start from one file and writes how that ended to another. If the program that wanted the run
dies, the agent is ended: a fork would go on calling a model for nobody.
"""

from __future__ import annotations

import os
import signal
import sys

from .launch import Launch, supervise_here


class _Orphaned:
    """Says how to end the agent once the caller is gone."""

    def __init__(self) -> None:
        self._caller = os.getppid()
        self._signals = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]

    def __call__(self) -> int | None:
        is_gone = os.getppid() != self._caller
        return self._signals.pop() if is_gone and self._signals else None


def main() -> None:
    source, result = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        launch = Launch.from_text(file.read())
    finished = supervise_here(launch, _Orphaned())
    with open(f"{result}.part", "w", encoding="utf-8") as file:
        file.write(finished.text())
    os.rename(f"{result}.part", result)


if __name__ == "__main__":
    main()
