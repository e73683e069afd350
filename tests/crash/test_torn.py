"""Torn tails and failing writes: what was acknowledged stays, what comes after is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reenact import Trace, read_events
from support.examples import long
from support.harness import lines, run_script


def test_the_run_after_a_torn_tail_loses_nothing_wherever_the_tail_was_cut(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    with Trace(whole, redact=False) as trace:
        trace.step("first", text="é\u2028\n")
    data = whole.read_bytes()
    begin = data.rstrip(b"\n").rindex(b"\n") + 1
    before = len(data[:begin].splitlines())
    for cut in range(begin, len(data) + 1):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(data[:cut])
        with Trace(path, redact=False) as trace:
            trace.step("second")
        found = lines(path)
        is_whole = cut >= len(data) - 1
        assert len(found.torn) == (not is_whole and cut > begin)
        new = [each for each in found.events if each["run"] == trace.run_id]
        assert [each["kind"] for each in new] == ["run.start", "second", "run.end"]
        assert len(found.events) == before + is_whole + 3
        assert path.read_bytes().startswith(data[:cut]), "what was there is never changed"
        path.unlink()


def test_the_reader_names_the_torn_line_and_gives_all_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with Trace(path, redact=False) as trace:
        trace.step("first")
        trace.step("second")
    path.write_bytes(path.read_bytes()[:-10])
    with Trace(path, redact=False) as again:
        again.step("third")
    findings: list[object] = []
    kinds = [event.kind for event in read_events(path, on_finding=findings.append)]
    assert kinds == ["run.start", "first", "second", "run.start", "third", "run.end"]
    assert len(findings) >= 1


NTH = """
import errno, os, sys
fail_at, how = int(sys.argv[1]), sys.argv[2]
real, calls = os.write, 0
def write(fd, data):
    global calls
    if fd <= 2:
        return real(fd, data)
    calls += 1
    if calls == fail_at:
        if how == "raises":
            raise OSError(errno.ENOSPC, "No space left on device")
        if how == "interrupted":
            raise OSError(errno.EIO, "Input/output error")
        if how == "short":
            return real(fd, bytes(data)[: len(data) // 2])
    if calls == fail_at + 1 and how == "short then raises":
        raise OSError(errno.ENOSPC, "No space left on device")
    if calls == fail_at and how == "short then raises":
        return real(fd, bytes(data)[: len(data) // 2])
    return real(fd, data)
os.write = write
from reenact import Tap
import reenact.capture.recorder.file
reenact.capture.recorder.file.STALL_S = 60.0  # other tests have a device that stalls
acknowledged = []
tap = Tap("run.jsonl", redact=False)
messages = []
for turn in range(4):
    messages.append({"role": "user", "content": f"question {turn}"})
    lost = tap.lost
    call = tap.record_model_request({"model": "m", "messages": messages})
    if tap.lost == lost: acknowledged.append(["model.request", call])
    lost = tap.lost
    tap.record_model_response({"role": "assistant", "content": f"answer {turn}"}, call=call)
    if tap.lost == lost: acknowledged.append(["model.response", call])
    messages.append({"role": "assistant", "content": f"answer {turn}"})
    lost = tap.lost
    tool = tap.record_tool_call("search", {"q": "x" * 5000, "turn": turn})
    if tap.lost == lost: acknowledged.append(["tool.called", tool])
    lost = tap.lost
    tap.record_tool_result("search", "y" * 100_000 + str(turn), None, call=tool)
    if tap.lost == lost: acknowledged.append(["tool.result", tool])
tap.close()
import json
print(json.dumps({"acknowledged": acknowledged, "lost": tap.lost, "calls": calls}))
"""


@pytest.mark.long
@pytest.mark.parametrize("how", [long("raises"), long("short"), "short then raises", long("interrupted")])
def test_the_nth_write_fails_for_every_n(how: str, tmp_path: Path) -> None:
    """Lines and blobs alike: the file holds what was acknowledged, stays readable, and says what is missing."""
    nth = 0
    while True:
        nth += 1
        folder = tmp_path / str(nth)
        folder.mkdir()
        finished = run_script(NTH, nth, how, cwd=folder)
        assert finished.code == 0, finished.err
        printed = json.loads(finished.out)
        if printed["calls"] < nth:
            break
        found = lines(folder / "run.jsonl")
        present = [[each["kind"], each["call"]] for each in found.user()]
        assert present == printed["acknowledged"], f"write {nth}"
        assert len(found.torn) <= (how == "short then raises")
        ends = found.of("run.end")
        if ends:
            assert ends[0]["dropped"] == printed["lost"]
        else:
            assert printed["lost"] == 1, "the end itself was the write that failed"
        assert len(finished.ours) <= 1 and finished.err.splitlines() == finished.ours
        rebuilt = [event for event in read_events(folder / "run.jsonl") if event.kind == "model.request"]
        bodies = [event.payload["body"]["messages"] for event in rebuilt]
        expected = [
            {"role": role, "content": f"{text} {turn}"}
            for turn in range(4)
            for role, text in (("user", "question"), ("assistant", "answer"))
        ]
        for body in bodies:
            assert body == expected[: len(body)] and len(body) % 2 == 1
    assert nth > 18, "every line and blob was made to fail once"
