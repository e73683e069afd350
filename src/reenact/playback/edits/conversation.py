"""Changes to a conversation: drop a message, inject one, replace a tool's result, set a field.

A change refers to a message of the conversation at the cut. Later requests continue that conversation, so
each change applies to them at the same place; if the message is gone, nothing is changed and a note says so.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from ...errors import UsageError
from ...wire.json_values import mapping
from ...wire.messages import tool_results, unsigned, with_result
from ...wire.pairing import is_models, pairs
from ...wire.providers import named, openai_responses
from .cut_request import CutRequest, common_start, digest, is_same, system_count, without_system
from .request_settings import with_path

DROP, REPLACE, AFTER = "drop", "replace", "after"


class Change(NamedTuple):
    """One change, at a message of the conversation at the cut (from 0)."""

    kind: str
    at: int
    edit: Callable[[Any], Any] | None = None
    """Returns the message that replaces it, or the one to insert after it."""


def drops(numbers: list[int], cut: CutRequest, *, ends_with_user: bool) -> list[Change]:
    """Return the changes that drop messages by their numbers, from 1, or from the end if negative.

    ``ends_with_user``: a user message follows the remaining ones.
    """
    if cut.kept_by_provider:
        raise UsageError(
            "--drop: the provider stores this conversation, the request only adds to it",
            hint="only the request itself can be changed: --tool-result, --inject-user, --set",
        )
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
    _check_pairs(places, cut)
    if named(cut.provider).USER_FIRST:
        _check_turns(places, cut, ends_with_user)
    return [Change(DROP, place) for place in sorted(places)]


def _check_pairs(places: set[int], cut: CutRequest) -> None:
    if len(places) == len(cut.messages):
        raise UsageError("--drop leaves no message", hint="a model needs at least one")
    for use, result, name in pairs(cut.messages):
        if use is None or result is None or (use in places) == (result in places):
            continue
        here, partner = (use, result) if use in places else (result, use)
        part = "the result of" if partner == result else "the call of"
        raise UsageError(
            f"--drop {here + 1} would leave {part} {name} in message {partner + 1} without its partner",
            hint=f"drop both: --drop {here + 1} --drop {partner + 1}",
        )


def _check_turns(places: set[int], cut: CutRequest, ends_with_user: bool) -> None:
    """Check the roles: the first and last message must be a user's, and with Bedrock roles must alternate."""
    models = [is_models(message) for message in cut.messages]
    kept = [place for place in range(len(models)) if place not in places]
    wrong = [kept[0]] if models[kept[0]] else []
    wrong += [kept[-1]] if models[kept[-1]] and not models[-1] and not ends_with_user else []
    if named(cut.provider).ALTERNATES:
        wrong += [now for before, now in pairwise(kept) if models[before] and models[now]]
    if wrong:
        raise UsageError(
            f"--drop leaves message {wrong[0] + 1}, the model's, where {cut.provider} needs a user message",
            hint=f"drop it too: --drop {wrong[0] + 1}",
        )


def injection(text: str, cut: CutRequest, dropped: set[int]) -> Change:
    """Return the change that adds a user message at the end of the conversation at the cut."""
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
    try:
        with_path({steps[0]: cut.messages}, steps, value)
    except UsageError as why:
        raise UsageError(f"{why}{_only_kept(cut)}", hint=why.hint) from why
    place = int(steps[1])
    at = place if place >= 0 else len(cut.messages) + place
    return Change(REPLACE, at, lambda message: with_path(message, steps[2:], value))


def _only_kept(cut: CutRequest) -> str:
    """Say why a message of the conversation is not among those of the request."""
    kept = cut.kept_by_provider
    return "" if kept is None else f" (messages before it are kept by the provider as {kept}, not sent)"


def changed(messages: list[Any], changes: list[Change], places: list[int], provider: str | None) -> list[Any]:
    """Return the messages with every change applied at its place."""
    by_place = list(zip(places, changes, strict=True))
    found: list[Any] = []
    for place, message in enumerate(messages):
        here = [change for at, change in by_place if at == place]
        for change in here:
            if change.kind == REPLACE and change.edit is not None:
                message = change.edit(message)
        if not any(change.kind == DROP for change in here):
            found.append(message)
        found += [change.edit(message) for change in here if change.kind == AFTER and change.edit]
    return _alternating(found) if named(provider).ALTERNATES else found


def _alternating(messages: list[Any]) -> list[Any]:
    """Return the messages with neighbours of the same role merged, as Bedrock requires."""
    found: list[Any] = []
    for message in messages:
        last = found[-1] if found else None
        if last is not None and last.get("role") == message.get("role"):
            found[-1] = {**last, "content": [*last["content"], *message["content"]]}
        else:
            found.append(message)
    return found


def apply_changes(
    messages: list[Any], changes: list[Change], cut: CutRequest, after: list[Any], *, carries: bool
) -> tuple[list[Any], list[str]]:
    """Return the messages of a request with the changes applied, and notes on changes that were not.

    ``after`` is the changed conversation at the cut: a request that begins with it contains the changes
    already.
    """
    old, new = without_system(cut.messages), without_system(after)
    is_changed = common_start(new, without_system(messages)) == len(new)
    if is_changed and not (carries and len(old) >= len(new)):
        return messages, []
    found, places, notes = [], [], []
    for change in changes:
        place = _place_of(change.at, messages, cut, carries)
        if place is None:
            notes.append(
                f"message {change.at + 1} of the cut is not in this request any more: {_SKIPPED[change.kind]}"
            )
        elif not _is_inserted(messages, place, change):
            found.append(change)
            places.append(place)
    edited = changed(messages, found, places, cut.provider) if found else messages
    if not carries and _is_paired(messages, cut) and not _is_paired(edited, cut):
        return messages, [
            *notes,
            "the remaining messages of the cut cannot be changed: tool calls would lose their results",
        ]
    return edited, notes


def _is_paired(messages: list[Any], cut: CutRequest) -> bool:
    return all(None not in (use, result) for use, result, _ in pairs(messages))


def _place_of(at: int, messages: list[Any], cut: CutRequest, carries: bool) -> int | None:
    """Return the place of a message of the cut in a later request."""
    own, own_now = system_count(cut.messages), system_count(messages)
    if carries and at >= own:
        return at - own + own_now
    places = [place for place, each in enumerate(messages) if is_same(each, cut.messages[at])]
    return places[0] if len(places) == 1 else None


_SKIPPED = {
    DROP: "nothing was dropped",
    REPLACE: "the change in it was not made",
    AFTER: "nothing was inserted after it",
}


def _is_inserted(messages: list[Any], place: int, change: Change) -> bool:
    if change.kind != AFTER or change.edit is None:
        return False
    inserted = change.edit(messages[place])
    return place + 1 < len(messages) and is_same(messages[place + 1], inserted)


# ``--tool-result`` for a tool known only from requests: its result in the first request that carries it.


class NewResult(NamedTuple):
    """A tool result that a request carries for the first time."""

    at: int
    """The index of its message."""
    order: int
    """Its index among the message's results."""
    id: str | None
    name: str | None

    def __str__(self) -> str:
        return " ".join(filter(None, dict.fromkeys((self.name, self.id)))) or "a tool"


def new_results(cut: CutRequest) -> list[NewResult]:
    """Return the tool results at the end of a request's conversation."""
    paired = pairs(cut.messages)
    found: list[NewResult] = []
    for at in reversed(range(len(cut.messages))):
        results = tool_results(cut.messages[at])
        if not results:
            break
        names = [pair.name for pair in paired if pair.result == at]
        found[:0] = [
            NewResult(at, order, result.id, result.name or name)
            for order, (result, name) in enumerate(zip(results, names, strict=True))
        ]
    return found


def result_change(text: str, tool: str | None, cut: CutRequest) -> Change:
    """Return the change that replaces the only new result, or that of the ``tool`` with this id or name."""
    all_new = new_results(cut)
    if not all_new:
        raise UsageError(
            f"--tool-result: the request at the cut carries no new tool result{_only_kept(cut)}",
            hint="cut at the tool's call, or at the model call that follows it",
        )
    new = [each for each in all_new if tool in (None, each.id, each.name)]
    if len(new) != 1:
        listed = ", ".join(map(str, all_new))
        problem = (
            f"the request has {len(new)} results"
            if tool is None or new
            else f"none of the results is from {tool}"
        )
        raise UsageError(
            f"--tool-result: {problem} at the cut: {listed}{_only_kept(cut)}", hint="select one by its id"
        )
    [one] = new
    return Change(REPLACE, one.at, lambda message: with_result(message, one.order, text))


# Signed thinking is valid only for the model that wrote it and the conversation before it. After a change, or
# for another model, a provider may reject it: it is removed there and kept byte for byte everywhere else.


def is_signed(message: Any) -> bool:
    """True if a message holds signed or encrypted thinking."""
    return unsigned(message) is not message


def stripped(messages: list[Any], stale: set[bytes], provider: str | None) -> list[Any]:
    """Return the messages, without the signed thinking of those with a ``stale`` digest."""
    if not stale or not any(is_signed(each) and digest(each) in stale for each in messages):
        return messages
    kept: list[Any] = []
    bare = False
    for message in messages:
        new = unsigned(message)
        if new is not message and digest(message) in stale:
            bare = True
            if new is not None:
                kept.append(new)
            continue
        if bare and provider == openai_responses.NAME and is_models(message):
            # The provider rejects an item with an id but no reasoning; without the id it accepts it.
            kept.append({key: value for key, value in message.items() if key != "id"})
            continue
        bare = False
        kept.append(message)
    return kept
