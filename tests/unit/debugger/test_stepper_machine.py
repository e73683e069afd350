"""The stepper against a plain list: whatever is done in whatever order, both are at the same event."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.examples import up_to
from support.stepped import Writer, stepper_of

LANES = ("main", "one", "two")
KINDS = {
    "error": lambda row: row.get("error", False),
    "tool:search": lambda row: row["kind"] == "tool.called" and row["tool"] == "search",
    "tool:b*": lambda row: row["kind"] == "tool.called" and row["tool"].startswith("b"),
    'event_type == "model.request"': lambda row: row["kind"] == "model.request",
    "plan == 1": lambda row: row.get("plan") == 1,
    "text~word[12]": lambda row: row.get("word") in ("word1", "word2"),
}
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "tool", "note"]), st.sampled_from(LANES), st.integers(0, 3), st.booleans()
    ),
    max_size=12,
)


def written(path, events):
    """Write a run, and return its events as rows."""
    writer = Writer(path)
    for what, lane, number, fails in events:
        if what == "ask":
            writer.ask(lane)
            writer.answer(lane, error=ValueError("no") if fails else None)
        elif what == "tool":
            writer.ask(lane)
            writer.answer(lane)
            tool = ("search", "book")[number % 2]
            id = writer.call(tool, {"n": number}, lane)
            writer.result(tool, id, number, ValueError("no") if fails else None, lane)
        else:
            writer.tap.recorder().emit("note", {"plan": number, "word": f"word{number}"})
            writer.rows.append({"kind": "note", "lane": "main", "plan": number, "word": f"word{number}"})
    writer.close()
    return writer.rows


class SteppingMachine(RuleBasedStateMachine):
    @initialize(events=EVENTS)
    def begin(self, events):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "run.jsonl"
        self.rows = written(path, events)
        self.stepper = stepper_of(path)
        self.at = 0
        self.trail, self.trail_at = [0], 0
        self.points = {}
        self.watching = False

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def goes(self, to):
        """Move the list's cursor as any move does."""
        if to is not None and to != self.at:
            self.at = to
            del self.trail[self.trail_at + 1 :]
            self.trail.append(to)
            self.trail_at += 1

    def beyond(self, direction):
        """The indices ahead, nearest first."""
        return range(self.at + 1, len(self.rows)) if direction > 0 else range(self.at - 1, -1, -1)

    def changes(self):
        value, found = None, []
        for index, row in enumerate(self.rows):
            if "plan" in row and row["plan"] != value:
                found.append(index)
                value = row["plan"]
        return found

    def is_stop(self, index):
        hit = any(KINDS[text](self.rows[index]) for text in self.points.values())
        return hit or (self.watching and index in self.changes())

    @rule(direction=st.sampled_from([1, -1]))
    def step(self, direction):
        self.goes(next(iter(self.beyond(direction)), None))
        self.stepper.step(direction)

    @rule(direction=st.sampled_from([1, -1]))
    def next_in_lane(self, direction):
        if self.rows:
            lane = self.rows[self.at]["lane"]
            self.goes(next((i for i in self.beyond(direction) if self.rows[i]["lane"] == lane), None))
        self.stepper.next(direction)

    @precondition(lambda self: self.rows)
    @rule(number=st.integers(0, 200))
    def jump(self, number):
        index = number % len(self.rows)
        self.goes(index)
        self.stepper.go(f"#{index}")

    @precondition(lambda self: self.rows)
    @rule(number=st.integers(0, 200))
    def jump_from_the_end(self, number):
        back = number % len(self.rows) + 1
        self.goes(len(self.rows) - back)
        self.stepper.go(f"-{back}")

    @rule(direction=st.sampled_from([1, -1]))
    def retrace(self, direction):
        to = self.trail_at + direction
        if 0 <= to < len(self.trail):
            self.trail_at = to
            self.at = self.trail[to]
        self.stepper.retrace(direction)

    @rule(text=st.sampled_from(sorted(KINDS)))
    def set_breakpoint(self, text):
        if text.startswith("plan") and not self.has_plans:
            return  # a field that no event has is an error
        self.points[self.stepper.stops.add(text).number] = text

    @precondition(lambda self: self.points)
    @rule(data=st.data())
    def clear_breakpoint(self, data):
        number = data.draw(st.sampled_from(sorted(self.points)))
        del self.points[number]
        self.stepper.stops.remove(number)

    @property
    def has_plans(self):
        return any("plan" in row for row in self.rows)

    @precondition(lambda self: not self.watching and self.has_plans)
    @rule()
    def watch(self):
        self.watching = True
        self.stepper.stops.watch("plan")

    @rule(direction=st.sampled_from([1, -1]))
    def run(self, direction):
        ahead = list(self.beyond(direction))
        stop = next((index for index in ahead if self.is_stop(index)), None)
        move = self.stepper.run(direction)
        assert bool(move.reasons) == (stop is not None)
        self.goes(stop if stop is not None else ahead[-1] if ahead else None)

    @rule(direction=st.sampled_from([1, -1]))
    def there_and_back(self, direction):
        """After continuing to a stop, going back and forth again comes back to it."""
        if not self.stepper.run(direction).reasons:
            self.goes(self.stepper.index)
            return
        stop = self.stepper.index
        self.goes(stop)
        for way in (-direction, direction):
            self.stepper.run(way)
            self.goes(self.stepper.index)
        assert self.stepper.index == stop

    @rule(direction=st.sampled_from([1, -1]), word=st.sampled_from(["word1", "word3", "wo.d0", "nowhere"]))
    def find(self, direction, word):
        plain = word.replace(".", "r")
        self.goes(next((i for i in self.beyond(direction) if self.rows[i].get("word") == plain), None))
        self.stepper.find(word, direction)

    @invariant()
    def both_are_at_the_same_event(self):
        if not hasattr(self, "rows"):
            return
        assert len(self.stepper.events) == len(self.rows)
        assert self.stepper.index == self.at
        if self.rows:
            assert self.stepper.event.kind == self.rows[self.at]["kind"]
            assert self.stepper.lane_at(self.at) == self.rows[self.at]["lane"]
            turns = itertools.accumulate(row["kind"] == "model.request" for row in self.rows)
            row = self.rows[self.at]
            if row["kind"] in ("model.request", "note"):
                assert self.stepper.turn_at(self.at) == list(turns)[self.at]


TestStepping = SteppingMachine.TestCase
TestStepping.settings = settings(up_to(60), stateful_step_count=30, deadline=None)
