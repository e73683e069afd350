"""Rules about what results say: changed on their way, about something else, garbled, old, overwritten."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from ...recording.calls import Call
from ...tracefile.events.text import call_text, plain, short_json
from ...wire.json_values import as_json, as_text, canonical
from ...wire.result_signs import value_of
from ...wire.results import CONTRADICTED, OTHER_FORM, result_text
from .scene import WIDE, Scene, Use, words_of
from .suspect import CHANGED_RESULT, CONFLICT, GARBLED, INJECTED, MISMATCH, NO_EFFECT, STALE, Suspect

_MOST_TEXT = 1 << 20
_SHORT = 200
_WORD = re.compile(r"[^\W_]+")
_MARKED = re.compile(r"\u2026|\.\.\.|truncated|omitted|elided|snipped|shortened|\bcut\b", re.IGNORECASE)
"""With what an agent marks that it shortened a result, so that the model knows."""


def contradiction(call: Call) -> str:
    """Return in words that the model was sent another result than the tool returned."""
    sent = "" if call.sent is None else short_json(result_text(call.sent.value), WIDE)
    returned = short_json(call.result, WIDE)
    return f"{call_text(call.tool, call.args, WIDE)}: the tool returned {returned}, the model was sent {sent}"


def changed_results(scene: Scene) -> Iterator[Suspect]:
    """A result the model was sent that is not the one the tool returned, or only a part of it."""
    for use in scene.uses:
        call = use.call
        if call.sent is None or call.error is not None:
            continue
        if call.verdict == CONTRADICTED:
            yield scene.suspect(CHANGED_RESULT, 0.95, call.sent.request, contradiction(call))
        elif call.verdict == OTHER_FORM and call.sent.is_certain and call.end is not None:
            returned = call.result if isinstance(call.result, str) else as_json(call.result)
            sent = result_text(call.sent.value)
            if _is_something_else(returned, sent) or _has_other_numbers(returned, sent):
                yield scene.suspect(CHANGED_RESULT, 0.7, call.sent.request, contradiction(call))
            elif is_cut(returned, sent) or _has_fewer(use.result, value_of(call.sent.value)):
                words = f"{use.words}: the tool returned {len(returned):,} characters, "
                words += f"the model was sent {len(sent):,}"
                confidence = (
                    0.3 if _MARKED.search(sent[:_MOST_TEXT]) else 0.6
                )  # a mark of the cut tells the model
                yield scene.suspect(CHANGED_RESULT, confidence, call.sent.request, words)


def _is_something_else(returned: str, sent: str) -> bool:
    """True if no word and no number of what a tool returned is in what the model was sent."""
    words = set(_WORD.findall(returned[:_MOST_TEXT].lower()))
    return len(words) > 1 and words.isdisjoint(_WORD.findall(sent[:_MOST_TEXT].lower()))


def _has_other_numbers(returned: str, sent: str) -> bool:
    """True for a short text with a number that the tool did not return."""
    numbers = re.findall(r"\d+(?:\.\d+)?", sent) if len(sent) < _SHORT and not _MARKED.search(sent) else []
    return bool(numbers) and not set(numbers).issubset(re.findall(r"\d+(?:\.\d+)?", returned[:_MOST_TEXT]))


def _has_fewer(returned: object, sent: object) -> bool:
    """True for a list, or one in an object, of which only some elements were sent."""
    if isinstance(returned, dict) and isinstance(sent, dict):
        return any(_has_fewer(each, sent.get(name)) for name, each in returned.items())
    return isinstance(returned, list) and isinstance(sent, list) and 0 < len(sent) < len(returned)


def is_cut(returned: str, sent: str) -> bool:
    """True if a good part of a result was not sent."""
    return len(returned) > 200 and len(sent) < 0.8 * len(returned)


def mismatched_results(scene: Scene) -> Iterator[Suspect]:
    """A result about something else than the call asked for: the same field with another value."""
    for use in scene.uses:
        result = use.result[0] if isinstance(use.result, list) and len(use.result) == 1 else use.result
        if use.failure is not None or not isinstance(result, dict) or not isinstance(use.args, dict):
            continue
        if not use.reads:
            continue  # one that writes may return what was there before
        for name, wanted in use.args.items():
            got = result.get(name)
            if _is_other(wanted, got):
                words = f"{use.words} returned {plain(str(name), 40)} {short_json(got, 60)}"
                yield scene.suspect(MISMATCH, 0.7, use.at, words)
                break


def _is_other(wanted: object, got: object) -> bool:
    """True for two short values of one type that differ, and not only in how they are written."""
    if type(wanted) is not type(got) or not isinstance(wanted, str | int) or isinstance(wanted, bool):
        return False
    one, other = ("".join(c for c in str(each).lower() if c.isalnum()) for each in (wanted, got))
    return bool(one and other) and len(one) < 60 and one not in other and other not in one


_GARBLED = re.compile("\ufffd|[\xc2\xc3][\x80-\xbf]|\xe2\u20ac|\xc3[\u0152-\u2122]")


def garbled_texts(scene: Scene) -> Iterator[Suspect]:
    """A result in which letters were lost to a wrong encoding."""
    for use in scene.uses:
        end = use.call.end
        if end is None or end.is_partial or use.call.error is not None:
            continue
        text = as_text(use.call.result)[:_MOST_TEXT]
        if not text.isascii() and (found := _GARBLED.search(text)):
            part = plain(text[max(0, found.start() - 20) : found.end() + 20], 60)
            yield scene.suspect(GARBLED, 0.65, use.at, f"{use.words} returned garbled letters: {part}")


_STALE_AFTER = 3600.0
_AS_OF = (
    "at",
    "as_of",
    "asOf",
    "fetched_at",
    "fetchedAt",
    "retrieved_at",
    "cached_at",
    "quoted_at",
    "last_synced",
)
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")


def stale_results(scene: Scene) -> Iterator[Suspect]:
    """A result that says that it is old: from a cache, or long before the time that the run knows."""
    now: float | None = None
    for use in scene.uses:
        result = use.result
        if use.failure is not None or use.call.end is None:
            continue
        if isinstance(result, dict):
            marks = [
                name for name in ("stale", "expired", "outdated", "is_stale") if result.get(name) is True
            ]
            times = [(name, when) for name in _AS_OF if (when := _moment(result.get(name))) is not None]
            old = [name for name, when in times if now is not None and now - when > _STALE_AFTER]
            if marks or old:
                name = (marks or old)[0]
                words = f"{use.words} returned an old result: {name} {short_json(result[name], 60)}"
                yield scene.suspect(STALE, 0.65, use.at, words)
            now = max([when for _, when in times] + ([] if now is None else [now]), default=now)
        elif isinstance(result, str) and len(result) < 60 and not _CLOCKS.isdisjoint(use.name_words):
            now = _moment(result) or now


_CLOCKS = frozenset(("clock", "now", "time", "date", "today"))


def _moment(value: object) -> float | None:
    found = _TIME.search(value) if isinstance(value, str) and len(value) < 60 else None
    if found is None:
        return None
    try:
        when = datetime.fromisoformat(found[0].replace("Z", "+00:00"))
    except ValueError:
        return None
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()


def conflicting_writes(scene: Scene) -> Iterator[Suspect]:
    """Two agents that read the same and both write it: the later one undoes what the earlier one did."""
    written: dict[tuple[str, str], Use] = {}
    for use in sorted(scene.uses, key=lambda use: use.at.index or 0):
        lane = use.step.block.lane
        if use.failure is not None or use.call.is_open or not isinstance(use.args, dict):
            continue
        if _REPLACES.isdisjoint(use.name_words):
            continue
        target = {name: each for name, each in use.args.items() if not _CONTENT & {*words_of(name)}}
        if len(target) == len(use.args):
            continue
        key = use.tool, canonical(target)
        before = written.get(key)
        written[key] = use
        if before is None or before.step.block.lane == lane or canonical(before.args) == canonical(use.args):
            continue
        if not _looked_between(scene, before, use):
            other = plain(before.step.block.lane, 30)
            text = f"{use.words} replaces what lane {other} wrote, and had not read it"
            yield scene.suspect(CONFLICT, 0.65, use.call.event, text)


_REPLACES = frozenset(("write", "save", "set", "update", "put", "replace", "store", "overwrite"))
_CONTENT = frozenset(("text", "content", "contents", "body", "data", "value", "new"))


def _looked_between(scene: Scene, before: Use, use: Use) -> bool:
    """True if the lane of a write has read something after the other lane's write."""
    begin, end = before.at.index or 0, use.call.event.index or 0
    return any(
        begin < (other.call.event.index or 0) < end
        for step in scene.steps
        if step.block.lane == use.step.block.lane
        for other in step.uses
        if other.reads
    )


_INJECTED = re.compile(
    r"(?:ignore|disregard|forget|override)\b.{0,40}\b(?:instructions?|rules|prompt)|system (?:prompt|"
    r"override|message):|\b(?:ai|assistants?|agents?|model|bot)\b.{0,60}\b(?:must|should|please|need to|"
    r"have to|shall|will now)\b|\bdo not (?:tell|inform|mention|ask)\b|\byou are now\b|"
    r"\bnew instructions?\b",
    re.IGNORECASE,
)


def injected_instructions(scene: Scene) -> Iterator[Suspect]:
    """A result that reads like instructions to the model, which then calls a tool that changes something."""
    for use in scene.uses:
        end = use.call.end
        if end is None or end.is_partial or not use.reads:
            continue
        text = as_text(use.call.result)[:_LOOKED_AT]
        found = _INJECTED.search(text)
        if found is not None:
            acts = any(not later.reads for step in use.step.later(3) for later in step.uses)
            part = plain(text[max(0, found.start() - 20) : found.end() + 80], 140)
            words = f"{use.words} returned what reads like instructions to the model: {part}"
            yield scene.suspect(INJECTED, 0.7 if acts else 0.35, use.at, words)


_LOOKED_AT = 20_000


def useless_writes(scene: Scene) -> Iterator[Suspect]:
    """A change that was reported as made, and a later look that shows the old value."""
    made: dict[tuple[str, str], tuple[Use, object]] = {}
    for use in scene.uses:
        args = use.args if isinstance(use.args, dict) else {}
        noun = "_".join(sorted(use.name_words - _VERBS))
        if use.name_words & _REPLACES and use.failure is None and not use.call.is_open:
            for name, value in args.items():
                if isinstance(value, int | float | str):
                    made[noun, name] = use, value
            continue
        result = use.result if isinstance(use.result, dict) else {noun: use.result}
        for (about, name), (write, value) in list(made.items()):
            got = result.get(name, result.get(about)) if about == noun else None
            if got is not None and _is_another_number(value, got) and _targets(write, use):
                words = f"{write.words} was made, {use.words} still has {short_json(got, 60)}"
                yield scene.suspect(NO_EFFECT, 0.7, write.at, words)
                del made[about, name]


_VERBS = frozenset("get set read write update put fetch show check save store current new".split())


def _is_another_number(value: object, got: object) -> bool:
    if isinstance(value, bool) or isinstance(got, bool):
        return False
    both_numbers = isinstance(value, int | float) and isinstance(got, int | float)
    return value != got if both_numbers else _is_other(value, got)


def _targets(write: Use, read: Use) -> bool:
    """True unless the two name different things."""
    one = write.args if isinstance(write.args, dict) else {}
    other = read.args if isinstance(read.args, dict) else {}
    return all(one[name] == other[name] for name in one.keys() & other.keys())


RULES = (
    injected_instructions,
    useless_writes,
    changed_results,
    mismatched_results,
    garbled_texts,
    stale_results,
    conflicting_writes,
)
