"""Why two requests may differ unintentionally: clocks, random ids, addresses, the order of a set.

Hints, not verdicts; the likeliest comes first.
"""

from __future__ import annotations

import re
from typing import Any

from ...wire.json_differences import (
    ADDRESS,
    CLOCK,
    MISSING,
    RANDOM_ID,
    TEMP_PATH,
    Difference,
    changed_part,
    volatile_parts,
)
from ...wire.json_values import canonical

ORDER = "order"
MODEL, FIELD, PROMPT, RACE = "model", "field", "prompt", "race"
ANSWER, LOSSY, STREAM, TOOL_RESULT = "answer", "lossy", "stream", "tool-result"
EQUAL_AT_ONCE, NOT_NAMED, TOOL_CALL = "equal-at-once", "not-named", "tool-call"
OTHER_FUNCTION = "other-function"

WORDS = {
    CLOCK: "a time or date is in the text: take it from reenact.now(), or record with --ambient MODULE",
    RANDOM_ID: "a random id is in the text: take it from reenact.uuid(), or record with --ambient MODULE",
    ORDER: "the same things in another order: a set, or a dict built in another order; sort it",
    ADDRESS: "the address of an object is in the text: its repr() was formatted into it",
    TEMP_PATH: "the path of a temporary file is in the text",
    MODEL: "the request names another model",
    FIELD: "only one side has this field: a setting was changed, or another SDK version sends it",
    PROMPT: "the text comes from your code: a prompt or its template was changed",
    RACE: "these are the recorded calls in another order: steps were swapped, or they race",
    ANSWER: "the differing text came from an earlier answer: look for the first difference before this one",
    LOSSY: "the recording holds only a part of this request, so nothing matches it; "
    "pass --blobs DIR if its long texts are in another folder",
    TOOL_RESULT: "this is the result of a tool that ran again and returned something else; "
    "decorated with @tap.tool and recorded again, it returns its recorded result",
    TOOL_CALL: "no such call of the tool is recorded, so it did not run: your code changed the "
    "arguments, or calls the function itself while the model waits for its results",
    OTHER_FUNCTION: "this request has a result that is not from the recording: your code made it itself, or "
    "ran a function that was not there when the response arrived",
    EQUAL_AT_ONCE: "the threads and tasks that made these requests are not those that make them now; "
    "if that is meant, record again",
    NOT_NAMED: "the recording does not name the thread or task that made each request, as none did before "
    'format 1.1: rerecord it, with reenact run or mode="rerecord"',
    STREAM: "one side requests a stream, the other a plain answer",
}


def likely_causes(difference: Difference, recorded_whole: Any, now_whole: Any) -> list[str]:
    """Return hints for the first difference of two requests, the likeliest first."""
    path, recorded, now = difference
    found: list[str] = []
    if path[:1] == ("stream",):
        return [STREAM]
    if path[:1] == ("model",):
        found.append(MODEL)
    if _is_reordered(path, recorded_whole, now_whole):
        found.append(ORDER)
    elif type(recorded) is str and type(now) is str:
        found += _of_texts(recorded, now)
    elif recorded is MISSING or now is MISSING:
        found.append(FIELD if len(path) == 1 else PROMPT)
    return list(dict.fromkeys(found))


def _of_texts(recorded: str, now: str) -> list[str]:
    before, after = changed_part(recorded, now)
    found = volatile_parts(before, after)
    old, new = re.findall(r"\w+", before), re.findall(r"\w+", after)
    if len(old) > 1 and sorted(old) == sorted(new):
        found.append(ORDER)
    return found


def _is_reordered(path: tuple[str | int, ...], recorded: Any, now: Any) -> bool:
    """True if a list on the path has the same elements on both sides."""
    for part in path:
        if type(recorded) is list and type(now) is list and recorded != now:
            if sorted(map(canonical, recorded)) == sorted(map(canonical, now)):
                return True
        try:
            recorded, now = recorded[part], now[part]
        except (LookupError, TypeError):
            return False
    return False
