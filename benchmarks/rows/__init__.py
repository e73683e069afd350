"""The rows of the table by name; each module has ``measure(quick, folder) -> Table``.

``STDLIB_ONLY`` rows run in an interpreter where orjson and RE2 cannot be imported.
"""

from __future__ import annotations

ROWS = {
    "calibration": "what this machine does to times",
    "run": "a 200-turn run, time inside recording calls",
    "run-fast": "the same with orjson and RE2",
    "growth": "request k of a conversation that grows or is edited",
    "event-fast": "one event with orjson and RE2",
    "event-stdlib": "one event, stdlib only",
    "bytes": "bytes on disk",
    "startup": "imports and the first event",
    "concurrent": "1,000 runs at once in one asyncio process",
    "reader": "reading a large file and a large folder",
    "stats": "sums over a folder of runs",
    "desk": "commands on many and on large files",
    "viewer": "the run page on 1,000 to 1,000,000 events",
    "diff": "two long runs compared",
    "rebuild": "rebuilding a late request",
    "alternatives": "one record() beside the alternatives",
    "crash": "events kept after SIGKILL",
    "instant": "a call of a real SDK and an event of its stream, answered at once",
    "sdk-call": "a call of a real SDK over the network, beside rivals",
    "chunk": "one event of a stream over the network, beside rivals",
    "watched": "watched functions, threads and tasks that make no call",
    "wire-bytes": "bytes on disk after 200 turns through the wire",
    "wire-concurrent": "1,000 runs at once through one shared client",
    "run-start": "the start of an interpreter under reenact run",
    "replay": "running a recorded agent again",
}
STDLIB_ONLY = frozenset({"run", "event-stdlib"})
NEEDS_FAST = frozenset({"event-fast", "run-fast"})
