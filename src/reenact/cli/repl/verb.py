"""What a verb is, and how a typed word finds it: by name, by another name, by a beginning only it has."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...errors import UsageError

if TYPE_CHECKING:
    from .session import Session

Do = Callable[["Session", str], None]


class Verb(NamedTuple):
    """One verb of the prompt."""

    name: str
    group: str
    usage: str
    """What may follow it."""
    help: str
    do: Do
    others: tuple[str, ...] = ()
    """Further names, pdb's long ones among them."""


class Verbs:
    """All verbs by name."""

    def __init__(self, verbs: Iterable[Verb]) -> None:
        self.all = list(verbs)
        self._by_name = {name: verb for verb in self.all for name in (verb.name, *verb.others)}

    @property
    def names(self) -> list[str]:
        return sorted(self._by_name)

    def find(self, word: str) -> Verb:
        """Return the verb a word means."""
        verb = self._by_name.get(word)
        if verb is not None:
            return verb
        begins = {id(found): found for name, found in self._by_name.items() if word and name.startswith(word)}
        if len(begins) == 1:
            return next(iter(begins.values()))
        if begins:
            could = ", ".join(sorted(found.name for found in begins.values()))
            raise UsageError(f"{word!r} could be {could}")
        near = difflib.get_close_matches(word, self._by_name, 1, 0.6)
        hint = f"did you mean {near[0]}?" if near else "h lists the verbs"
        raise UsageError(f"there is no verb {word!r}", hint=hint)
