"""Devices that fill up, vanish, refuse, stall or lie: the agent goes on, one line on stderr, the loss is counted."""

from __future__ import annotations

import os
import resource
import subprocess
from pathlib import Path

import pytest

from reenact.tracefile.repair import repair
from support.forked import type_in
from support.harness import Finished, Lines, environment, lines, only_file, run_script

RECORD = """
import os, sys
from reenact import StepLog, Tap, Trace
import reenact.capture.recorder.file
reenact.capture.recorder.file.STALL_S = 60.0  # other tests have a device that stalls
{before}
trace = Trace({path!r}, redact=False{options})
for seq in range({count}):
    {during}
    trace.step("work", seq=seq, payload="x" * 100)
trace.close()
print("went on", trace.lost)
"""


def record(
    tmp_path: Path,
    path: object,
    *,
    before: str = "",
    during: str = "pass",
    count: int = 100,
    options: str = "",
    **more: str,
) -> tuple[Finished, int]:
    """Record ``count`` steps; returns how the agent ended and how many events it was told are lost."""
    source = RECORD.format(path=str(path), before=before, during=during, count=count, options=options)
    finished = run_script(source, cwd=tmp_path, **more)
    assert finished.code == 0, finished.err
    assert finished.out.startswith("went on "), finished.err
    assert len(finished.ours) <= 1 and finished.err.splitlines() == finished.ours, finished.err
    return finished, int(finished.out.split()[2])


def test_a_full_device_costs_the_events_and_one_line(tmp_path: Path) -> None:
    finished, lost = record(tmp_path, "/dev/full")
    assert len(finished.ours) == 1
    assert "No space left on device" in finished.ours[0]
    assert lost == 102  # with run.start and run.end


def test_a_file_size_limit_leaves_a_readable_file_and_counts_the_rest(tmp_path: Path) -> None:
    before = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))"
    finished, lost = record(tmp_path, tmp_path / "run.jsonl", before=before)
    assert len(finished.ours) == 1 and "File too large" in finished.ours[0]
    found = lines(tmp_path / "run.jsonl")
    assert len(found.torn) <= 1
    assert [each["seq"] for each in found.of("work")] == list(range(len(found.of("work"))))
    assert len(found.events) + lost == 102


def test_space_that_comes_back_is_used_and_the_gap_shows(tmp_path: Path) -> None:
    finished, lost = record(
        tmp_path,
        tmp_path / "run.jsonl",
        before="import resource; limit = lambda n: resource.setrlimit(resource.RLIMIT_FSIZE, (n, resource.RLIM_INFINITY))",
        during="limit(3000) if seq == 5 else limit(10**6) if seq == 50 else None",
    )
    found = lines(tmp_path / "run.jsonl")
    seqs = [each["seq"] for each in found.of("work")]
    assert seqs[-50:] == list(range(50, 100))
    assert len(found.torn) <= 1
    assert found.one("run.end")["dropped"] == lost == 100 - len(seqs)
    steps = [each["step"] for each in found.events]
    assert steps == sorted(set(steps)) and steps[-1] == 102, "lost events keep their numbers"


@pytest.fixture
def small_disk(tmp_path: Path):  # type: ignore[no-untyped-def]
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_disk_that_fills_up_while_recording(small_disk: Path, tmp_path: Path) -> None:
    finished, lost = record(tmp_path, small_disk / "run.jsonl", count=1000, options=", min_free=0.0")
    assert len(finished.ours) == 1
    found = lines(small_disk / "run.jsonl")
    assert len(found.torn) <= 1
    assert lost > 0 and len(found.events) + lost == 1002


def test_a_repair_on_a_full_disk_leaves_nothing_behind(small_disk: Path, tmp_path: Path) -> None:
    record(tmp_path, tmp_path / "run.jsonl", count=1000)
    before = (tmp_path / "run.jsonl").read_bytes()
    assert len(before) > 64 << 10
    with pytest.raises(OSError, match="No space left on device") as why:
        repair(tmp_path / "run.jsonl", small_disk / "copy" / "run.jsonl")
    assert why.value.filename == str(small_disk / "copy" / "run.jsonl")
    assert list(small_disk.iterdir()) == []
    assert (tmp_path / "run.jsonl").read_bytes() == before


FILLS_UP = """
from reenact import Tap
tap, messages = Tap(), []
for number in range(300):
    messages.append({"role": "user", "content": f"{number} " + "x" * 400})
    call = tap.record_model_request({"model": "m", "messages": messages})
    tap.record_model_response({"role": "assistant", "content": "y" * 200, "usage": {"input_tokens": 5, "output_tokens": 3}}, call=call)
print("went on")
"""


@pytest.mark.long
def test_the_last_line_of_a_supervised_run_reports_what_the_file_on_a_full_disk_holds(
    small_disk: Path, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(FILLS_UP)
    done = type_in(["run", "--out", small_disk, "agent.py"], tmp_path, environment(REENACT_MIN_FREE="0"))
    assert done.returncode == 0 and done.stdout == "went on\n", done
    found = Lines(only_file(small_disk))
    calls, answers = len(found.of("model.request")), len(found.of("model.response"))
    assert 0 < calls < 300
    assert done.stderr.splitlines()[-1].endswith(f"ok, {calls} calls, {answers * 8} tokens"), done.stderr
    assert "No space left on device" in done.stderr


def test_min_free_leaves_the_disk_its_space_and_keeps_metadata(small_disk: Path, tmp_path: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(48 << 10))
    finished, lost = record(tmp_path, small_disk / "run.jsonl", count=20, options=", min_free=0.5")
    assert len(finished.ours) == 1 and "min_free=50%" in finished.ours[0]
    assert lost == 0
    found = lines(small_disk / "run.jsonl")
    assert found.one("run.start")["pid"] > 0
    assert [each["seq"] for each in found.of("work")] == list(range(20))
    assert all(each["payload"] == {"$none": True, "bytes": 102} for each in found.of("work"))
    assert "x" * 20 not in (small_disk / "run.jsonl").read_text()


def test_max_bytes_degrades_to_metadata_and_says_so_in_the_trace(tmp_path: Path) -> None:
    finished, lost = record(
        tmp_path,
        tmp_path / "t" / "run.jsonl",
        before="import reenact.capture.recorder.recorder as w; w.CHECK_EVERY_BYTES = 5_000",
        count=300,
        options=", max_bytes=20_000",
    )
    assert len(finished.ours) == 1 and "max_bytes=20,000" in finished.ours[0]
    assert lost == 0
    found = lines(tmp_path / "t" / "run.jsonl")
    found.assert_gapless()
    assert len(found.of("work")) == 300
    assert found.of("work")[0]["payload"] == "x" * 100
    assert found.of("work")[-1]["payload"] == {"$none": True, "bytes": 102}
    note = found.one("proc.note")
    assert note["what"] == "quota" and "20,000" in note["detail"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    finished, lost = record(tmp_path, tmp_path / "taken" / "run.jsonl")
    assert len(finished.ours) == 1
    assert lost == 102
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "ro"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", folder], check=False).returncode:
        folder.chmod(0o500)  # not root: the mode is enough
    try:
        finished, lost = record(tmp_path, folder / "run.jsonl")
    finally:
        subprocess.run(["umount", "-l", folder], check=False, capture_output=True)
        folder.chmod(0o700)
    assert len(finished.ours) == 1
    assert lost == 102


def test_the_default_folder_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    finished = run_script(
        """
import reenact
with reenact.run("trip", redact=False) as run:
    reenact.Trace().step("work")
    reenact.Tap().record_tool_call("t", {})
print("went on")
""",
        cwd=tmp_path,
        REENACT_DIR=str(tmp_path / "taken" / "deeper"),
    )
    assert finished.out == "went on\n", finished.err
    assert finished.err.splitlines() == finished.ours
    assert 1 <= len(finished.ours) <= 2  # the folder, and the file in it


def test_the_working_directory_is_gone(tmp_path: Path) -> None:
    finished = run_script(
        """
import os, tempfile
folder = tempfile.mkdtemp(); os.chdir(folder); os.rmdir(folder)
import reenact
from reenact import StepLog, Tap, Trace
Trace("run.jsonl", redact=False).step("work")
StepLog(run_id="r1", redact=False).record_tool_call("t", {}, "out")
with reenact.run("trip", redact=False):
    Trace().step("work")
@reenact.run
def agent(): return "went on"
print(agent())
""",
        cwd=tmp_path,
    )
    assert finished.out == "went on\n", finished.err
    assert finished.err.splitlines() == finished.ours


@pytest.mark.parametrize("how", ["deleted", "renamed", "folder deleted"])
def test_a_file_that_goes_away_is_begun_anew(how: str, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    act = {
        "deleted": "os.unlink(trace.path)",
        "renamed": "os.rename(trace.path, trace.path + '.old')",
        "folder deleted": "import shutil; shutil.rmtree(os.path.dirname(trace.path))",
    }[how]
    finished, lost = record(
        tmp_path,
        folder / "run.jsonl",
        before="import reenact.capture.recorder.file as files; files.LOOK_EVERY_S = -1.0",
        during=f"if seq == 50: {act}",
    )
    found = lines(folder / "run.jsonl")
    assert [each["seq"] for each in found.of("work")] == list(range(50, 100))
    if how == "renamed":
        assert lost == 0 and not finished.ours
        assert len(lines(folder / "run.jsonl.old").of("work")) == 50
    else:
        assert len(finished.ours) == 1
        assert found.one("run.end")["dropped"] == lost > 0


def test_after_a_rename_the_next_request_is_written_in_full(tmp_path: Path) -> None:
    run_script(
        """
import os
import reenact.capture.recorder.file as files
files.LOOK_EVERY_S = -1.0
from reenact import Tap
tap = Tap("run.jsonl", redact=False)
messages = []
for turn in range(4):
    messages.append({"role": "user", "content": f"turn {turn}"})
    tap.record_model_request({"model": "m", "messages": messages})
    if turn == 1:
        os.rename("run.jsonl", "old.jsonl")
tap.close()
""",
        cwd=tmp_path,
    )
    first, second = lines(tmp_path / "run.jsonl").of("model.request")
    assert "base" not in first and len(first["body"]["messages"]) == 3
    assert second["base"] == first["call"]


def test_an_agent_that_closes_all_descriptors_loses_no_event(tmp_path: Path) -> None:
    _, lost = record(tmp_path, tmp_path / "run.jsonl", during="if seq in (10, 50): os.closerange(3, 4096)")
    assert lost == 0
    found = lines(tmp_path / "run.jsonl")
    assert [each["seq"] for each in found.of("work")] == list(range(100))
    found.assert_gapless()


def test_a_descriptor_that_became_the_agents_own_file_is_never_written_to_or_closed(tmp_path: Path) -> None:
    finished = run_script(
        """
import os
from reenact import Trace
trace = Trace("run.jsonl", redact=False)
trace.step("before")
os.closerange(3, 4096)
mine = [os.open(f"mine{n}", os.O_CREAT | os.O_WRONLY) for n in range(5)]
for n in range(10):
    trace.step("after", seq=n)
trace.close()
for fd in mine:
    os.write(fd, b"mine")
""",
        cwd=tmp_path,
    )
    assert finished.code == 0, finished.err
    assert [(tmp_path / f"mine{n}").read_bytes() for n in range(5)] == [b"mine"] * 5
    assert len(lines(tmp_path / "run.jsonl").of("after")) == 10


def test_a_path_that_is_a_directory_gets_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    _, lost = record(tmp_path, tmp_path / "runs")
    assert lost == 0
    assert len(lines(only_file(tmp_path / "runs")).of("work")) == 100


def test_a_fifo_without_a_reader_neither_blocks_nor_swallows(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    finished, lost = record(tmp_path, tmp_path / "pipe")
    assert len(finished.ours) == 1
    assert lost == 102


def test_a_fifo_with_a_reader_that_stops_reading_loses_what_does_not_fit(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        finished, lost = record(tmp_path, tmp_path / "pipe", count=2000)
        data = os.read(reader, 1 << 20)
    finally:
        os.close(reader)
    (tmp_path / "read.jsonl").write_bytes(data)
    found = lines(tmp_path / "read.jsonl")
    assert len(finished.ours) == 1
    assert len(found.torn) <= 1
    assert [each["seq"] for each in found.of("work")] == list(range(len(found.of("work"))))
    assert 0 < lost == 2002 - len(found.events)


def test_a_fifo_that_loses_its_reader_breaks_no_pipe_of_the_agent(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    script = RECORD.format(
        path=str(tmp_path / "pipe"),
        before="",
        during="if seq == 10: print('ten', flush=True); sys.stdin.readline()",
        count=100,
        options="",
    )
    (tmp_path / "agent.py").write_text(script)
    import sys

    child = subprocess.Popen(
        [sys.executable, "agent.py"], cwd=tmp_path, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline() == "ten\n"
    os.close(reader)
    out, err = child.communicate("go\n", timeout=60)
    assert child.returncode == 0 and out == "went on 91\n", err
    assert len(err.splitlines()) == 1 and "Broken pipe" in err


def test_a_device_that_stalls_holds_up_one_call_and_then_only_a_second_in_all(tmp_path: Path) -> None:
    """The stall is a write call that sleeps: no real device can be made to stall on request."""
    finished = run_script(
        """
import os, time
real_write, stalled = os.write, False
def slow_write(fd, data):
    if stalled and fd > 2:
        time.sleep(0.3)
    return real_write(fd, data)
os.write = slow_write
from reenact import Trace
trace = Trace("run.jsonl", redact=False)
trace.step("before")
stalled = True
begun = time.monotonic()
for seq in range(50):
    trace.step("work", seq=seq)
print(time.monotonic() - begun < 50 * 0.3 / 2)
stalled = False
until = time.monotonic() + 60
while trace._own.sink.queue is not None and time.monotonic() < until:
    time.sleep(0.05)
    trace.step("after")
print(trace._own.sink.queue is None)
trace.step("last")
trace.close()
print(trace.lost)
""",
        cwd=tmp_path,
    )
    assert finished.out.split() == ["True", "True", "0"], finished.out + finished.err
    found = lines(tmp_path / "run.jsonl")
    found.assert_gapless()
    assert [each["seq"] for each in found.of("work")] == list(range(50))
    (note,) = found.stalls
    assert note["kind"] == "proc.note" and note["at_risk_events"] > 0
    assert found.kinds()[-2:] == ["last", "run.end"] and found.one("run.end")["dropped"] == 0


def test_closing_while_the_device_stalls_waits_for_the_queue(tmp_path: Path) -> None:
    finished = run_script(
        """
import os, time
real_write, stalled = os.write, False
def slow_write(fd, data):
    if stalled and fd > 2:
        time.sleep(0.1)
    return real_write(fd, data)
os.write = slow_write
from reenact import Trace
import reenact.capture.recorder.file as stall
stall.PATIENCE_S = 0.0
trace = Trace("run.jsonl", redact=False)
stalled = True
for seq in range(20):
    trace.step("work", seq=seq)
begun = time.monotonic()
trace.close()
print(time.monotonic() - begun < 4.5, trace._own.sink.fd)
unclosed = Trace("unclosed.jsonl", redact=False)
for seq in range(20):
    unclosed.step("work", seq=seq)
""",
        cwd=tmp_path,
    )
    assert finished.out == "True -1\n", finished.out + finished.err
    for name, status in (("run", "ok"), ("unclosed", "unclosed")):
        found = lines(tmp_path / f"{name}.jsonl")
        found.assert_gapless()
        assert len(found.of("work")) == 20
        assert found.one("run.end")["status"] == status


def test_a_queue_that_overflows_or_fails_counts_its_losses(tmp_path: Path) -> None:
    finished = run_script(
        """
import errno, os, time
real_write, mode = os.write, "fine"
def write(fd, data):
    if fd > 2 and mode != "fine":
        time.sleep(0.1)
        while mode == "stuck":
            time.sleep(0.01)
        if mode == "full":
            raise OSError(errno.ENOSPC, "No space left on device")
    return real_write(fd, data)
os.write = write
def written():
    while not trace._own.sink.queue.idle:
        time.sleep(0.01)
from reenact import Trace
import reenact.capture.recorder.file as stall
stall.PATIENCE_S, stall.MAX_QUEUED_EVENTS = 0.0, 10
trace = Trace("run.jsonl", redact=False)
mode = "slow"
while trace._own.sink.queue is None:  # on a busy machine a slow write alone is not taken for a slow device
    trace.step("first")
mode = "full"
for seq in range(5):
    trace.step("failed", seq=seq)
written()
mode = "slow"
trace.step("second")
written()
mode = "stuck"
for seq in range(30):
    trace.step("work", seq=seq)
mode = "fine"
written()
trace.close()
print(trace.lost)
""",
        cwd=tmp_path,
    )
    assert finished.code == 0, finished.err
    lost = int(finished.out)
    found = lines(tmp_path / "run.jsonl")
    end = found.one("run.end")
    assert end["dropped"] == lost
    assert lost >= 5 + 5
    assert end["events"] - lost == len(found.all), "what is not counted as lost is there"
    assert not found.of("failed")


@pytest.mark.parametrize("limit", [8, 40])
def test_an_agent_out_of_descriptors_is_not_disturbed(limit: int, tmp_path: Path) -> None:
    before = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit})); hold = []"
    finished, lost = record(
        tmp_path,
        tmp_path / "run.jsonl",
        before=before
        + "\nwhile len(hold) < 100:\n    try: hold.append(os.open('/dev/null', 0))\n    except OSError: break",
        during="hold and seq == 50 and os.close(hold.pop())",
    )
    assert len(finished.ours) == 1 and "Too many open files" in finished.ours[0]
    found = Lines(tmp_path / "run.jsonl")
    assert [each["seq"] for each in found.of("work")] == list(range(50, 100))
    assert found.one("run.end")["dropped"] == lost == 50


def test_the_file_is_private_to_its_owner(tmp_path: Path) -> None:
    record(tmp_path, tmp_path / "new" / "run.jsonl", before="os.umask(0)")
    assert (tmp_path / "new" / "run.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_the_limits_of_this_machine_allow_these_tests() -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 512
