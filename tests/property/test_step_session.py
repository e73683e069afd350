"""StepSession against a plain list with a cursor, whatever is called in whatever order."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from reenact import Debugger, Trace
from support.examples import up_to

KINDS = st.sampled_from(["note", "plan", "tool_call"])


class Stepping(RuleBasedStateMachine):
    """The model: events are 0..n-1, ``at`` is the gap the cursor stands in, ``shown`` what was given last."""

    @initialize(kinds=st.lists(KINDS, max_size=12))
    def a_run(self, kinds: list[str]) -> None:
        self.folder = tempfile.mkdtemp()
        trace = Trace(Path(self.folder) / "run.jsonl")
        for number, kind in enumerate(kinds):
            trace.step(kind, name="t", number=number)
        trace.close()
        dbg = Debugger.load(Path(self.folder) / "run.jsonl")
        self.session = dbg.step_session()
        self.list = [event.payload["number"] for event in dbg.all()]
        self.kinds = kinds
        self.at, self.shown = 0, None

    def expect(self, event: object, number: int | None) -> None:
        assert (None if event is None else event.number) == number  # type: ignore[attr-defined]
        assert (self.session.message is None) == (number is not None)

    def show(self, number: int) -> int | None:
        if 0 <= number < len(self.list):
            self.at, self.shown = number + 1, number
            return number
        self.at, self.shown = (0 if number < 0 else len(self.list)), None
        return None

    @rule()
    def next(self) -> None:
        self.expect(self.session.next(), self.show(self.at))

    @rule()
    def back(self) -> None:
        before = self.at - 1 if self.shown is None else self.shown - 1
        self.expect(self.session.back(), self.show(before))

    @rule(to=st.integers(-20, 20), as_text=st.booleans())
    def jump(self, to: int, as_text: bool) -> None:
        there = min(max(to + len(self.list) if to < 0 else to, 0), len(self.list))
        self.expect(self.session.jump(str(to) if as_text else to), there if there < len(self.list) else None)
        self.at, self.shown = there, None

    @rule(to=st.sampled_from(["", "x", "turn:9", "call:zz", "@error", None, 1.5, object(), "٣", "--1"]))
    def jump_nowhere(self, to: object) -> None:
        self.expect(self.session.jump(to), None)  # type: ignore[arg-type]

    @rule(ahead=st.integers(-15, 15))
    def peek(self, ahead: int) -> None:
        there = self.at + ahead - 1
        self.expect(self.session.peek(ahead), there if 0 <= there < len(self.list) else None)

    @rule(kind=KINDS, back=st.booleans())
    def find(self, kind: str, back: bool) -> None:
        before = self.at - 1 if self.shown is None else self.shown - 1
        order = range(before, -1, -1) if back else range(self.at, len(self.list))
        found = next((number for number in order if self.kinds[number] == kind), None)
        self.expect(self.session.find(lambda e: e.kind == kind, back=back), found)
        if found is not None:
            self.show(found)

    @rule(wrong=st.sampled_from(["(", "no such text at all", 3]))
    def find_nothing(self, wrong: object) -> None:
        self.expect(self.session.find(wrong), None)  # type: ignore[arg-type]

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    @invariant()
    def stands_where_it_should(self) -> None:
        if hasattr(self, "session"):
            assert self.session.position == self.at and len(self.session) == len(self.list)
            current = self.session.current
            assert (None if current is None else current.number) == self.shown


TestStepping = Stepping.TestCase
TestStepping.settings = settings(up_to(60), stateful_step_count=30, deadline=None)
