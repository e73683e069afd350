"""A run as one page that opens from disk: its head, then turn by turn what was new, was said and was done."""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Iterator
from itertools import chain

from ...debugger.run_findings import run_findings
from ...debugger.story import Block, bill_of, events_of, story_of
from ...money.ledger import Ledger
from ...recording.event_addresses import failure_of
from ...recording.prompt import Keys, prompt_of
from ...recording.recording import Recording
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import address, describe
from ...tracefile.events.text import count, plain
from ..comparison.changed_text import LeftOut, folded
from ..document import STYLE, VIEWER_STYLE, document
from ..frame import foot
from ..html import Html, join, line, tag
from .event_card import event_card, piece_html
from .run_header import findings_list, run_header

MOST_EVENTS = 20_000
"""Events on one page: those of the first turns and of the last."""
MOST_BYTES = 128 << 20
"""Of a file that is read whole for a page; of a larger one its two ends."""
_UNPACKED = 300
"""Events of a run up to which its page needs no script: beyond, a turn is unpacked when it is opened."""


def run_file_page(recording: Recording) -> str:
    """Return the page; what it leaves out is stated at its end."""
    left_out = LeftOut()
    story = story_of(recording, everything=_is_read_whole(recording))
    shown = _within(story.blocks, recording, left_out)
    if not story.is_whole:
        left_out.note(
            "the middle of the run, which is too large for one page; `reenact view` shows all of it"
        )
    turns = _Turns(recording, left_out)
    head = [
        run_header(recording, story, bill_of(story, Ledger())),
        findings_list(run_findings(recording)),
        _way_to_failure(recording),
    ]
    is_packed = recording.count() > _UNPACKED
    body = _packed(turns, shown) if is_packed else chain.from_iterable(map(turns.block, shown))
    return document(
        recording.name,
        *head,
        tag("div", *body, id="turns"),
        foot(left_out, [recording.path], whole="run"),
        styles=(STYLE, VIEWER_STYLE),
        script="run_file.js" if is_packed else None,
        skip_to="turns",
    )


def _way_to_failure(recording: Recording) -> Html | None:
    failure = failure_of(recording)
    if failure is None:
        return None
    at = address(failure, recording.first_writer)
    return tag("p", tag("a", f"To the failure, event {at}", href=f"#/e/{at}"))


def _is_read_whole(recording: Recording) -> bool:
    size = sum(os.path.getsize(source.path) for source in recording.shelf.sources)
    return recording.count() <= MOST_EVENTS and size <= MOST_BYTES


def _packed(turns: _Turns, blocks: list[Block]) -> Iterator[Html]:
    """Yield the turns folded, each with its HTML as an inert block that is unpacked when it is opened."""
    failure = failure_of(turns.recording)
    places: dict[str, int] = {}
    yield tag("noscript", tag("p", "The turns are packed: the page needs its script to open them."))
    for number, block in enumerate(blocks):
        title, *body = turns.block(block)
        places |= dict.fromkeys(turns.fresh, number)
        is_first = failure is not None and address(failure, turns.recording.first_writer) in turns.fresh
        yield tag(
            "details",
            tag("summary", title, _in_short(block)),
            tag("div"),
            class_="turn",
            data_block=f"block-{number}",
            open=is_first,
        )
        yield _inert(f"block-{number}", join(*body))
    yield _inert("places", json.dumps(places))


def _in_short(block: Block) -> Html | None:
    """Return what happened in a turn, for its line in the list."""
    if block.turn is None or block.turn.response is None:
        return None
    found = describe(block.turn.response)
    words = plain(" ".join(part for part in (found.text, found.error) if part), 160)
    return tag("span", words, tag("small", f" {found.tokens}" if found.tokens else None), class_="in-short")


def _inert(name: str, text: str) -> Html:
    packed = base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 6, mtime=0)).decode()
    return tag("script", Html(packed), type="application/octet-stream", id=name)


def _within(blocks: list[Block], recording: Recording, left_out: LeftOut) -> list[Block]:
    """Return as many blocks as a page holds: all, else the first two and the last ones."""
    room, last = MOST_EVENTS, list[Block]()
    for block in reversed(blocks[2:]):
        room -= len(_events(block, recording))
        if room < 0:
            left_out.note(f"{count(len(blocks) - 2 - len(last), 'turn')} after the first ones")
            break
        last.append(block)
    return [*blocks[:2], *reversed(last)]


def _events(block: Block, recording: Recording) -> list[Event]:
    if block.turn is not None:
        return events_of(block, recording)
    indexes = [item for item in block.items if isinstance(item, int)]
    calls = [item for item in block.items if not isinstance(item, int)]
    ends = [event for call in calls for event in (call.begin, call.end) if event is not None]
    return [*(recording.events[index] for index in indexes[:MOST_EVENTS]), *ends]


class _Turns:
    def __init__(self, recording: Recording, left_out: LeftOut) -> None:
        self.recording = recording
        self._left_out = left_out
        self._keys = Keys()
        self._seen: set[str] = set()
        self.fresh: list[str] = []
        """The addresses of the events that the last block was the first to show."""

    def block(self, block: Block) -> Iterator[Html]:
        """Yield one turn: what was new in its prompt, then its events."""
        self.fresh = []
        lane = "" if block.lane == "main" else f"  lane {plain(block.lane, 60)}"
        yield tag("h2", f"Turn {block.number}" if block.turn is not None else "Outside any turn", lane)
        if block.turn is not None:
            yield from self._new(block)
        for event in _events(block, self.recording):
            at = address(event, self.recording.first_writer)
            card = tag("div", event_card(self.recording, event, self._left_out), class_="card")
            if at in self._seen:
                yield card
                continue
            self._seen.add(at)
            self.fresh.append(at)
            yield tag("div", card, id=f"/e/{at}")

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
