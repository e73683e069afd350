"""A run as one page that opens from disk: its head, then turn by turn what was new, was said and was done."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..debugger.run_findings import run_findings
from ..debugger.story import Block, bill_of, events_of, story_of
from ..money.ledger import Ledger
from ..recording.prompt import Keys, prompt_of
from ..recording.recording import Recording
from ..tracefile.events.event import Event
from ..tracefile.events.event_text import address
from ..tracefile.events.text import count, plain
from .changed_text import LeftOut, folded
from .document import STYLE, VIEWER_STYLE, document
from .event_card import event_card, piece_html
from .frame import foot
from .html import Html, line, tag
from .run_header import findings_list, run_header

MOST_EVENTS = 2_000
"""Events on one page: those of the first turns and of the last."""


def run_file_page(recording: Recording) -> str:
    """Return the page. It has no script; what it leaves out is stated at its end."""
    left_out = LeftOut()
    story, ledger = story_of(recording), Ledger()
    shown = _within(story.blocks, recording, left_out)
    if not story.is_whole:
        left_out.note(
            "the middle of the run, which is too large for one page; `reenact view` shows all of it"
        )
    turns = _Turns(recording, left_out)
    return document(
        recording.name,
        run_header(recording, story, bill_of(story, ledger)),
        findings_list(run_findings(recording)),
        tag("div", *chain.from_iterable(map(turns.block, shown)), id="turns"),
        foot(left_out, [recording.path], whole="run"),
        styles=(STYLE, VIEWER_STYLE),
        skip_to="turns",
    )


def _within(blocks: list[Block], recording: Recording, left_out: LeftOut) -> list[Block]:
    """Return as many blocks as a page holds: all, else the first two and the last ones."""
    room, last = MOST_EVENTS, list[Block]()
    for block in reversed(blocks[2:]):
        room -= len(_events(block, recording))
        if room < 0:
            left_out.note(f"{count(len(blocks) - 2 - len(last), 'turn')} after the first ones")
            break
        last.insert(0, block)
    return [*blocks[:2], *last]


def _events(block: Block, recording: Recording) -> list[Event]:
    if block.turn is not None:
        return events_of(block, recording)
    indexes = [item for item in block.items if isinstance(item, int)]
    calls = [item for item in block.items if not isinstance(item, int)]
    ends = [event for call in calls for event in (call.begin, call.end) if event is not None]
    return [*(recording.events[index] for index in indexes[:MOST_EVENTS]), *ends]


class _Turns:
    def __init__(self, recording: Recording, left_out: LeftOut) -> None:
        self._recording = recording
        self._left_out = left_out
        self._keys = Keys()
        self._seen: set[str] = set()

    def block(self, block: Block) -> Iterator[Html]:
        """Yield one turn: what was new in its prompt, then its events."""
        lane = "" if block.lane == "main" else f"  lane {plain(block.lane, 60)}"
        yield tag("h2", f"Turn {block.number}" if block.turn is not None else "Outside any turn", lane)
        if block.turn is not None:
            yield from self._new(block)
        for event in _events(block, self._recording):
            at = address(event, self._recording.first_writer)
            card = tag("div", event_card(self._recording, event, self._left_out), class_="card")
            yield card if at in self._seen else tag("div", card, id=f"/e/{at}")
            self._seen.add(at)

    def _new(self, block: Block) -> Iterator[Html]:
        assert block.turn is not None
        found = prompt_of(block.turn, block.before, self._keys, block.run_index, is_far=block.is_far)
        if not found.recorded:
            yield tag("p", "What the model saw is not recorded.", class_="soft")
            return
        for what, how in found.changes:
            head = tag("div", tag("h3", line(what)), class_="facts")
            yield tag("article", head, folded(how, self._left_out), class_="card message role-system")
        for piece in found.new:
            head = tag(
                "div", tag("h3", line(piece.role)), tag("span", "new", class_="mark new"), class_="facts"
            )
            role = piece.role if piece.role in ("user", "assistant", "tool", "system") else "other"
            body = piece_html(piece, self._left_out)
            yield tag("article", head, body, class_=f"card message role-{role}")
