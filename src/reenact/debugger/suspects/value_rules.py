"""Rules about values: arguments and claims that stand nowhere before, schemas, units."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...tracefile.events.event import Event
from ...tracefile.events.text import plain, short_json
from ...wire.json_schema import violations
from ...wire.json_values import as_json, mapping, string
from .known_values import TOKEN, KnownValues, is_id, leaves
from .scene import Scene, Step, Use, words_of
from .suspect import OTHER_UNIT, SCHEMA, UNASKED, UNKNOWN_ARGUMENT, UNKNOWN_CLAIM, Suspect
from .units import Measure, measures_in, measures_in_text, unit_of_description, unit_of_key

_REFERS = frozenset(
    "account address booking card code confirmation contact customer email employee flight hash "
    "iban id identifier ids invoice isbn issue key member mail number order patient phone product "
    "recipient record ref reference reservation serial sku ticket to token tracking transaction "
    "user username uuid".split()
)
"""Words in the name of an argument that refers to something that exists."""

_DESTROYS = frozenset(
    "cancel delete destroy disable drop erase kill purge remove reset revoke terminate truncate wipe".split()
)

_COUNTS = frozenset(
    "line lines page offset limit count port size width height depth timeout quantity amount".split()
)

_MOST_UNKNOWN = 50
"""Unknown values of one run that are looked at more closely."""


def schema_violations(scene: Scene) -> Iterator[Suspect]:
    """Arguments that do not fit the tool's schema, and tools that the request did not offer."""
    for step in scene.steps:
        offered = scene.declared.get(step.number, {})
        for use in step.uses if offered else ():
            declared = offered.get(use.tool)
            confidence = 0.3 if use.failure is not None and scene.recovers(use) else 0.8
            if declared is None:
                if use.call.tool_id is not None and not _is_known_tool(use.tool, offered):
                    words = f"{use.words}: the request offers no tool of this name"
                    yield scene.suspect(SCHEMA, confidence, use.call.event, words)
                continue
            schema = next((declared[key] for key in _SCHEMAS if isinstance(declared.get(key), dict)), None)
            found = violations({} if use.args is None else use.args, schema) if schema is not None else []
            if found:
                words = f"{use.words} does not fit the tool's schema: {plain('; '.join(found), 200)}"
                yield scene.suspect(SCHEMA, confidence, use.call.event, words)


_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")


def _is_known_tool(tool: str, offered: dict[str, Any]) -> bool:
    return any(name.endswith(tool) or tool.endswith(name) for name in offered)


def unknown_values(scene: Scene) -> Iterator[Suspect]:
    """Arguments, and claims of an answer, that stand nowhere before: not in a prompt, not in a result."""
    if not scene.is_whole:
        return
    known = KnownValues()
    for value in (scene.recording.input, scene.recording.meta or None):
        if value is not None:
            known.add(value)
    left = _MOST_UNKNOWN
    for step in scene.steps:
        _learn_prompt(step, known)
        if not known.is_complete:
            return
        for use in step.uses:
            verbs = _DESTROYS.intersection(use.name_words)
            if step.turn is not None and verbs and not any(known.speaks_of(verb) for verb in verbs):
                text = f"{use.words}: nothing before speaks of {', '.join(sorted(verbs))}"
                yield scene.suspect(UNASKED, 0.6, use.call.event, text)
            for name, value in leaves(use.args):
                if left and (found := _unknown_argument(scene, use, name, value, known)) is not None:
                    left -= 1
                    yield found
                    known.add(value)  # once is enough
        if left and step.turn is not None and (found := _misread(scene, step, known)) is not None:
            left -= 1
            yield found
        elif left and step.turn is not None and not step.uses and step.text:
            for found in _unknown_claims(scene, step, known):
                left = max(0, left - 1)
                yield found
        for use in step.uses:
            if use.call.end is not None:
                known.add(use.call.error if use.call.error is not None else use.call.result)
                known.add_totals(use.result)


def _learn_prompt(step: Step, known: KnownValues) -> None:
    """Take in what a request brings: its new messages, its system prompt, its tools with their schemas."""
    if step.turn is None:
        return
    if not step.prompt.recorded:
        known.is_complete = False
        return
    for piece in step.prompt.new:
        if piece.role not in ("assistant", "model"):
            known.add(piece.text)
    body = mapping(step.turn.request.stored_fields.get("body"))
    for key, value in body.items():
        if key not in ("messages", "contents", "input"):
            known.add(as_json(value), is_spoken=False)


def _unknown_argument(scene: Scene, use: Use, name: str, value: Any, known: KnownValues) -> Suspect | None:
    words = words_of(name)
    refers = not _REFERS.isdisjoint(words) and _COUNTS.isdisjoint(words)
    if isinstance(value, str):
        if not is_id(value) or known.has(value):
            return None
        confidence = 0.6 if refers else 0.3
    else:
        if abs(value) < 100 or known.has_number(value):
            return None
        confidence = 0.6 if refers and isinstance(value, int) else 0.2
        if confidence < 0.5 and known.is_sum(value):
            return None
    near = known.nearest(str(value))
    if near is not None and refers:
        confidence += 0.2
    if use.failure is not None or use.is_empty:
        confidence += 0.1
    if use.failure is not None and scene.recovers(use):
        confidence = 0.25
    text = f"{use.words}: {plain(name, 40)} {short_json(value, 80)} stands nowhere before"
    text += f"; near to it is {plain(near, 60)}" if near is not None else ""
    return scene.suspect(UNKNOWN_ARGUMENT, min(confidence, 0.9), use.call.event, text)


def _misread(scene: Scene, step: Step, known: KnownValues) -> Suspect | None:
    """A number that the model writes, and that a result has with other digits, or a total that is wrong."""
    end = step.turn.response if step.turn is not None else None
    text = "\n".join([step.text, *(as_json(use.args) for use in step.uses)])
    for word in dict.fromkeys(each.strip(".-+/") for each in TOKEN.findall(text[:_MOST_TEXT])):
        number = _plain_number(word)
        if end is None or number is None or known.has_number(number):
            continue
        near = known.misread(word)
        if near is not None:
            words = f"the model wrote {plain(word, 40)}, which stands nowhere before; near to it is {near}"
            return scene.suspect(UNKNOWN_CLAIM, 0.7, end, words)
    return None


_MOST_TEXT = 100_000


def _unknown_claims(scene: Scene, step: Step, known: KnownValues) -> Iterator[Suspect]:
    """Ids and numbers of an answer that stand nowhere before and do not follow from what does."""
    end = step.turn.response if step.turn is not None else None
    if end is None:
        return
    unknown: list[str] = []
    has_id = False
    for word in dict.fromkeys(each.strip(".,-+/") for each in TOKEN.findall(step.text)):
        number = _plain_number(word)
        if number is None:
            if is_id(word) and not known.has(word):
                unknown.append(word)
                has_id = True
        elif abs(number) >= 100 and not known.has_number(number) and not known.is_sum(number):
            unknown.append(word)
    if unknown:
        is_last = step.next is None
        confidence = (0.55 if has_id else 0.4) if is_last else 0.3
        named = ", ".join(plain(each, 40) for each in unknown[:5])
        text = f"the answer has {named}, which stands nowhere before"
        yield scene.suspect(UNKNOWN_CLAIM, confidence, end, text)


def _plain_number(word: str) -> float | None:
    try:
        return float(word.replace(",", ""))
    except ValueError:
        return None


def other_units(scene: Scene) -> Iterator[Suspect]:
    """A number in one unit that is used, or declared, in another one."""
    facts: dict[tuple[float, str], set[str]] = {}
    for step in scene.steps:
        for piece in step.prompt.new if step.turn is not None else ():
            if piece.role not in ("assistant", "model"):
                _learn(measures_in_text(piece.text[:100_000]), facts)
        if step.text and step.turn is not None and step.turn.response is not None:
            yield from _conflicts(
                scene, step.turn.response, "the answer has", measures_in_text(step.text), facts
            )
        offered = scene.declared.get(step.number, {})
        for use in step.uses:
            declared = mapping(offered.get(use.tool))
            claimed = [*measures_in(use.args), *_declared_arguments(use, declared)]
            yield from _conflicts(scene, use.call.event, f"{use.words} has", claimed, facts)
        for use in step.uses:
            if use.call.end is None or use.call.error is not None:
                continue
            found = list(measures_in(use.result))
            wanted = unit_of_description(string(mapping(offered.get(use.tool)).get("description")) or "")
            for each in found:
                if wanted is not None and each.dimension == wanted[0] and each.unit != wanted[1]:
                    text = f"{use.words} returned {each.number:g} {each.unit}; "
                    text += f"the tool is described to return {wanted[1]}"
                    yield scene.suspect(OTHER_UNIT, 0.75, use.at, text)
                    break
            _learn(iter(found), facts)


def _declared_arguments(use: Use, declared: dict[str, Any]) -> Iterator[Measure]:
    """Yield the numbers among arguments whose unit the tool's schema names."""
    schema = next((mapping(declared[key]) for key in _SCHEMAS if key in declared), {})
    properties = mapping(schema.get("properties"))
    for name, value in mapping(use.args).items():
        if isinstance(value, int | float) and not isinstance(value, bool) and unit_of_key(name) is None:
            unit = unit_of_description(string(mapping(properties.get(name)).get("description")) or "")
            if unit is not None:
                yield Measure(float(value), *unit)


def _learn(measures: Iterator[Measure], facts: dict[tuple[float, str], set[str]]) -> None:
    for each in measures:
        if len(facts) < 100_000:
            facts.setdefault((each.number, each.dimension), set()).add(each.unit)


def _conflicts(
    scene: Scene, event: Event, words: str, claimed: Any, facts: dict[tuple[float, str], set[str]]
) -> Iterator[Suspect]:
    for each in claimed:
        units = facts.get((each.number, each.dimension))
        if units and each.unit not in units and abs(each.number) >= 10:
            other = ", ".join(sorted(units))
            text = f"{words} {each.number:g} {each.unit}; the same number was {other} before"
            yield scene.suspect(OTHER_UNIT, 0.75, event, text)
            return


RULES = (schema_violations, unknown_values, other_units)
