"""Which events of a run brought a word: the index in which the first producer of a text is found.

It holds hashes of words and numbers of events, no text: candidates are read again from the file and checked.
So a word that shares its hash with another one costs time and no truth. It is built in one pass when it pays:
for the first few texts, a look for one of their words in the bytes of each line is faster.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from ..recording.garbage import nothing_to_collect
from ..recording.recording import Recording
from ..recording.run_lines import each_line
from ..tracefile.events.event import Event
from .brought import REDACTED, WITHHELD, Piece, brought
from .text_match import LEAST_SHARED, Match, Sought, words_of

Progress = Callable[[int, int], None]
"""Called with how many of how many events were read."""

_EVERY = 200
"""Events between two reports of progress."""

_LOOKS = 6
"""Texts that are sought in the bytes of the lines; for more of them the index is faster."""

_BLOB, _RAW = b'"$blob":', b'"raw": {"$blob":'
"""A long text kept beside the file, and the bytes of a stream, which hold nothing that the line has not."""

_FUZZY_CANDIDATES = 50
"""Events with most words of a text that are compared with it."""


class Hit(NamedTuple):
    """A piece of an event in which a text was found."""

    event: Event
    piece: Piece
    match: Match


class TextIndex:
    """The words of one recording, by event."""

    def __init__(self, recording: Recording, progress: Progress | None = None) -> None:
        self._recording = recording
        self._progress = progress
        self._looked: dict[bytes, list[int]] = {}
        self._gaps: dict[str, array[int]] = {WITHHELD: array("l"), REDACTED: array("l")}

    def event(self, position: int) -> Event:
        """Return the event at a position: 0 is the start of the run, the others follow in order."""
        start = self._recording.start
        if position == 0 and start is not None:
            return start
        return self._recording.events[position - 1]

    @staticmethod
    def position(event: Event) -> int:
        return 0 if event.index is None else event.index + 1

    @cached_property
    def _words(self) -> dict[int, array[int]]:
        """The positions of the events with a word, by its hash."""
        found: dict[int, array[int]] = {}
        events, seen, total = self._recording.events, set[int](), self._recording.count()
        with nothing_to_collect():
            for position in range(total + 1):
                if self._progress is not None and position % _EVERY == 0:
                    self._progress(position, total)
                if position == 0 and self._recording.start is None:
                    continue
                event = self.event(0) if position == 0 else events[position - 1]
                pieces = brought(event, seen)
                for gap in {piece.gap for piece in pieces} - {""}:
                    self._gaps[gap].append(position)
                for word in set(map(hash, words_of("\n".join(piece.text for piece in pieces)))):
                    numbers = found.get(word)
                    if numbers is None:
                        found[word] = array("l", (position,))
                    else:
                        numbers.append(position)
        return found

    @property
    def gaps(self) -> dict[str, array[int]]:
        """The positions of the events with a piece that is not whole, by why."""
        self._words  # noqa: B018 - found while the run is read
        return self._gaps

    def hits(
        self, sought: Sought, first: int = 0, last: int | None = None, *, backwards: bool = False
    ) -> Iterator[Hit]:
        """Yield the pieces that hold a text, exactly or else normalised, in the order of their events.

        ``first`` and ``last`` are the positions between which it is sought, the last one not included.
        """
        found = [each for each in self._with_all(sought) if each >= first and (last is None or each < last)]
        for position in reversed(found) if backwards else found:
            event = self.event(position)
            pieces = brought(event)
            exact = [(piece, match) for piece in pieces if (match := piece.exact(sought)) is not None]
            normal = () if exact else [(piece, sought.normal(piece.text)) for piece in pieces]
            for piece, match in exact or normal:
                if match is not None:
                    yield Hit(event, piece, match)

    def fuzzy(self, sought: Sought, first: int = 0, last: int | None = None) -> Hit | None:
        """Return the piece that has most of a text's words in their order, the earliest of equals."""
        best: Hit | None = None
        if not sought.shingles:
            return None
        for position in self.similar(sought, first, last):
            event = self.event(position)
            for piece in brought(event):
                match = sought.fuzzy(piece.text)
                if match is not None and (best is None or match.confidence > best.match.confidence):
                    best = Hit(event, piece, match)
        return best

    def inside_words(self, sought: Sought) -> Iterator[Hit]:
        """Yield the pieces that hold a text anywhere, in the middle of words too; reads the whole run."""
        for position in range(0 if self._recording.start is not None else 1, self._recording.count() + 1):
            event = self.event(position)
            for piece in brought(event):
                match = piece.exact(sought, within_words=True)
                if match is not None:
                    yield Hit(event, piece, match)

    def _with_all(self, sought: Sought) -> list[int]:
        """Return the positions of the events that have all words of a text."""
        longest = max((word for word in sought.words if word.isascii()), key=len, default="").encode()
        if longest and "_words" not in self.__dict__ and len(self._looked) < _LOOKS:
            if longest not in self._looked:
                self._looked[longest] = self._with_bytes(longest)
            return self._looked[longest]
        words = {hash(word) for word in sought.words}
        lists = sorted((self._words.get(word, array("l")) for word in words), key=len)
        if not lists:
            return []
        found = set(lists[0])
        for numbers in lists[1:]:
            if not found:
                break
            found.intersection_update(numbers)
        return sorted(found)

    def _with_bytes(self, word: bytes) -> list[int]:
        """Return the positions of the events whose lines hold a word, or a long text kept beside the file."""
        found: list[int] = []
        recording = self._recording
        with nothing_to_collect():
            for number, _, line in each_line(recording):
                if word in line.lower() or line.count(_BLOB) > line.count(_RAW):
                    event = recording.event_at(number)
                    if event.index is not None or event == recording.start:
                        found.append(self.position(event))
        return sorted(found)

    def similar(self, sought: Sought, first: int = 0, last: int | None = None) -> list[int]:
        """Return the positions of the events that share enough words with a text to be compared with it."""
        words = {hash(word) for word in sought.words}
        counts: Counter[int] = Counter()
        for word in words:
            counts.update(self._words.get(word, ()))
        least = len(words) * LEAST_SHARED / 2  # sequences may share fewer words than that many sequences
        enough = [
            (-count, position)
            for position, count in counts.items()
            if count >= least and position >= first and (last is None or position < last)
        ]
        return sorted(position for _, position in sorted(enough)[:_FUZZY_CANDIDATES])
