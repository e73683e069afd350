from __future__ import annotations

import threading

from reenact.tracefile.follow import follow
from support.written import TS, Pen, W, worked_example


class Watching:
    """Follows a path in a thread and lets the test wait for what was seen."""

    def __init__(self, path, **options):
        self.events, self.findings, self.done = [], [], False
        self.changed = threading.Condition()
        self.rounds = 0
        self.stream = follow(path, poll=0.002, stop=self.stop, on_finding=self.findings.append, **options)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        for event in self.stream:
            with self.changed:
                self.events.append(event)
                self.changed.notify_all()

    def stop(self):
        with self.changed:
            self.rounds += 1
            self.changed.notify_all()
        return self.done

    def wait_a_round(self):
        with self.changed:
            until = self.rounds + 2
            assert self.changed.wait_for(lambda: self.rounds >= until, timeout=30)

    def wait_for(self, count):
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.events) >= count, timeout=30), self.events
            return self.events[count - 1]

    def finish(self):
        self.done = True
        self.thread.join(30)
        assert not self.thread.is_alive()
        return self.events


def append(path, *lines):
    with path.open("ab") as file:
        file.write(b"".join(lines))


def test_events_are_seen_as_they_are_written(tmp_path):
    path, pen = tmp_path / "t.jsonl", Pen()
    watching = Watching(path)
    watching.wait_a_round()  # the file does not exist yet
    append(path, pen("run.start", v="1.0"), pen("note", x=1))
    assert watching.wait_for(2).x == 1
    append(path, pen("note", x=2))
    assert watching.wait_for(3).x == 2
    assert [e.index for e in watching.finish()] == [None, 0, 1]
    assert watching.findings == []


def test_a_torn_tail_is_waited_for(tmp_path):
    path, pen = tmp_path / "t.jsonl", Pen()
    watching = Watching(path, from_start=True)
    append(path, pen("run.start", v="1.0"))
    watching.wait_for(1)
    line = pen("note", x="y" * 50)
    append(path, line[:30])
    watching.wait_a_round()
    append(path, line[30:])
    assert watching.wait_for(2).x == "y" * 50
    watching.finish()
    assert watching.findings == []


def test_what_is_there_already_is_skipped_unless_requested(tmp_path):
    path, pen = tmp_path / "t.jsonl", Pen()
    line = pen("note", x=3)
    append(path, pen("run.start", v="1.0"), pen("note", x=1))
    watching = Watching(path)
    watching.wait_a_round()
    append(path, line)
    assert watching.wait_for(1).x == 3
    assert watching.finish()[0].index is None
    events = list(follow(path, from_start=True, stop=lambda: True))
    assert [e.x for e in events][:2] == [None, 1]


def test_segments_processes_and_a_recreated_file_are_followed(tmp_path):
    path, pen = tmp_path / "t.jsonl", Pen()
    append(path, pen("run.start", v="1.0"))
    watching = Watching(path, from_start=True)
    watching.wait_for(1)
    append(tmp_path / "t.s0001.jsonl", pen("run.more", v="1.0", segment=1), pen("note", x="segment"))
    assert watching.wait_for(3).x == "segment"
    child = Pen(w="0c0c0c0c", ts=TS + 1)
    append(tmp_path / "t.p0c0c0c0c.jsonl", child("proc.start", v="1.0", parent_w=W), child("note", x="child"))
    assert watching.wait_for(5).x == "child"
    again = Pen(run="again", w="2")
    path.unlink()
    append(path, again("run.start", v="1.0"), again("note", x="again"))
    assert watching.wait_for(7).x == "again"
    assert watching.events[6].payload["x"] == "again"
    watching.finish()


def test_a_folder_is_followed_with_the_runs_that_appear_in_it(tmp_path):
    watching = Watching(tmp_path)
    watching.wait_a_round()
    for name in "ab":
        pen = Pen(run=name, w=name)
        append(tmp_path / f"{name}.jsonl", pen("run.start", v="1.0"), pen("note", x=name))
    watching.wait_for(4)
    assert {e.run_id for e in watching.finish()} == {"a", "b"}


def test_requests_of_a_followed_run_are_rebuilt(tmp_path):
    events = list(follow(worked_example(tmp_path), from_start=True, stop=lambda: True))
    request = [event for event in events if event.kind == "model.request"][1]
    assert len(request.payload["body"]["messages"]) == 3
