"""Redacted requests; each message is redacted once, since a conversation is sent again with every turn.

The redacted form of a message is kept until the redactor learns of new secrets.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ...capture.recorder.encode import Texts
from ...capture.redact.redactor import Redactor
from ...capture.replay_hook import FIRST_SECRET
from ...wire.equality_rules import PLACEHOLDER
from ...wire.reading import conversation_key
from .request import Memo, Part, Request, element_part
from .tape import RecordedCall


class Known(NamedTuple):
    """A redacted message and its digests."""

    cleaned: Any
    part: Part


class _Memo:
    def __init__(self, redactor: Redactor) -> None:
        self.looked_for = redactor.looks_for()
        self.latest: dict[int, tuple[Any, Known]] = {}
        """The messages of the latest request by ``id()``: a request that continues it holds the same
        objects."""
        self.known = Memo[Known]()

    def all(self, redactor: Redactor, key: str, elements: list[Any]) -> list[Known]:
        before, self.latest = self.latest, {}
        found = []
        for element in elements:
            entry = before.get(id(element))
            if entry is None or entry[0] is not element:
                entry = element, self._get(redactor, key, element)
            self.latest[id(element)] = entry
            found.append(entry[1])
        return found

    def _get(self, redactor: Redactor, key: str, element: Any) -> Known:
        def computed() -> Known:
            clean = redactor.clean([element], key)[0]
            return Known(clean, element_part(clean))

        return self.known.get(element, computed)


_memos: WeakKeyDictionary[Redactor, _Memo] = WeakKeyDictionary()


def cleaned(texts: Texts, body: Any) -> tuple[Any, list[Part] | None]:
    """Return a request's body as it is recorded, and the digests of its conversation, None if it has none."""
    redactor = texts.redactor
    key = conversation_key(body) if type(body) is dict else None
    if redactor is None or key is None:
        return texts.clean("body", body, "full", ours=True), None
    memo = _memos.get(redactor)
    if memo is None or memo.looked_for is not redactor.looks_for():
        _memos[redactor] = memo = _Memo(redactor)
    known = memo.all(redactor, key, body[key])
    rest = redactor.clean({name: value for name, value in body.items() if name != key}, "body")
    return {**rest, key: [each.cleaned for each in known]}, [each.part for each in known]


# Map the secrets of this run to those of the recording; each run numbers its placeholders itself.
#
# Recorded answers hold recorded placeholders, which the agent sends back beside its real secrets. So new
# placeholders get numbers far from the recorded ones, and are translated once a request that holds them has
# been found in the recording.


def _is_new(placeholder: str) -> bool:
    return int(placeholder[:-1].rpartition(":")[2]) >= FIRST_SECRET


class SecretNumbers:
    """The recorded placeholders for the secrets of one execution, as far as known."""

    def __init__(self) -> None:
        self._recorded: dict[str, str] = {}
        self._lock = Lock()

    @property
    def known(self) -> int:
        """How many are known."""
        return len(self._recorded)

    def translated(self, value: Any) -> Any:
        """Return a redacted value with the recorded placeholders of all known secrets."""
        if not self._recorded:
            return value
        if type(value) is str:
            if "<redacted:" not in value:
                return value
            return PLACEHOLDER.sub(lambda found: self._recorded.get(found[0], found[0]), value)
        if type(value) is dict:
            return {key: self.translated(item) for key, item in value.items()}
        return [self.translated(item) for item in value] if type(value) is list else value

    def learn(self, request: Request, call: RecordedCall) -> None:
        """Learn from a request and its recorded call: secrets at the same places are the same."""
        now = request.placeholders()
        if any(map(_is_new, now)):
            with self._lock:
                for one, other in zip(now, call.request.placeholders(), strict=False):
                    if _is_new(one):
                        self._recorded.setdefault(one, other)
