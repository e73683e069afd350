"""Record as fast as it goes until killed, and count every event once the recording call has returned.

writer.py FRONT_END PATH COUNTERS FIRST_SLOT THREADS SIZE [LIMIT]
"""

from __future__ import annotations

import mmap
import sys
import threading

import reenact.capture.recorder.file
from reenact import StepLog, Tap, Trace

reenact.capture.recorder.file.STALL_S = (
    60.0  # tried elsewhere: what waits for a device that stalls may be lost
)
front_end, path, counters, first_slot, threads, size = sys.argv[1:7]
limit = int(sys.argv[7]) if len(sys.argv) > 7 else sys.maxsize
with open(counters, "r+b") as file:
    acknowledged = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
# Pieces below the cap for one string, so that the event is in the line and not in a blob.
piece = 'a "b" \\ \n é ' * 40
payload = [piece] * max(1, int(size) // len(piece))


def recorder_of(front_end):
    if front_end == "Trace":
        trace = Trace(path, redact=False)
        return lambda slot, seq: trace.step("tool_call", slot=slot, seq=seq, payload=payload)
    if front_end == "StepLog":
        log = StepLog(path, redact=False)
        return lambda slot, seq: log.record_tool_call("t", {"slot": slot, "seq": seq}, payload, None, 1.5)
    tap = Tap(path, redact=False)

    def call(slot, seq):
        args = {"slot": slot, "seq": seq}
        if seq % 2:
            tap.record_tool_call("t", {**args, "payload": payload})
        else:
            tap.record_tool_result("t", {**args, "payload": payload}, None)

    return call


def work(slot):
    seq = 0
    while seq < limit:
        seq += 1
        record(slot, seq)
        acknowledged[slot] = seq


record = recorder_of(front_end)
slots = range(int(first_slot), int(first_slot) + int(threads))
others = [threading.Thread(target=work, args=(slot,)) for slot in slots[1:]]
for thread in others:
    thread.start()
work(slots[0])
for thread in others:
    thread.join()
