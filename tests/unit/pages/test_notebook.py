"""What a notebook shows of a result: no script, nothing of a trace is markup, and not much of it."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import reenact
from reenact import Debugger, Recording
from support.hostile_texts import BIDI
from support.many import agent
from support.runs_to_debug import five_turns
from support.visits import failing, hostile

ELEMENTS = {
    "b", "code", "del", "details", "div", "h1", "h3", "ins", "li", "p", "pre", "span", "style", "summary",
    "table", "tbody", "td", "tr", "ul",
}  # fmt: skip


class Read(HTMLParser):
    """The elements, attributes and text that a browser would find."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self._in_style = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._in_style else data


def shown(value: Any) -> Read:
    html = value._repr_html_()
    found = Read(html)
    assert found.elements <= ELEMENTS and found.attributes <= {"class", "open", "title"}
    assert len(html) < 100_000 and html.count("<style>") == 1
    style = html[: html.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert not set(BIDI) & set(found.text)
    return found


def test_a_run_shows_how_it_ended_and_its_events(tmp_path: Path) -> None:
    recording = Recording.load(failing(tmp_path / "failing.jsonl"))
    text = shown(recording).text
    assert "FAILED" in text and "ValueError: no" in text and "2 turns" in text and "look(q=1)" in text
    assert shown(Debugger(recording)).text == text
    five_turns(tmp_path / "five.jsonl")
    long = shown(Recording.load(tmp_path / "five.jsonl")).text
    assert "… 18 events" in long and 'search(q="0.1")' in long and 'search(q="4.1")' in long


def test_an_event_and_a_call_show_what_happened(tmp_path: Path) -> None:
    recording = Recording.load(failing(tmp_path / "failing.jsonl"))
    by_kind = {event.kind: event for event in recording.events}
    assert "ValueError: no" in shown(by_kind["tool.result"]).text
    assert 'look({"q": 1})' in shown(by_kind["model.response"]).text
    assert "claude" in shown(by_kind["model.request"]).text
    tools = [call for call in recording.calls() if call.kind == "tool"]
    assert "found" in shown(tools[0]).text and "ValueError: no" in shown(tools[1]).text
    assert "turn 0" in shown(recording.calls()[0]).text


def test_comparisons_show_the_verdict_and_the_first_difference(tmp_path: Path) -> None:
    left, right = agent(tmp_path / "a.jsonl"), agent(tmp_path / "b.jsonl", tools=("search", "book"))
    text = shown(reenact.diff(left, right)).text
    assert "different" in text and "book()" in text
    assert "same" in shown(reenact.diff(left, left)).text
    turns = shown(Debugger.load(failing(tmp_path / "failing.jsonl")).diff_turns(1, 2)).text
    assert "different" in turns and "+ assistant" in turns


def test_a_hostile_run_stays_text(tmp_path: Path) -> None:
    recording = Recording.load(hostile(tmp_path / "a.jsonl"))
    hostile(tmp_path / "b.jsonl")
    assert "<script>" in shown(recording).text
    for value in (
        *recording.events,
        *recording.calls(),
        reenact.diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl"),
    ):
        shown(value)


def test_a_run_whose_file_has_gone_is_named(tmp_path: Path) -> None:
    path = failing(tmp_path / "failing.jsonl")
    recording = Recording.load(path)
    path.unlink()
    assert "Recording: cannot be shown (FileNotFoundError" in shown(recording).text
