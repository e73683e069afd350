"""Runs the Python blocks of one page, given one JSON text per line on stdin, in one namespace.

A child program of test_code_blocks. After each block it prints the mark it was started with, and
``ok`` or ``failed``.
"""

from __future__ import annotations

import builtins
import json
import os
import sys
import traceback


def main() -> None:
    mark = sys.argv[1]
    namespace = {"__name__": "__main__", "__builtins__": builtins}
    # The page's own reads of stdin must not eat the next block.
    source = os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for line in source:
        where, code = json.loads(line)
        verdict = "ok"
        try:
            exec(compile(code, where, "exec"), namespace)
        except BaseException:
            traceback.print_exc()
            verdict = "failed"
        sys.stderr.flush()
        sys.stdout.write(f"\n{mark} {verdict}\n")
        sys.stdout.flush()


main()
