"""The prompt of a model call: what it holds, part by part, and what is new in it.

A prompt is compared with the one before it in its lane by one rule (``compare``): markers of the provider's
cache do not count, they move along with a conversation. ``prompt_of`` compares bodies as they are stored,
long texts as references, so that a run costs only what is new in it; ``context_of`` and ``delta_of`` rebuild
one request with the origin of each message. Shares are estimates by length, since the tokenizer is the
provider's; their sum is what the provider counted, where it reported that.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress, groupby
from itertools import count as count_from
from operator import is_not
from typing import Any, NamedTuple, cast

from .. import lines, schema
from ..totals import number, used
from ..tracefile.events.event import Event, base_kind, links_of
from ..tracefile.events.rebuilt_requests import answer_named, base_of, is_delta, is_reference, kept
from ..tracefile.events.stored_values import restore
from ..tracefile.events.text import arguments, count, plain, short_json
from ..wire import reading
from ..wire.json_values import canonical, mapping, string
from ..wire.messages import message_parts, readable, role_of
from ..wire.neutral import REASONING, RESULT, TEXT, Part, ToolResult
from ..wire.pairing import is_models
from ..wire.reading import SYSTEM, TOOLS, system_text, tool_names
from .calls import Turn
from .index import Index
from .kept_conversations import KeptConversation, continues, kept_before, may_continue, sent_messages
from .origins import Origin, Origins
from .recording import Recording

# Messages of any provider -> pieces a person reads: who, what sort, the text, which tool use it answers.

_MAX_BLOB = 1 << 20
"""A longer text is read from its blob by commands that print it; here its beginning will do."""


class Piece(NamedTuple):
    """One text, tool use, result or thought of a message."""

    role: str
    sort: str
    text: str
    id: str | None = None
    """Of the tool use a result answers; the tool's name where the provider gives no id."""
    failed: bool = False


def opened(event: Event, value: Any) -> Any:
    """Return a stored value with the texts that stand in blobs put back, unless they are very long."""
    if not event.is_ours:
        return value
    blobs = event.stored_in.blobs

    def text(reference: object) -> str | None:
        path = blobs.path(reference)
        if path is not None and os.path.getsize(path) > _MAX_BLOB:
            return None
        return blobs.text(reference)

    return restore(value, text)


def answer_pieces(event: Event) -> list[Piece]:
    """Return the response in the event that ends a model call."""
    fields = event.stored_fields
    body = fields.get("body")
    if type(body) is not dict:
        content = opened(event, fields.get("content", fields.get("text")))
        if content is None:
            return []
        is_message = type(content) is dict and ("content" in content or "parts" in content)
        return pieces_of({"role": "assistant", **(content if is_message else {"content": content})})
    body = opened(event, body)
    found = [message for _, message in reading.answers(body, string(fields.get("provider")))]
    if found:
        return [piece._replace(role="assistant") for message in found for piece in pieces_of(message)]
    content = reading.text(body, string(fields.get("provider")))
    return [Piece("assistant", TEXT, content)] if content else []


def pieces_of(message: Any) -> list[Piece]:
    """Return the pieces of one message that say something, texts that stand side by side as one."""
    role = role_of(message)
    found = [_piece(role, part) for part in message_parts(message)]
    return _joined([p for p in found if p.text or (p.sort == RESULT and p.id is not None)])


def _piece(role: str, part: Part) -> Piece:
    sort, text = readable(part)
    if isinstance(part, ToolResult):
        return Piece(role, sort, text, part.id or part.name, part.failed)
    return Piece(role, sort, text)


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Answers are cut into texts anywhere, around a citation for instance; prompts between paragraphs."""
    result: list[Piece] = []
    for _, group in groupby(enumerate(pieces), _grouping):
        some = [piece for _, piece in group]
        glue = "" if some[0].role == "assistant" else "\n"
        result.append(some[0]._replace(text=glue.join(piece.text for piece in some if piece.text)))
    return result


def _grouping(numbered: tuple[int, Piece]) -> object:
    number, piece = numbered
    joins = piece.sort == TEXT or (piece.sort == RESULT and piece.id is not None)
    return (piece.sort, piece.id) if joins else number


_NOT_SHOWN = frozenset(("model", "stream", "stream_options", *reading.KEPT_BY))
_WIDE = 160
ANOTHER = "another conversation"


class Delta(NamedTuple):
    """What was new in a prompt."""

    new: list[Piece]
    """Messages since then, without the response that the conversation continues."""
    changes: list[tuple[str, str]]
    """What else differs: (what, how)."""
    recorded: bool = True


NOT_RECORDED = Delta([], [], recorded=False)


def prompt_of(turn: Turn, before: Sequence[Turn], keys: Keys, index: Index | None, *, is_far: bool) -> Delta:
    """Return what was new in the prompt of a turn over the turns before it in its lane, the latest first.

    ``keys`` are shared by all turns of a run that are looked at. ``index`` has the turn that a request
    continues at the provider. ``is_far``: the whole prompt is not to be built, since that would take too
    long.
    """
    request = _request(turn)
    if request is None:
        return NOT_RECORDED
    found = _delta_of(request, before, keys, is_far=is_far)
    if index is None or not may_continue(request):
        return found
    words = continues(index, request, request.stored_fields.get("body") if is_far else request.stored_body)
    return found if words is None else found._replace(changes=[("history", words), *found.changes])


def _delta_of(request: Event, before: Sequence[Turn], keys: Keys, *, is_far: bool) -> Delta:
    latest = before[0] if before else None
    old = _request(latest) if latest is not None else None
    if is_far:
        return _stored(request, old, keys).delta(latest)
    found = _compared(request, old, keys)
    if ("history", ANOTHER) in found.changes:
        base = base_of(request.stored_fields)  # its line names the one that it has most in common with
        for earlier in sorted(before[1:], key=lambda each: each.call.id != base):
            resumed = _compared(request, _request(earlier), keys)
            if ("history", ANOTHER) not in resumed.changes:
                changes = [("history", "an earlier conversation continues"), *resumed.changes]
                return resumed._replace(changes=changes).delta(earlier)
    return found.delta(latest)


def only_continues(turn: Turn, before: Sequence[Turn]) -> bool:
    """True if there is no prompt before, or if the line of the request says that it was only continued."""
    request, old = _request(turn), _request(before[0]) if before else None
    return request is None or old is None or _appended(request, old) is not None


def dropped_from(turn: Turn, before: Sequence[Turn], after: Turn | None, keys: Keys) -> list[Piece]:
    """Return what stood in the prompt before and is left out of this one: texts and results, no responses.

    The call that wrote a summary does not count as one before. Nothing if the one before was a single
    question, or if one of the two is another agent's: then it has other settings, or the conversation is
    continued in the turn after, or an earlier one is in this turn.
    """
    request = _request(turn)
    olds = [_request(each) for each in (_without_summaries(request, before) if request is not None else ())]
    old = olds[0] if olds else None
    if request is None or old is None or _appended(request, old) is not None:
        return []
    was, now = mapping(old.stored_body), mapping(request.stored_body)  # the second may build on the first
    messages, new = sent_messages(was), sent_messages(now)
    if not any(is_models(message) for message in messages) or may_continue(request):
        return []
    compared = compare(messages, new, keys)
    lost = opened(old, [messages[at] for at in compared.lost])
    pieces = [piece for message in lost for piece in pieces_of(message)]
    found = [piece for piece in pieces if piece.role not in ("assistant", "model")]
    if not found or _changes(opened(old, _settings(was)), opened(request, _settings(now))):
        return []
    if not _is_another(messages, compared):
        return found
    for earlier in olds[1:]:
        if earlier is not None and not compare(sent_messages(earlier.stored_body), new, keys).lost:
            return []
    later = _request(after) if after is not None else None
    if later is not None and not compare(messages, sent_messages(later.stored_body), keys).lost:
        return []
    return found


def _without_summaries(request: Event, before: Sequence[Turn]) -> Sequence[Turn]:
    """Return the turns before without the latest ones that wrote a summary for this request."""
    first = 0
    for turn in before[:-1]:
        old = _request(turn)
        messages = sent_messages(old.stored_body) if old is not None else []
        if not messages or any(map(is_models, messages)):
            break
        texts = "\n".join(map(reading.text, sent_messages(opened(request, request.stored_body))))
        if not _stands_in(turn.response, _words(texts)):
            break
        first += 1
    return before[first:]


def _request(turn: Turn) -> Event | None:
    """Return the request of a turn if there is one that can be looked at."""
    call = turn.call
    return None if call.begin is None or call.begin is call.end or call.begin.is_partial else call.begin


class _Found(NamedTuple):
    request: Event
    messages: list[Any] | None
    """As they are stored; None: nothing was recorded."""
    changes: list[tuple[str, str]]

    def delta(self, follows: Turn | None) -> Delta:
        if self.messages is None:
            return NOT_RECORDED
        answer = follows.response if follows is not None else None
        messages = [] if answer is None or answer.is_partial else answer_pieces(answer)
        texts = {piece.text.strip() for piece in messages}
        new = [
            piece
            for message in opened(self.request, self.messages)
            for piece in pieces_of(message)
            if piece.role != "assistant" or (piece.sort != REASONING and piece.text.strip() not in texts)
        ]
        return Delta(new, self.changes)


def _compared(request: Event, before: Event | None, keys: Keys) -> _Found:
    """Return what a request added over an earlier one; without one, all of it is new."""
    added = _appended(request, before) if before is not None else None
    if added is not None:
        return _Found(request, added, [])
    old = before.stored_body if before is not None else None  # first, since the request builds on it
    body = request.stored_body
    if type(body) is not dict:
        return _Found(request, None, [])
    if type(old) is not dict:
        return _Found(request, sent_messages(body), _first(opened(request, _settings(body))))
    new, history = _history(sent_messages(old), sent_messages(body), keys)
    if reading.kept_conversation(body) is not None:
        new, history = sent_messages(body), ""
    changes = _changes(opened(request, _settings(old)), opened(request, _settings(body)))
    return _Found(request, new, [("history", history), *changes] if history else changes)


def _appended(request: Event, before: Event) -> list[Any] | None:
    """Return the messages put behind those of the earlier request if its line says that this is all."""
    fields, below = request.stored_fields, before.stored_fields
    body, keep = mapping(fields.get("body")), kept(fields)
    key = reading.conversation_key(body)
    base = base_of(fields)
    if base is None or base != below.get("call") or key is None or len(body) > 1:
        return None
    if keep.get(key) is True or keep.get(key) != below.get("n"):
        return None
    same = {name for name, much in keep.items() if much is True}
    if {*same, key} != {*kept(below), *mapping(below.get("body"))}:
        return None
    new = [item for item in body[key] if answer_named(item) is None]
    return None if any(map(is_reference, new)) else new


def _stored(request: Event, before: Event | None, keys: Keys) -> _Found:
    """Return what the line itself says is new, where building the whole request would take too long."""
    fields, below = request.stored_fields, before.stored_fields if before is not None else {}
    body, base = fields.get("body"), base_of(fields)
    if type(body) is not dict or not is_delta(fields):
        return _compared(request, None, keys)
    key = reading.conversation_key(body)
    messages = body[key] if key is not None else []
    much = kept(fields).get(key, 0) if key is not None else True
    changes = _first(opened(request, _settings(body)))
    if type(much) is int and below.get("call") == base and type(below.get("n")) is int:
        # The answer to the request below is new in this one; other references lead to what was there.
        repeated_messages = [item for item in messages if is_reference(item) and answer_named(item) != base]
        dropped = below["n"] - much - len(repeated_messages)
        if dropped > 0:
            changes.insert(0, ("history", f"rewritten: {count(dropped, 'message')} dropped"))
    return _Found(request, [item for item in messages if not is_reference(item)], changes)


def _settings(body: dict[str, Any]) -> dict[str, Any]:
    talk = reading.conversation_key(body)
    return {
        key: value for key, value in body.items() if key not in (talk, "input", "prompt", *reading.KEPT_BY)
    }


class Comparison(NamedTuple):
    """How a conversation differs from an earlier one."""

    same: int
    """Messages that both begin with."""
    added: list[int]
    """The places of the messages that are new."""
    lost: list[int]
    """The places of the messages of the earlier one that are no longer there."""


class Keys:
    """What distinguishes the messages of a run: their text without cache markers.

    Of two requests the reader makes lists that share their messages, so the key of a message is kept with the
    message itself: a run costs what is new in it, not every prompt again.
    """

    def __init__(self) -> None:
        self._keys: dict[int, str] = {}
        self._messages: list[Any] = []
        """Held, so that their ids stay theirs."""
        self._size = 0

    def of(self, messages: list[Any]) -> list[str]:
        """Return the keys of some messages, in their order."""
        known = list(map(self._keys.get, map(id, messages)))
        if all(known):  # in C; a key is never empty
            return cast("list[str]", known)
        return [
            self._add_key(each) if key is None else key for key, each in zip(known, messages, strict=True)
        ]

    def _add_key(self, message: Any) -> str:
        key = _key(message)
        self._size += len(key)
        if self._size > _MAX_HELD:
            self._keys.clear()
            self._messages.clear()
            self._size = len(key)
        self._messages.append(message)
        self._keys[id(message)] = key
        return key


_MAX_HELD = 32 << 20


def compare(old: list[Any], new: list[Any], keys: Keys) -> Comparison:
    """Compare the messages of two requests."""
    at = next(compress(count_from(0), map(is_not, old, new)), min(len(old), len(new)))  # in C
    while at < min(len(old), len(new)) and not is_changed(old[at], new[at]):
        at += 1
    before, later = keys.of(old[at:]), keys.of(new[at:])
    gone = Counter(before)
    if gone.keys().isdisjoint(later):  # in C: another conversation, or nothing was left out
        return Comparison(at, list(range(at, len(new))), list(range(at, len(old))))
    added, lost = [], []
    for place, key in enumerate(later, at):
        if gone[key] > 0:
            gone[key] -= 1
        else:
            added.append(place)
    for place, key in enumerate(before, at):
        if gone[key] > 0:
            gone[key] -= 1
            lost.append(place)
    return Comparison(at, added, lost)


def is_changed(old: Any, new: Any) -> bool:
    """True if two values differ in more than cache markers."""
    return bool(old != new) and _key(old) != _key(new)


def _history(old: list[Any], new: list[Any], keys: Keys) -> tuple[list[Any], str]:
    """Return the messages that are new, and how the history was changed if it was."""
    compared = compare(old, new, keys)
    added, gone = [new[at] for at in compared.added], len(compared.lost)
    if _is_another(old, compared):
        return added, ANOTHER
    return added, f"rewritten: {count(gone, 'message')} dropped" if gone else ""


def _is_another(old: list[Any], compared: Comparison) -> bool:
    """True if nothing but a system prompt is left of an earlier conversation."""
    gone = len(compared.lost)
    is_all = gone == len(old) or (compared.same == 1 and gone == len(old) - 1 and _is_system(old[0]))
    return gone > 0 and is_all


def _is_system(message: Any) -> bool:
    return string(mapping(message).get("role")) in ("system", "developer")


def _key(value: Any) -> str:
    """Return the value as text without cache markers, which move along with a conversation."""
    return canonical(_unmarked(value))


def _unmarked(value: Any) -> Any:
    if type(value) is dict:
        return {
            key: _unmarked(item) for key, item in value.items() if key not in ("cache_control", "cachePoint")
        }
    return [_unmarked(item) for item in value] if type(value) is list else value


def _first(settings: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the settings of a lane's first request."""
    found = [("system", system_text(settings[key])) for key in SYSTEM if settings.get(key)]
    for key in TOOLS:
        if names := _tool_names(settings.get(key)):
            found.append(("tools", ", ".join(names)))
    rest = {key: value for key, value in settings.items() if key not in {*SYSTEM, *TOOLS, *_NOT_SHOWN}}
    return [*found, ("with", arguments(rest, _WIDE))] if rest else found


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what differs between the settings of two requests."""
    found = []
    for key in {**old, **new}:
        before, after = old.get(key), new.get(key)
        if not is_changed(before, after):
            continue
        if key in SYSTEM:
            found.append(("system", f"changed: {system_text(after)}" if after else "is gone"))
        elif key in TOOLS:
            found.append(("tools", _tools_changed(_tool_names(before), _tool_names(after))))
        elif key not in _NOT_SHOWN or key == "model":
            found.append((plain(key, 30), f"{_value(before)} → {_value(after)}"))
    return found


def _value(value: Any) -> str:
    if value is None:
        return "unset"
    return plain(value, 60) if type(value) is str else short_json(value, 60)


def _tools_changed(before: list[str], after: list[str]) -> str:
    parts = [f"+ {name}" for name in after if name not in before]
    parts += [f"- {name}" for name in before if name not in after]
    return ", ".join(parts) or "changed"


def _tool_names(value: Any) -> list[str]:
    return [plain(name, 60) for name in tool_names(value)]


# The context window of one request, with the origin of each message.

_NEAR = 2000
"""Events after a request among which its answer is sought."""


class ContextPart(NamedTuple):
    """A message, the system prompt, or the tools of a request."""

    number: int | None
    """Of a message, from 0; None for what stands beside the messages."""
    role: str
    value: Any
    text: str
    size: int
    """Characters as JSON."""
    origin: Origin | None
    is_sent: bool = True
    """False for a message that the provider had already."""


class Context(NamedTuple):
    """What the model saw."""

    request: Event
    parts: list[ContextPart]
    tokens: int | None
    """Input tokens as the provider counted them; None if it did not tell."""

    size: int
    """Of all parts together."""
    kept: KeptConversation | None = None
    """What the provider had before the request; None if the request carries everything."""

    @property
    def messages(self) -> list[ContextPart]:
        return [part for part in self.parts if part.number is not None]

    def share(self, part: ContextPart) -> float:
        """Return the part's estimated share of the whole, 0 to 1."""
        return part.size / max(1, self.size)


class ContextDelta(NamedTuple):
    """What is new in a request."""

    context: Context
    previous: Event | None
    kept: int
    """Messages that stand as they did."""
    gone: int
    """Messages of the previous request that are no longer there, or not as they were."""
    changed: list[str]
    """Other parts of the request that differ."""
    parts: list[ContextPart]
    lost: Sequence[Any] = ()
    """Those messages that are gone."""


def context_of(recording: Recording, event: Event) -> Context | None:
    """Return the context of the request that led to an event; None if there is none."""
    request = recording.request_before(event)
    if request is None:
        return None
    body = request.body
    body = body if type(body) is dict else {}
    beside = [
        ContextPart(None, role, value, text(value), _size(value), None)
        for role, keys, text in (("system", SYSTEM, system_text), ("tools", TOOLS, _tools_text))
        for key in keys
        if (value := body.get(key))
    ]
    elsewhere = kept_before(recording.index, request, body)
    before = elsewhere.messages if elsewhere is not None else []
    messages = [
        (each.message, Origin([each.event], _HELD_BY[base_kind(each.event)]), False) for each in before
    ]
    sent = zip(sent_messages(body), Origins(recording).of(request), strict=True)
    messages += [(message, origin, True) for message, origin in sent]
    texts = [
        ContextPart(
            number, _speaker(message), message, reading.text(message), _size(message), origin, is_sent
        )
        for number, (message, origin, is_sent) in enumerate(messages)
    ]
    parts = beside + texts
    return Context(request, parts, _tokens(recording, request), sum(part.size for part in parts), elsewhere)


_HELD_BY = {schema.MODEL_REQUEST: "request", schema.MODEL_RESPONSE: "answer"}


def delta_of(recording: Recording, event: Event) -> ContextDelta | None:
    """Return what is new in the request that led to an event, compared with the one that it replaced."""
    context = context_of(recording, event)
    if context is None:
        return None
    previous = replaced_by(recording, context)
    if previous is None:
        return ContextDelta(context, None, 0, 0, [], context.messages)
    messages = context.messages
    before = recording.context_at(previous)
    found = compare(before, [part.value for part in messages], Keys())
    old, new = (body if type(body) is dict else {} for body in (previous.body, context.request.body))
    keys = [key for key in {**old, **new} if key not in schema.LISTS]
    changed = [key for key in keys if is_changed(old.get(key), new.get(key))]
    added = [messages[at] for at in found.added]
    lost = [before[at] for at in found.lost]
    return ContextDelta(context, previous, len(messages) - len(added), len(lost), changed, added, lost)


_LEAST_SUMMARY = 20
"""Characters of a response's longest line before it is recognised in a later prompt."""


def replaced_by(recording: Recording, context: Context, since: Event | None = None) -> Event | None:
    """Return the request whose conversation a request replaced: ``since``, else its lane's previous one.

    A call of one question whose response stands in the prompt wrote a summary. Then it is the conversation
    before that call, in any lane: a summary between a response and the results of its tools has another one.
    """
    origins, now = Origins(recording), [part.value for part in context.messages]
    first = since or origins.previous(context.request)
    if first is None:
        return None
    texts = _words("\n".join(part.text for part in context.messages))
    for old in chain([first], origins.earlier(first), origins.earlier(first, any_lane=True)):
        before = recording.context_at(old)
        if any(map(is_models, before)) or not _is_another(before, compare(before, now, Keys())):
            return old
        if not _stands_in(_answer(recording, old), texts):
            break
        texts += _words("\n".join(map(reading.text, before)))  # a summary may be written in several calls
    return first


def _stands_in(answer: Event | None, texts: str) -> bool:
    """True if the longest line of a response is in a text; tags around a summary are often taken off."""
    content = answer.content if answer is not None else None
    longest = max(map(_words, content.splitlines()), key=len, default="") if type(content) is str else ""
    return len(longest) >= _LEAST_SUMMARY and longest in texts


def _words(text: str) -> str:
    return " ".join(text.split())


def _speaker(message: Any) -> str:
    """Return the role of a message; ``tool`` for one of only tool results, whatever its provider calls it."""
    parts = message_parts(message)
    is_results = bool(parts) and all(isinstance(part, ToolResult) for part in parts)
    return "tool" if is_results else role_of(message)


def _tools_text(value: Any) -> str:
    return ", ".join(tool_names(value))


def _size(value: Any) -> int:
    try:
        return len(lines.dumps(value))
    except (ValueError, TypeError, RecursionError):
        return len(repr(value))


def _tokens(recording: Recording, request: Event) -> int | None:
    answer = _answer(recording, request)
    if answer is None:
        return None
    usage = used(answer.stored_fields)
    keys = ("input", "cache_read", "cache_write")
    known = [number(usage[key]) for key in keys if usage.get(key) is not None]
    return sum(known) if known else None


def _answer(recording: Recording, request: Event) -> Event | None:
    """Return the response to a request; None if there is none near it."""
    call, start = request.call, request.index
    if call is None or start is None:
        return None
    for event in recording.events[start + 1 : start + _NEAR]:
        if base_kind(event) == schema.MODEL_RESPONSE and links_of(event).get("call") == call:
            return event
    return None
