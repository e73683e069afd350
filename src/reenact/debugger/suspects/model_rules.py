"""Rules about model calls: cut answers, errors and retries, lost context, structured outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ...recording.kept_conversations import sent_messages
from ...recording.prompt import (
    Piece,
    compare,
    context_of,
    dropped_from,
    only_continues,
    pieces_of,
    replaced_by,
)
from ...tracefile.events.event import Event
from ...tracefile.events.event_text import error_text
from ...tracefile.events.text import count, plain
from ...wire import reading
from ...wire.json_schema import violations
from ...wire.json_values import mapping
from ...wire.messages import role_of
from .dropped_facts import dropped_clauses
from .scene import Scene, Step, words_of
from .suspect import (
    CUT_ANSWER,
    LOST_CONTEXT,
    MODEL_ERROR,
    PLACEHOLDER,
    REPEATED_CALL,
    RETRIES,
    SCHEMA,
    UNDONE,
    Suspect,
)

_MOST_COMPARED = 10
"""Prompts that do not just continue the one before, the last of a run, that are compared with it."""

_CUT_OFF = ("max_tokens", "length")
_REFUSED = ("refusal", "content_filter", "safety")
_STORM = 3
_UNREAD = {"closed": "the agent, which closed the stream", "cut": "the end of the connection"}
_CONTINUE = re.compile(r"\b(?:continue|go on|keep going|carry on|cut off|truncated)\b", re.IGNORECASE)


def unread(end: Event) -> str | None:
    """Return what ended a response that did not come to its end; None for one that did."""
    ended = end.stored_fields.get("ended")
    return _UNREAD.get(ended) if type(ended) is str and end.error is None else None


def cut_answers(scene: Scene) -> Iterator[Suspect]:
    """An answer that was cut by length, by a filter, or by the end of its stream, and used as a whole one."""
    for step in scene.steps:
        end = step.turn.response if step.turn is not None else None
        if end is None or end.is_partial or end.error is not None:
            continue
        stop = end.stored_fields.get("stop_reason")
        by = unread(end) or (stop if type(stop) is str and stop in (*_CUT_OFF, *_REFUSED) else None)
        if by is None:
            continue
        tail = step.text[-60:]
        words = f"an answer was cut off: stopped by {by}" + (
            f", it ends with …{plain(tail, 60)}" if tail else ""
        )
        yield scene.suspect(CUT_ANSWER, 0.3 if _is_continued(step) else 0.8, end, words)


def _is_continued(step: Step) -> bool:
    """True if the agent asked for the rest of an answer, or for the answer once more."""
    after = step.next
    if after is None:
        return False
    return any(piece.role == "user" and _CONTINUE.search(piece.text[:500]) for piece in after.prompt.new)


def failed_calls(scene: Scene) -> Iterator[Suspect]:
    """Model calls that failed, alone or again and again."""
    run: list[Any] = []
    in_row: dict[str, list[Any]] = {}
    for step in scene.steps:
        if step.turn is None:
            continue
        run = in_row.setdefault(step.block.lane, [])
        for call in step.turn.attempts:
            if call.error is not None:
                run.append(call)
            elif call.end is not None and run:
                yield from _failed(scene, run, is_recovered=True)
                run.clear()
    for run in in_row.values():
        yield from _failed(scene, run, is_recovered=False)


def _failed(scene: Scene, calls: list[Any], *, is_recovered: bool) -> Iterator[Suspect]:
    if not calls:
        return
    first, last = calls[0], calls[-1]
    words = error_text(last.error)
    if len(calls) >= _STORM:
        text = f"{count(len(calls), 'attempt')} of a model call failed, the last with {words}"
        yield scene.suspect(RETRIES, 0.35 if is_recovered else 0.9, first.end or first.event, text)
    else:
        confidence = 0.2 if is_recovered else 0.85 if scene.ended_by(last.error) else 0.75
        yield scene.suspect(
            MODEL_ERROR, confidence, first.end or first.event, f"a model call failed: {words}"
        )


def lost_context(scene: Scene) -> Iterator[Suspect]:
    """The requests that leave out what an earlier one of the same conversation had; the last of them."""
    found: Suspect | None = None
    changed = [
        step
        for step in (scene.steps if scene.is_whole else ())
        if step.turn is not None and not only_continues(step.turn, step.block.before)
    ]
    for step in changed[-_MOST_COMPARED:]:  # forwards, since a request builds on the one before
        assert step.turn is not None
        request = step.turn.request
        lost = dropped_from(step.turn, step.block.before, step.block.after, scene.keys) or _replaced(
            scene, step
        )
        if not lost:
            continue
        now = "\n".join(map(reading.text, scene.recording.sent_at(request)))
        conditions, facts = dropped_clauses((piece.text for piece in lost if _is_users(piece)), now)
        named = " · ".join(
            plain(text, 60) for text in [*conditions, *facts, *(piece.text for piece in lost)][:4]
        )
        text = f"turn {step.number} leaves out {count(len(lost), 'message')} of the prompt before it: {named}"
        suspect = scene.suspect(LOST_CONTEXT, 0.75 if conditions else 0.6 if facts else 0.25, request, text)
        if found is None or suspect.confidence > found.confidence:
            found = suspect
    if found is not None:
        yield found


def _replaced(scene: Scene, step: Step) -> list[Piece]:
    """Return what stood in a conversation that another call summarised, and is not in this prompt."""
    assert step.turn is not None
    context = context_of(scene.recording, step.turn.request)
    old = None if context is None else replaced_by(scene.recording, context)
    before = step.block.before
    if context is None or old is None or not before or old in [each.event for each in before[0].attempts]:
        return []
    messages = scene.recording.sent_at(old)
    lost = compare(messages, [part.value for part in context.messages], scene.keys).lost
    pieces = [piece for at in lost for piece in pieces_of(messages[at])]
    return [piece for piece in pieces if piece.role not in ("assistant", "model")]


def _is_users(piece: Piece) -> bool:
    """True for what a person wrote, or the system prompt: nobody brings it again, as a tool would."""
    return piece.sort == "text" and piece.role in ("user", "system", "developer")


def lost_system_prompt(scene: Scene) -> Iterator[Suspect]:
    """A system prompt that is gone from the next request of its lane."""
    for step in scene.steps:
        before = step.block.before
        if step.turn is None or not before or step.block.is_far:
            continue
        has_other_tools = any(what == "tools" for what, _ in step.prompt.changes)
        if (_system_is_gone(step) or ("system", "is gone") in step.prompt.changes) and not has_other_tools:
            text = f"turn {step.number} leaves out the system prompt that the one before it had"
            yield scene.suspect(LOST_CONTEXT, 0.75, step.turn.request, text)
            return


def _system_is_gone(step: Step) -> bool:
    """True if the messages began with a system prompt before and do no more."""
    if step.turn is None or not any(
        "dropped" in how for what, how in step.prompt.changes if what == "history"
    ):
        return False
    old, new = (sent_messages(each.request.stored_body) for each in (step.block.before[0], step.turn))
    roles = [role_of(messages[0]) if messages else "" for messages in (old, new)]
    return roles[0] == "system" != roles[1] and len(new) > 1


def repeated_answers(scene: Scene) -> Iterator[Suspect]:
    """A model that writes the same again and again."""
    answers: dict[tuple[str, str], list[Step]] = {}
    for step in scene.steps:
        if step.turn is not None and len(step.text) > 20 and not step.uses:
            answers.setdefault((step.block.lane, step.text), []).append(step)
    for (_, text), steps in answers.items():
        end = steps[1].turn.response if len(steps) > _STORM and steps[1].turn is not None else None
        if end is not None:
            words = f"the model gave the same answer {len(steps)} times: {plain(text, 160)}"
            yield scene.suspect(REPEATED_CALL, 0.7, end, words)


_PLACEHOLDERS = re.compile(
    r"\{\{\s*[\w.]{1,40}\s*\}\}|\$\{[\w.]{1,40}\}|(?<![\w{])\{[a-z_][a-z0-9_.]{1,40}\}(?!\})|%\([a-z_]{1,40}\)s"
    r"|\[object Object\]|(?<!\w)<(?:[A-Z][A-Z_]{2,40})>"
    r"|\b[a-z]+ (?:None|NaN|null)(?=[\s.,;:!?]|\Z)|\b\w+: (?:None|NaN|null|undefined)(?=[\s,;]|\Z)"
)


def unfilled_placeholders(scene: Scene) -> Iterator[Suspect]:
    """A prompt with a name in braces, or a None, where a value belongs."""
    for step in scene.steps:
        texts = [piece.text for piece in step.prompt.new if _is_users(piece)]
        texts += [how for what, how in step.prompt.changes if what == "system"]
        if step.block.before:
            continue  # what comes later is seldom made from a template
        for text in texts:
            found = _PLACEHOLDERS.search(text) if len(text) < _LOOKED_AT else None
            if found is not None and step.turn is not None:
                part = plain(text[max(0, found.start() - 30) : found.end() + 30], 100)
                words = f"the prompt of turn {step.number} has an unfilled place: {part}"
                yield scene.suspect(PLACEHOLDER, 0.6, step.turn.request, words)
                return


_LOOKED_AT = 20_000


def undone_claims(scene: Scene) -> Iterator[Suspect]:
    """An answer that says that something was done for which a tool was offered and never called."""
    last = scene.last
    if last is None or last.uses or not last.text or last.turn is None or last.turn.response is None:
        return
    called = {use.tool for use in scene.uses}
    text = last.text.lower()
    words = {word[:_STEM] for word in re.findall(r"[a-z]+", text)}
    for tool in scene.declared.get(last.number, {}):
        parts = [part for part in words_of(tool) if len(part) > 2]
        if tool in called or len(parts) < 2 or not words.issuperset(part[:_STEM] for part in parts[1:]):
            continue
        if _is_claimed(parts[0], text) and not last.admits:
            text = f"the answer claims what {plain(tool, 40)} would do, which was never called: "
            yield scene.suspect(UNDONE, 0.65, last.turn.response, text + plain(last.text, 160))
            return


_STEM = 4
_PAST = {
    "send": "sent",
    "run": "pass|ran|green|succeed",
    "pay": "paid",
    "make": "made",
    "write": "written|wrote",
    "build": "built",
}


def _is_claimed(verb: str, text: str) -> bool:
    past = _PAST.get(verb) or rf"{re.escape(verb.rstrip('e'))}(?:e?d|{re.escape(verb[-1])}ed)"
    return re.search(rf"\b(?:{past})\w*\b", text) is not None


def structured_outputs(scene: Scene) -> Iterator[Suspect]:
    """An answer that is not what the schema of its request asks for."""
    wanted: dict[str, Any] = {}
    for step in scene.steps:
        if step.turn is None or step.turn.request.is_partial:
            continue
        body = mapping(step.turn.request.stored_fields.get("body"))
        lane = step.block.lane
        if any(name in body for name in _FORMAT_KEYS):
            wanted[lane] = _schema_of(body)
        schema, end = wanted.get(lane), step.turn.response
        if schema is None or end is None or end.error is not None or step.uses or not step.text.strip():
            continue
        found = _mismatch(step.text, schema)
        if found is not None:
            yield scene.suspect(
                SCHEMA, 0.75, end, f"the answer does not fit the schema of its request: {plain(found)}"
            )


_FORMAT_KEYS = (
    "response_format",
    "text",
    "generationConfig",
    "config",
    "output_format",
    "output_config",
    "format",
)


def _schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema that a request sets for its answer; an empty one where any JSON will do."""
    chat = mapping(body.get("response_format"))
    responses = mapping(mapping(body.get("text")).get("format"))
    gemini = mapping(body.get("generationConfig")) or mapping(body.get("config"))
    anthropic = mapping(body.get("output_format")) or mapping(
        mapping(body.get("output_config")).get("format")
    )
    for one in (
        mapping(chat.get("json_schema")).get("schema"),
        chat.get("schema"),
        responses.get("schema"),
        gemini.get("responseSchema") or gemini.get("responseJsonSchema") or gemini.get("response_schema"),
        anthropic.get("schema"),
        body.get("format"),
    ):
        if isinstance(one, dict) and one:
            return one
    is_json = "json_object" in (chat.get("type"), responses.get("type")) or body.get("format") == "json"
    return {} if is_json or gemini.get("responseMimeType") == "application/json" else None


def _mismatch(text: str, schema: dict[str, Any]) -> str | None:
    bare = text.strip()
    if bare.startswith("```"):
        bare = bare.strip("`").removeprefix("json").strip()
    try:
        value = json.loads(bare)
    except (ValueError, RecursionError):
        return "it is no JSON"
    return next(iter(violations(value, schema)), None) if schema else None


def unreadable_answers(scene: Scene) -> Iterator[Suspect]:
    """The answer before the program failed to read it."""
    error, last = scene.ended_with, scene.last
    kind = ((error.type if error is not None else None) or "").rpartition(".")[2]
    if error is None or not kind.startswith(_PARSERS) or last is None or last.turn is None:
        return
    end = last.turn.response
    if end is not None and end.error is None and last.text:
        text = f"the program could not read the answer ({kind}): {plain(last.text, 160)}"
        yield scene.suspect(SCHEMA, 0.75, end, text)


_PARSERS = ("JSONDecodeError", "ValidationError", "OutputParser", "ParserError", "ParseError", "YAMLError")

RULES = (
    cut_answers,
    failed_calls,
    lost_context,
    lost_system_prompt,
    repeated_answers,
    unfilled_placeholders,
    undone_claims,
    structured_outputs,
    unreadable_answers,
)
