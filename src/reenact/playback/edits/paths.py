"""Places in a JSON value by name: ``tools.0.description`` or ``/tools/0/description``.

Nothing is changed in place; values off the path are shared.
"""

from __future__ import annotations

from typing import Any

from ...errors import UsageError


def steps_of(name: str) -> list[str]:
    """Return the steps of a path, dotted or a JSON pointer."""
    if not name.startswith("/"):
        return name.split(".")
    return [step.replace("~1", "/").replace("~0", "~") for step in name[1:].split("/")]


def at_path(value: Any, steps: list[str]) -> Any:
    """Return the value at a path; UsageError if there is none."""
    for number, step in enumerate(steps):
        value = value[_key(value, step, steps[:number])]
    return value


def with_path(value: Any, steps: list[str], new: Any) -> Any:
    """Return the value with ``new`` at the path; None removes it. Only a top-level name may be new."""
    return _with(value, steps, new, [])


def _with(value: Any, steps: list[str], new: Any, walked: list[str]) -> Any:
    step = steps[0]
    is_new = not walked and len(steps) == 1 and type(value) is dict and step not in value
    key = step if is_new else _key(value, step, walked)
    copy: Any = list(value) if type(value) is list else dict(value)
    if len(steps) > 1:
        copy[key] = _with(value[key], steps[1:], new, [*walked, step])
    elif new is not None:
        copy[key] = new
    elif not is_new:
        del copy[key]
    return copy


def _key(value: Any, step: str, walked: list[str]) -> Any:
    """Return the key or index of a step in a value."""
    if type(value) is dict:
        if step in value:
            return step
        there = ", ".join(map(str, list(value)[:12])) or "nothing"
    elif type(value) is list:
        digits = step.removeprefix("-")
        if digits.isdecimal() and len(digits) < 10 and -len(value) <= int(step) < len(value):
            return int(step)
        there = f"0 to {len(value) - 1}" if value else "an empty list"
    else:
        there = f"a {type(value).__name__}, which has no parts"
    raise UsageError(
        f"there is no {'.'.join([*walked, step])} in the request",
        hint=f"at {'.'.join(walked) or 'the top'} there is: {there}; only a name at the top may be new",
    )
