"""Print how many cells of each SDK go the same when their recordings answer: python -m tests.sdk.replayed_share"""

from __future__ import annotations

import os
import socket
import tempfile
import warnings
from collections import Counter
from pathlib import Path

from support.provider import Provider

from . import offline
from .test_sdk_replayed import CALLABLE, both


def main() -> None:
    warnings.simplefilter("ignore")
    every, equal = Counter[str](), Counter[str]()
    with Provider() as provider, socket.socket() as held, tempfile.TemporaryDirectory() as folder:
        held.bind(("127.0.0.1", 0))
        environment = offline.environment(Path(folder))
        os.environ.clear()
        os.environ.update(environment)
        for number, cell in enumerate(CALLABLE):
            place = Path(folder, str(number))
            place.mkdir()
            every[cell.sdk] += 1
            try:
                first, again, report = both(cell, provider, place, held.getsockname()[1])
            except BaseException as error:
                print(f"{cell}: {error!r}"[:200])
                continue
            if first == again and not report:
                equal[cell.sdk] += 1
            else:
                print(cell, *report)
    for sdk, count in every.items():
        print(f"{sdk:22} {equal[sdk]:4} of {count}")
    print(f"{'all':22} {equal.total():4} of {every.total()}")


if __name__ == "__main__":
    main()
