"""What the Tab key offers after each verb of the prompt."""

from __future__ import annotations

import pytest

from reenact.cli.commands.debug import VERBS
from reenact.cli.output import Output
from reenact.cli.repl.keyboard import completions
from reenact.cli.repl.session import Session, Verbs
from reenact.debugger.stepper import Stepper
from reenact.recording.recording import Recording
from reenact.testing import write_trace


@pytest.fixture
def session(tmp_path):
    path = write_trace(
        tmp_path / "run.jsonl", [("tool_call", {"name": "search", "args": {"city": "Lisbon"}})]
    )
    session = Session(Stepper(lambda: Recording.load(path)), Verbs(VERBS), Output())
    session.stepper.mark("here")
    session.stepper.stops.add("error")
    return session


@pytest.mark.parametrize(
    "before, word, offered",
    [
        ("", "unt", ["unt", "until"]),
        ("h ", "tb", ["tbreak"]),
        ("j ", "@", ["@error", "@here"]),
        ("unti ", "f", ["first"]),
        ("b ", "tool:", ["tool:search"]),
        ("n; b ", "lo", ["loop>3"]),
        ("cl ", "", ["1"]),
        ("p ", "args.", ["args.city"]),
        ("ctx ", "", []),
        ("n ", "", []),
        ("nonsense ", "", []),
    ],
)
def test_words_follow_from_the_usage_of_the_verb(session, before, word, offered):
    assert completions(session, before, word) == offered
