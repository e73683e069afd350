"""Trace values as short printable text: numbers, times, ages, cut to a width.

Used by every command. Everything that comes from a trace passes through ``plain`` or ``clean``, so no
control character of it ever reaches a terminal.
"""

from __future__ import annotations

import json
import math
import re
import time
import unicodedata
from typing import Any

WIDTH = 160

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\x1b[\]PX^_].*?(?:\x07|\x1b\\|$)"  # titles, links, clipboard
    r"|\x1b.?|\x9b[0-?]*[ -/]*[@-~]",
    re.DOTALL,
)


def one_line(text: str, width: int = WIDTH) -> str:
    """Return printable text on one line, cut to a width.

    >>> plain("a\\x1b[31mb\\n c")
    'ab c'
    """
    text = " ".join(_ESCAPES.sub("", text[: width * 8]).split())
    if not text.isprintable():
        text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= width else text[: width - 1] + "…"


_WITHOUT_LAYOUT = {ord("\n"): None, ord("\t"): None}


def plain(text: str, width: int = WIDTH) -> str:
    """Return printable text on one line, cut to a width."""
    if len(text) <= width and text.isprintable() and "  " not in text:
        return text.strip()
    return one_line(text, width)


def clean(text: str) -> str:
    """Return printable text, its lines kept.

    >>> clean("a\\x1b[2Jb\\nc\\x07")
    'ab\\nc\\ufffd'
    """
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if text.translate(_WITHOUT_LAYOUT).isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


_UNPRINTABLE = re.compile(r"[^\x20-\x7e\n]")


def pretty_json(value: Any, indent: int | None = 2) -> str:
    """Return JSON for reading: text as it is, but everything unprintable escaped."""
    text = dump(value, ensure_ascii=False, indent=indent)
    return _UNPRINTABLE.sub(_escaped, text)


def dump(value: Any, **options: Any) -> str:
    """Return valid JSON; what it has no word for (NaN, infinities) in the trace's own spelling."""
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(_finite(value), **options)


def _finite(value: Any) -> Any:
    if type(value) is float and not math.isfinite(value):
        return {"$float": str(value)}
    if type(value) is dict:
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if type(value) is list else value


def _escaped(found: re.Match[str]) -> str:
    char = found[0]
    if char.isprintable():
        return char
    return json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"


def short_json(value: Any, width: int) -> str:
    """Return JSON on one line, cut to a width."""
    if type(value) is dict and type(value.get("head")) is str and "$blob" in value:
        value = value["head"] + "…"
    if type(value) is str:
        value = _ESCAPES.sub("", value[: width * 2])
    try:
        return plain(json.dumps(value, ensure_ascii=False), width)
    except (ValueError, RecursionError):
        return "…"


def arguments(value: Any, width: int) -> str:
    """Return a tool's arguments as they would be typed.

    >>> arguments({"q": "hotels", "n": 3}, 40)
    'q="hotels", n=3'
    """
    if type(value) is not dict:
        return "" if value is None else short_json(value, width)
    parts = [f"{plain(str(key), 30)}={short_json(item, width)}" for key, item in list(value.items())[:20]]
    return plain(", ".join(parts), width)


def call_text(name: str | None, args: Any, width: int) -> str:
    """Return a tool with its arguments, like a call.

    >>> call_text("search", {"q": "hotels"}, 40)
    'search(q="hotels")'
    """
    return f"{plain(name or '?', 60)}({arguments(args, width)})"


def width_of(text: str) -> int:
    """Return how many columns a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def cut(text: str, width: int) -> str:
    """Return the text in at most that many columns, an ellipsis where it was cut."""
    if width_of(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += width_of(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Return the text cut or filled up to exactly that many columns."""
    text = cut(text, width)
    return text + " " * (width - width_of(text))


def count(number: int, thing: str) -> str:
    """Return a number with its thing in singular or plural.

    >>> count(1, "turn"), count(1200, "turn")
    ('1 turn', '1,200 turns')
    """
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def compact(number: int) -> str:
    """Return a count in at most six columns.

    >>> compact(999), compact(12345), compact(2_500_000)
    ('999', '12.3k', '2.5M')
    """
    if abs(number) < 10_000:
        return str(number)
    for limit, unit, letter in ((1e6, 1e3, "k"), (1e9, 1e6, "M"), (1e12, 1e9, "G")):
        if abs(number) < limit:
            return f"{number / unit:.1f}{letter}"
    return "many"


def milliseconds(value: object) -> str:
    """Return a duration in milliseconds as text, in a readable unit."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e13:
        return ""
    if value < 0.1:
        return f"{value * 1000:.0f} µs"
    if value < 10:
        return f"{value:.1f} ms"
    return f"{value:.0f} ms" if value < 1000 else seconds(value / 1000)


def seconds(value: float) -> str:
    """Return a duration in seconds as text.

    >>> seconds(2.345), seconds(65), seconds(7300)
    ('2.3 s', '1m05s', '2h01m')
    """
    if value < 60:
        return f"{value:.1f} s" if value < 9.95 else f"{value:.0f} s"
    minutes, rest = divmod(int(value), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m" if hours < 48 else f"{hours // 24}d"


def moment(when: float | None) -> str:
    """Return a local date and time; empty for none, or one no clock ever showed."""
    if when is None or not abs(when) < 1e11:
        return ""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(when))


def age(then: float | None, now: float) -> str:
    """Return how long ago something was, in one unit.

    >>> age(1000, 1000 + 7300), age(1000, 990)
    ('2h', '0s')
    """
    if then is None or not abs(then) < 1e13:
        return "-"
    passed = max(0.0, now - then)
    for limit, unit, letter in ((100, 1, "s"), (6000, 60, "m"), (172800, 3600, "h")):
        if passed < limit:
            return f"{passed / unit:.0f}{letter}"
    days = passed / 86400
    return f"{days:.0f}d" if days < 1000 else f"{days / 365:.0f}y"


def offset_text(ts: float | None, started: float | None) -> str:
    """Return when an event happened, counted from the beginning of its run."""
    if ts is None or started is None or not abs(ts - started) < 1e9:
        return ""
    passed = ts - started
    return f"+{passed:.2f}s" if 0 <= passed < 60 else f"+{seconds(passed)}" if passed >= 0 else "before"
