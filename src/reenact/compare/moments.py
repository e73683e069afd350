"""Two moments of one run: what the model could see then and cannot see now, and what is new.

The prompts are compared by the one rule of ``recording.prompt``, after a compaction with the conversation
that was replaced, not with the call that summarised it. What a provider keeps counts as seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ..errors import UsageError
from ..recording.kept_conversations import NOT_SENT, is_recorded
from ..recording.origins import tool_ids
from ..recording.prompt import (
    Context,
    ContextPart,
    Keys,
    compare,
    context_of,
    is_changed,
    pieces_of,
    replaced_by,
)
from ..recording.recording import Recording
from ..shown import ShownAsHtml
from ..tracefile.events.event import Event
from ..tracefile.events.event_text import address
from ..tracefile.events.text import compact, count, dump
from ..wire.json_values import mapping
from .report import CANNOT_TELL, DIFFERENT
from .words import GONE, NEW, SAME, Words, similarity, word_changes

EDITED = "edited"
_ALIKE = 0.5
"""Two messages of one role that share so much are one that was edited."""
_MOST_PAIRS = 2_000
_LEAST_QUOTED = 12
"""Characters of a message before it is looked for inside another one."""


@dataclass(frozen=True)
class Moment:
    """What the model saw in one request."""

    turn: int
    address: str
    """Of the request."""
    messages: int
    not_sent: int
    """Those of them that the provider had already."""
    tokens: int | None
    """As the provider counted them; None if it did not report that."""
    missing: str | None = None
    """In words what the model saw and the recording has not; None if all is recorded."""

    @property
    def size(self) -> str:
        """Its messages and tokens, in words."""
        tokens = "" if self.tokens is None else f", {compact(self.tokens)} tokens"
        return f"{count(self.messages, 'message')}{tokens}"


@dataclass(frozen=True)
class SeenPart:
    """A message, the system prompt or the tools of a request."""

    number: int | None
    """Of a message in its request, from 0; None for what stands beside the messages."""
    role: str
    text: str
    """As recorded: whoever prints it cleans it."""
    share: float
    """Estimated by length, 0 to 1."""
    tokens: int | None
    """Estimated by its share; None if the provider reported no count."""
    origin: tuple[str, ...]
    """The addresses of the events it came from."""
    source: str | None
    """What these are to it: ``answer``, ``tool`` or ``request``."""
    is_sent: bool
    """False for what the provider had already."""


@dataclass(frozen=True)
class PromptChange:
    """One difference between two prompts."""

    sort: str
    """``gone``, ``new`` or ``edited``."""
    then: SeenPart | None = None
    now: SeenPart | None = None
    words: tuple[Words, ...] = ()
    """Of an edited one: its text word by word."""
    fields: tuple[str, ...] = ()
    """Of an edited one: the fields that differ beside its text."""
    quoted_in: int | None = None
    """Of one that is gone: the message of the later request in which all of its text still stands."""


@dataclass(frozen=True)
class MomentsDiff(ShownAsHtml):
    """How what the model saw in one request differs from what it saw in another."""

    name: str
    """Of the run."""
    path: str
    then: Moment
    now: Moment
    same: int
    """Messages that stand in both."""
    changes: tuple[PromptChange, ...] = ()
    summarised_in: int | None = None
    """The turn that was named, if it wrote a summary; ``then`` is the conversation which that replaced."""

    def of(self, sort: str) -> list[PromptChange]:
        """Return the changes of a sort: ``gone``, ``new`` or ``edited``."""
        return [change for change in self.changes if change.sort == sort]

    @property
    def verdict(self) -> str:
        """``same``, ``different``, or ``cannot tell`` if a part of a prompt is not recorded."""
        if self.changes:
            return DIFFERENT
        is_known = self.then.address == self.now.address or not (self.then.missing or self.now.missing)
        return SAME if is_known else CANNOT_TELL

    @property
    def headline(self) -> str:
        """The comparison in one line."""
        if self.verdict == SAME:
            return "the model saw the same"
        if self.verdict == CANNOT_TELL:
            return "cannot tell: not all of it is recorded"
        counts = [f"{len(self.of(sort))} {sort}" for sort in (GONE, EDITED, NEW) if self.of(sort)]
        return f"{', '.join(counts)}, {self.same} as before  ({self.then.size} → {self.now.size})"

    @property
    def notes(self) -> list[str]:
        """What else there is to know, as sentences."""
        found = []
        if self.summarised_in is not None:
            then = f"turn {self.then.turn}, the conversation that was replaced"
            found.append(
                f"Turn {self.summarised_in} wrote a summary. Turn {self.now.turn} is compared with {then}."
            )
        for moment in (self.then, self.now):
            if moment.not_sent:
                kept = f"the provider had {count(moment.not_sent, 'message')} already ({NOT_SENT})"
                found.append(f"In turn {moment.turn} {kept}.")
            if moment.missing is not None:
                found.append(f"In turn {moment.turn}: {moment.missing}.")
        return found

    def __bool__(self) -> bool:
        """True if the prompts differ, or nobody can tell."""
        return self.verdict != SAME

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return {"verdict": self.verdict, "headline": self.headline, "notes": self.notes, **asdict(self)}


def diff_turns(recording: Recording, then: int, now: int | None = None) -> MomentsDiff:
    """Compare what the model saw in two turns; ``now`` is the last one unless it is named."""
    turns = recording.turns()
    for number in (then, now):
        if number is not None and (type(number) is not int or not 1 <= number <= len(turns)):
            hint = f"its turns are 1 to {len(turns)}" if turns else "it has no model call"
            raise UsageError(f"{recording.name} has no turn {number!r}", hint=hint)
    return diff_moments(recording, turns[then - 1].request, turns[(now or len(turns)) - 1].request)


def diff_moments(recording: Recording, then: Event | None, now: Event) -> MomentsDiff:
    """Compare what the model saw in the requests that led to two events.

    Without ``then`` it is what changed since the request before ``now`` in its lane.
    """
    new = _Prompt(recording, now)
    named = _Prompt(recording, then) if then is not None else _before(recording, new)
    old = named
    if then is not None and (new.request.index or 0) > (named.request.index or 0):
        replaced = replaced_by(recording, new.context, named.request)
        old = named if replaced is None or replaced == named.request else _Prompt(recording, replaced)
    was, is_now = old.context.messages, new.context.messages
    compared = compare([part.value for part in was], [part.value for part in is_now], Keys())
    lost, added = [was[at] for at in compared.lost], [is_now[at] for at in compared.added]
    return MomentsDiff(
        name=recording.name,
        path=recording.path,
        then=old.moment,
        now=new.moment,
        same=len(is_now) - len(added),
        changes=(*_changes_beside(old, new), *_changes(old, new, lost, added)),
        summarised_in=None if old is named else named.moment.turn,
    )


def _before(recording: Recording, new: _Prompt) -> _Prompt:
    request = replaced_by(recording, new.context)
    if request is None:
        raise UsageError(
            f"turn {new.moment.turn} is the first of its lane", hint="compare with a turn: turn:1"
        )
    return _Prompt(recording, request)


class _Prompt:
    """The context of the request that led to an event, as it is reported."""

    def __init__(self, recording: Recording, event: Event) -> None:
        self._root = recording.first_writer
        context = context_of(recording, event)
        if context is None:
            at = address(event, self._root)
            raise UsageError(f"no model call led to the event at {at}", hint="compare with a turn: turn:1")
        self.context, self.request = context, context.request
        self.moment = Moment(
            turn=recording.index.turn_number(context.request),
            address=address(context.request, self._root),
            messages=len(context.messages),
            not_sent=sum(not part.is_sent for part in context.messages),
            tokens=context.tokens,
            missing=_missing(context),
        )

    def beside(self, role: str) -> ContextPart | None:
        """Return the system prompt or the tools."""
        found = (part for part in self.context.parts if part.number is None and part.role == role)
        return next(found, None)

    def part(self, part: ContextPart) -> SeenPart:
        share, tokens = self.context.share(part), self.context.tokens
        origin = part.origin
        return SeenPart(
            number=part.number,
            role=part.role,
            text=_text(part),
            share=share,
            tokens=None if tokens is None else round(share * tokens),
            origin=() if origin is None else tuple(address(event, self._root) for event in origin.events),
            source=None if origin is None else origin.how,
            is_sent=part.is_sent,
        )


def _missing(context: Context) -> str | None:
    if not is_recorded(context.request.body):
        return "the content of the request is not recorded"
    withheld = sum(_is_withheld(part.value) for part in context.messages)
    words = f"the content of {count(withheld, 'message')} is not recorded" if withheld else None
    return words if context.kept is None else "; ".join(filter(None, [words, context.kept.missing])) or None


def _is_withheld(value: Any) -> bool:
    """True if a part of a value is left out and no digest stands in its place."""
    if isinstance(value, dict):
        return "$none" in value or "$cut" in value or any(map(_is_withheld, value.values()))
    return isinstance(value, list) and any(map(_is_withheld, value))


def _changes_beside(old: _Prompt, new: _Prompt) -> Iterator[PromptChange]:
    """Yield how the system prompt and the tools changed."""
    for role in ("system", "tools"):
        was, now = old.beside(role), new.beside(role)
        if was is not None and now is not None:
            if is_changed(was.value, now.value):
                yield _edited(old, was, new, now)
        elif was is not None:
            yield PromptChange(GONE, then=old.part(was))
        elif now is not None:
            yield PromptChange(NEW, now=new.part(now))


def _changes(
    old: _Prompt, new: _Prompt, lost: list[ContextPart], added: list[ContextPart]
) -> Iterator[PromptChange]:
    """Yield how the messages changed: those that are gone or edited as they stood, then the new ones."""
    pairs = _pairs(lost, added)
    texts = {part.number: _words(part) for part in new.context.messages}
    for part in lost:
        if id(part) in pairs:
            yield _edited(old, part, new, pairs[id(part)])
        else:
            yield PromptChange(GONE, then=old.part(part), quoted_in=_quoted_in(part, texts))
    taken = {id(part) for part in pairs.values()}
    yield from (PromptChange(NEW, now=new.part(part)) for part in added if id(part) not in taken)


def _pairs(lost: list[ContextPart], added: list[ContextPart]) -> dict[int, ContextPart]:
    """Return by the id of a message that is gone the new one that is its edited form.

    The result of a tool is found by the id of its tool use, anything else by its role and its words.
    """
    found: dict[int, ContextPart] = {}
    free = list(added)
    for part in lost[: _MOST_PAIRS // max(1, len(added))]:
        ids, text = tool_ids(part.value), _text(part)
        like = [
            (1.0 if ids else similarity(text, _text(other)), other)
            for other in free
            if other.role == part.role and ids == tool_ids(other.value)
        ]
        most, best = max(like, key=lambda pair: pair[0], default=(0.0, None))
        if best is not None and most >= _ALIKE:
            found[id(part)] = best
            free.remove(best)
    return found


def _edited(old: _Prompt, was: ContextPart, new: _Prompt, now: ContextPart) -> PromptChange:
    words = word_changes(_text(was), _text(now))
    before, after = mapping(was.value), mapping(now.value)
    fields = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if any(each.sort != SAME for each in words):
        return PromptChange(EDITED, old.part(was), new.part(now), words=tuple(words))
    return PromptChange(EDITED, old.part(was), new.part(now), fields=tuple(map(str, fields)))


def _quoted_in(part: ContextPart, texts: dict[int | None, str]) -> int | None:
    text = _words(part)
    found = (number for number, other in texts.items() if text in other)
    return next(found, None) if len(text) >= _LEAST_QUOTED else None


def _words(part: ContextPart) -> str:
    return " ".join(_text(part).split())


def _text(part: ContextPart) -> str:
    """Return a part as a person reads it: tool uses with their arguments, tools with their schemas."""
    if part.number is not None:
        return "\n".join(piece.text for piece in pieces_of(part.value))
    return (
        "\n".join(map(dump, part.value)) if part.role == "tools" and type(part.value) is list else part.text
    )
