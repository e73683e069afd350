"""What a tool returned beside what the model was sent for it: the same, another form, or a contradiction.

The two belong together by the id of the tool use; that is decided elsewhere (``recording.derived_tools``).
Here only the values are compared: agents and frameworks send a result as text, as JSON, in parts, cut short
or inside a sentence, so a contradiction is reported only where no such form explains the difference.
Pure functions; none raises for an odd value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from .json_values import as_json, canonical, mapping, plain_text, string

SAME, OTHER_FORM, CONTRADICTED = "same", "other form", "contradicted"

_ENDS = 24
"""Characters at the beginning or the end of a text that show that the rest was cut or replaced."""

_MAX_TEXT = 1 << 20
"""A longer text is compared as it stands and not read as JSON."""

_STAND_INS = re.compile(r'"\$(?:repr|cut|blob|hash|none|bytes|float)"|<redacted:')
"""What the recorder writes for a value that it does not hold as it was."""


def compare_result(returned: Any, sent: Any) -> str:
    """Return how the result that the model was sent relates to the value that the tool returned.

    >>> compare_result("900 EUR", "120 EUR"), compare_result({"n": 1}, '{"n": 1}')
    ('contradicted', 'same')
    >>> compare_result("900 EUR", "The price is 900 EUR."), compare_result(12, "13")
    ('other form', 'contradicted')
    """
    if not _forms(returned).isdisjoint(_forms(sent)):
        return SAME
    if returned is None or _STAND_INS.search(canonical(returned)) or _STAND_INS.search(canonical(sent)):
        return OTHER_FORM
    value, other, text = _unwrapped(returned), _unwrapped(sent), result_text(sent).strip()
    if isinstance(value, dict | list):
        return CONTRADICTED if _differs(value, other) else OTHER_FORM
    if isinstance(value, str):
        return OTHER_FORM if _is_within(value.strip(), text) else CONTRADICTED
    is_another = isinstance(other, bool | int | float) and not _has_word(as_json(value), text)
    return CONTRADICTED if is_another else OTHER_FORM


def compare_error(error: str, sent: Any, *, failed: bool) -> str:
    """Return how the result that the model was sent relates to the error of the tool.

    A framework may send a text of its own in place of an error, so there is no contradiction.
    """
    message = error.strip()
    return SAME if failed or (message and message in result_text(sent)) else OTHER_FORM


def result_text(value: Any) -> str:
    """Return a tool's result as the model got it: the words of its parts, else JSON."""
    parts = value if type(value) is list else None
    if parts and all(type(part) is dict and plain_text(part.get("text")) for part in parts):
        return "\n".join(plain_text(part.get("text")) for part in parts)
    return value if type(value) is str else as_json(value)


def comparable(value: Any) -> str:
    """Return what two forms of one value have in common: JSON in any order of keys, a text without its ends.

    >>> comparable('{"b": 1, "a": 2}') == comparable({"a": 2, "b": 1}), comparable(" text ")
    (True, 'text')
    """
    found = _parsed(value) if isinstance(value, str) else value
    return found.strip() if isinstance(found, str) else canonical(found)


def _forms(value: Any) -> set[str]:
    """Return the ways in which a value may be written that mean the same."""
    found = set()
    for each in _readings(value):
        found.add(comparable(each))
        if not isinstance(each, str):
            found.add(repr(each))  # what str() makes of it, where an agent calls that
    return found


def _readings(value: Any) -> Iterator[Any]:
    """Yield a value, and what is inside where it only wraps another one: MCP's answers, Gemini's objects."""
    yield value
    if value is None:
        yield ""
    item = mapping(value)
    parts = item.get("content") if isinstance(item.get("content"), list) else value
    if isinstance(parts, list) and parts and all(string(mapping(part).get("text")) for part in parts):
        yield "\n".join(part["text"] for part in parts)
    if item.get("structuredContent") is not None:
        yield from _readings(item["structuredContent"])
    if len(item) == 1:
        (inner,) = item.values()
        yield from _readings(inner)


def _unwrapped(value: Any) -> Any:
    """Return the innermost reading of a value, as data where it is the text of data."""
    *_, last = _readings(value)
    found = _parsed(last) if isinstance(last, str) else last
    return found if found is last or isinstance(found, str) else _unwrapped(found)


def _parsed(text: str) -> Any:
    if len(text) > _MAX_TEXT:
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _differs(returned: Any, sent: Any) -> bool:
    """True if both are data of one shape with another value at the same place; what is left out is none."""
    if isinstance(returned, dict) and isinstance(sent, dict):
        shared = returned.keys() & sent.keys()
        return any(_differs(returned[key], sent[key]) for key in shared)
    if isinstance(returned, list) and isinstance(sent, list):
        return len(returned) == len(sent) and any(map(_differs, returned, sent))
    if isinstance(returned, dict | list | None) or isinstance(sent, dict | list | None):
        return False
    if isinstance(returned, str) and isinstance(sent, str):
        return not _is_within(returned.strip(), sent.strip())
    return type(returned) is type(sent) and returned != sent


def _is_within(returned: str, sent: str) -> bool:
    """True if a text is sent inside another one, or only its beginning or its end is."""
    if returned in sent or (sent and sent in returned):
        return True
    one, other = " ".join(returned.split()), " ".join(sent.split())
    return one in other or (len(one) > _ENDS and (one[:_ENDS] in other or one[-_ENDS:] in other))


def _has_word(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
