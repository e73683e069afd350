"""Changes in a conversation: a message dropped, one put in, a tool's result replaced, a field set.

They are told by places in the conversation at the cut. Later requests carry that conversation on, so each
change is made in them at the same place; where that is gone, nothing is done and it is said.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from ...errors import UsageError
from ...wire.json_values import mapping
from ...wire.messages import tool_results, with_result
from ...wire.pairing import is_models, pairs
from ...wire.providers import named
from .cut_request import CutRequest, common_start, is_same, own_words, without_own_words
from .paths import with_path

DROP, REPLACE, AFTER = "drop", "replace", "after"


class Change(NamedTuple):
    """One change, at a message of the conversation at the cut (from 0)."""

    what: str
    at: int
    made: Callable[[Any], Any] | None = None
    """The message that takes its place, or the one that goes after it."""


def drops(numbers: list[int], cut: CutRequest, *, is_spoken_to: bool) -> list[Change]:
    """Return the changes that leave out messages by their numbers, from 1, or from the end if negative.

    ``is_spoken_to``: a user's message comes after those that are left.
    """
    count = len(cut.messages)
    places = set()
    for number in numbers:
        place = number - 1 if number > 0 else count + number
        if number == 0 or not 0 <= place < count:
            raise UsageError(
                f"--drop {number}: the request at the cut has {count} messages",
                hint="numbers are from 1, or from the end: -1 is the last",
            )
        places.add(place)
    if cut.kept_elsewhere:
        raise UsageError(
            "--drop: the provider keeps this conversation, the request only adds to it",
            hint="only what the request itself brings can be changed: --tool-result, --inject-user, --set",
        )
    _check_pairs(places, cut)
    if named(cut.provider).USER_FIRST:
        _check_turns(places, cut, is_spoken_to)
    return [Change(DROP, place) for place in sorted(places)]


def _check_pairs(places: set[int], cut: CutRequest) -> None:
    if len(places) == len(cut.messages):
        raise UsageError("--drop leaves no message", hint="a model needs at least one")
    for use, result, name in pairs(cut.messages):
        if use is None or result is None or (use in places) == (result in places):
            continue
        here, partner = (use, result) if use in places else (result, use)
        what = "the result of" if partner == result else "the request for"
        raise UsageError(
            f"--drop {here + 1} would leave {what} {name} in message {partner + 1} without its partner",
            hint=f"drop both: --drop {here + 1} --drop {partner + 1}",
        )


def _check_turns(places: set[int], cut: CutRequest, is_spoken_to: bool) -> None:
    """A user speaks first and last there, and Bedrock lets nobody speak twice in a row."""
    models = [is_models(message) for message in cut.messages]
    kept = [place for place in range(len(models)) if place not in places]
    wrong = [kept[0]] if models[kept[0]] else []
    wrong += [kept[-1]] if models[kept[-1]] and not models[-1] and not is_spoken_to else []
    if named(cut.provider).ALTERNATES:
        wrong += [now for before, now in pairwise(kept) if models[before] and models[now]]
    if wrong:
        raise UsageError(
            f"--drop leaves message {wrong[0] + 1}, the model's, where {cut.provider} wants a user's",
            hint=f"drop it as well: --drop {wrong[0] + 1}",
        )


def injection(text: str, cut: CutRequest, dropped: set[int]) -> Change:
    """Return the change that has a user say something at the end of the conversation at the cut."""
    kept = [place for place in range(len(cut.messages)) if place not in dropped]
    if cut.key is None or not kept:
        raise UsageError(
            "--inject-user: the request at the cut has no list of messages",
            hint="--set prompt=… changes a bare prompt",
        )
    last = cut.messages[kept[-1]]
    if cut.provider == "anthropic" and mapping(last).get("role") == "user" and tool_results(last):
        return Change(REPLACE, kept[-1], lambda message: _with_block(message, {"type": "text", "text": text}))
    return Change(AFTER, len(cut.messages) - 1, lambda message: named(cut.provider).user_message(text))


def _with_block(message: Any, block: Any) -> Any:
    content = message["content"]
    return {**message, "content": content if content[-1:] == [block] else [*content, block]}


def field_change(steps: list[str], value: Any, cut: CutRequest) -> Change:
    """Return the change that sets a field of one message: ``messages.0.content``."""
    if type(cut.body.get(cut.key or "")) is str:  # a bare text, which is all there is
        if len(steps) > 1 or type(value) is not str:
            raise UsageError(
                f"{cut.key} is a text, not a list of messages", hint=f"--set {cut.key}=… replaces it"
            )
        return Change(REPLACE, 0, lambda message: {**message, "content": value})
    if len(steps) < 3:
        raise UsageError(
            f"--set {'.'.join(steps)}: messages are not replaced as a whole",
            hint="--drop leaves one out, --inject-user adds one,"
            f" --set {cut.key}.0.content=… changes a part of one",
        )
    with_path({steps[0]: cut.messages}, steps, value)  # UsageError if it is not there
    place = int(steps[1])
    at = place if place >= 0 else len(cut.messages) + place
    return Change(REPLACE, at, lambda message: with_path(message, steps[2:], value))


def changed(messages: list[Any], changes: list[Change], places: list[int], provider: str | None) -> list[Any]:
    """Return the messages with every change made at its place."""
    by_place = list(zip(places, changes, strict=True))
    found: list[Any] = []
    for place, message in enumerate(messages):
        here = [change for at, change in by_place if at == place]
        for change in here:
            if change.what == REPLACE and change.made is not None:
                message = change.made(message)
        if not any(change.what == DROP for change in here):
            found.append(message)
        found += [change.made(message) for change in here if change.what == AFTER and change.made]
    return _alternating(found) if named(provider).ALTERNATES else found


def _alternating(messages: list[Any]) -> list[Any]:
    """Return the messages with neighbours of one role made one, as Bedrock wants it."""
    found: list[Any] = []
    for message in messages:
        last = found[-1] if found else None
        if last is not None and last.get("role") == message.get("role"):
            found[-1] = {**last, "content": [*last["content"], *message["content"]]}
        else:
            found.append(message)
    return found


def made_in(
    messages: list[Any], changes: list[Change], cut: CutRequest, after: list[Any], *, carries: bool
) -> tuple[list[Any], list[str]]:
    """Return the messages of a request with the changes told at the cut, and what is to be said.

    ``after`` is the conversation at the cut with all that is changed in it: a request that begins so has it.
    """
    then, made = without_own_words(cut.messages), without_own_words(after)
    is_made = common_start(made, without_own_words(messages)) == len(made)
    if is_made and not (carries and len(then) >= len(made)):
        return messages, []
    found, places, notes = [], [], []
    for change in changes:
        place = _place_of(change.at, messages, cut, carries)
        if place is None:
            notes.append(
                f"message {change.at + 1} of the cut is not in this request any more: {_TOLD[change.what]}"
            )
        elif not _is_made(messages, place, change):
            found.append(change)
            places.append(place)
    new = changed(messages, found, places, cut.provider) if found else messages
    if not carries and _is_paired(messages, cut) and not _is_paired(new, cut):
        return messages, [
            *notes,
            "what is left of the cut's messages cannot be changed: tools would lose results",
        ]
    return new, notes


def _is_paired(messages: list[Any], cut: CutRequest) -> bool:
    return all(None not in (use, result) for use, result, _ in pairs(messages))


def _place_of(at: int, messages: list[Any], cut: CutRequest, carries: bool) -> int | None:
    """Return where a message of the cut stands in a later request."""
    own, own_now = own_words(cut.messages), own_words(messages)
    if carries and at >= own:
        return at - own + own_now
    places = [place for place, each in enumerate(messages) if is_same(each, cut.messages[at])]
    return places[0] if len(places) == 1 else None


_TOLD = {
    DROP: "nothing was dropped",
    REPLACE: "the change in it was not made",
    AFTER: "nothing was put in after it",
}


def _is_made(messages: list[Any], place: int, change: Change) -> bool:
    if change.what != AFTER or change.made is None:
        return False
    made = change.made(messages[place])
    return place + 1 < len(messages) and is_same(messages[place + 1], made)


# ``--tool-result`` where the wire alone tells of a tool: its result in the request that brought it.


class Brought(NamedTuple):
    """A result that a request brings for the first time."""

    at: int
    """Which message."""
    order: int
    """Which of its results."""
    id: str | None
    name: str | None

    def __str__(self) -> str:
        return " ".join(filter(None, (self.name, self.id))) or "a tool"


def brought(cut: CutRequest) -> list[Brought]:
    """Return the results at the end of a request's conversation."""
    paired = pairs(cut.messages)
    found: list[Brought] = []
    for at in reversed(range(len(cut.messages))):
        results = tool_results(cut.messages[at])
        if not results:
            break
        names = [pair.name for pair in paired if pair.result == at]
        found[:0] = [
            Brought(at, order, result.id, result.name or name)
            for order, (result, name) in enumerate(zip(results, names, strict=True))
        ]
    return found


def result_change(text: str, tool: str | None, cut: CutRequest) -> Change:
    """Return the change that replaces the one new result, or the one of the ``tool`` of that id or name."""
    all_new = brought(cut)
    if not all_new:
        raise UsageError(
            "--tool-result: the request at the cut brings no new result of a tool",
            hint="cut at the tool's call, or at the model call that follows it",
        )
    new = [each for each in all_new if tool in (None, each.id, each.name)]
    if len(new) != 1:
        listed = ", ".join(map(str, all_new))
        problem = f"it brings {len(new)} results" if tool is None or new else f"none of them is of {tool}"
        raise UsageError(f"--tool-result: {problem} at the cut: {listed}", hint="select one by its id")
    [one] = new
    return Change(REPLACE, one.at, lambda message: with_result(message, one.order, text))
