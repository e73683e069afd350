"""What the assemblers of streamed answers share: text in pieces, problems, the base class.

Each provider file has its own assembler. Events come from outside: every helper takes any decoded JSON
value and never raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

MOST_PROBLEMS = 20


class Problems(list[str]):
    """What was wrong, in words; bounded, since a stream of rubbish is one problem, not a million."""

    def note(self, problem: str) -> None:
        """Add one; after the first few only that there are more."""
        if len(self) < MOST_PROBLEMS:
            self.append(problem)
        elif len(self) == MOST_PROBLEMS:
            self.append("and more of the kind")


class Texts:
    """Strings that arrive in pieces: collected where they belong and joined once, in linear time."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, Any], tuple[Any, list[str]]] = {}

    def add(self, owner: Any, key: Any, piece: object) -> bool:
        """Append a piece to ``owner[key]``; True if it is not empty."""
        if not isinstance(piece, str):
            return False
        found = self._found.get((id(owner), key))
        (self.of(owner, key) if found is None else found[1]).append(piece)
        return bool(piece)

    def put(self, owner: Any, key: Any, text: object) -> None:
        """Replace what came in pieces by the whole text."""
        if isinstance(text, str):
            self.of(owner, key)[:] = [text]

    def last(self, owner: Any, key: Any) -> str:
        """Return the newest piece."""
        pieces = self.of(owner, key)
        return pieces[-1] if pieces else ""

    def take(self, owner: Any, key: Any) -> str:
        """Return the text so far, and leave ``owner[key]`` alone from now on."""
        pieces = self.of(owner, key)
        del self._found[id(owner), key]
        return _joined(pieces)

    def of(self, owner: Any, key: Any) -> list[str]:
        """Return the pieces so far; what is appended to them belongs to the text."""
        # The owner is kept with its pieces, so its id cannot become another's.
        found = self._found.get((id(owner), key))
        if found is None:
            known = owner[key] if isinstance(owner, list) else owner.get(key)
            found = self._found[id(owner), key] = (owner, [known] if isinstance(known, str) and known else [])
        return found[1]

    def join(self) -> None:
        """Write every text to its place."""
        for (_, key), (owner, pieces) in self._found.items():
            owner[key] = _joined(pieces)


def _joined(pieces: list[str]) -> str:
    """Join pieces; a character beyond 16 bits, escaped as a pair, may have been cut between its halves."""
    text = "".join(pieces)
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return text


class Assembler(ABC):
    """Base of the dialects: takes the events of one stream in order, then gives the answer."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.texts = Texts()
        self.complete = False
        self.error: tuple[str | None, str] | None = None
        self.failure: dict[str, Any] | None = None
        self.aborted: list[dict[str, Any]] = []

    @abstractmethod
    def add(self, event: dict[str, Any]) -> bool:
        """Take in one event; True if the model adds content in it."""

    def done(self) -> None:  # noqa: B027  most dialects have no such word
        """Take in ``[DONE]``, which only Chat Completions mean by it."""

    @abstractmethod
    def body(self) -> dict[str, Any] | None:
        """Return the answer as it would be without streaming, None if nothing of it came; called last.

        Only then ``complete`` is certain: some dialects end when all of their choices have.
        """

    def fail(self, error: tuple[str | None, str] | None, event: dict[str, Any]) -> None:
        """Note an error that came in the stream; the first one is the cause."""
        if error is not None and self.error is None:
            self.error, self.failure = error, event


def index_of(value: object) -> int | None:
    """Return an index if the value can be one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def fill(target: dict[str, Any], source: dict[str, Any], *without: str) -> None:
    """Take over what a later event says: empty values replace nothing that came before."""
    for key, value in source.items():
        if key not in without and (key not in target or value not in (None, "", [], {})):
            target[key] = value


def grow(owner: dict[str, Any], key: str, items: list[Any]) -> None:
    """Append to the list ``owner[key]``, which may be missing or null."""
    known = owner.get(key)
    if isinstance(known, list):
        known += items
    else:
        owner[key] = list(items)


def object_in(owner: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object ``owner[key]``, made if it is missing."""
    known = owner.get(key)
    if not isinstance(known, dict):
        known = owner[key] = {}
    return known
