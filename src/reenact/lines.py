"""Event <-> bytes of one line: the only place where writer and reader meet.

The top level is written with ``": "`` and ``", "`` so that the articles' greps work, nested values
are compact, everything is ASCII, the envelope comes first in fixed order. See docs/format.md.
"""

from __future__ import annotations

import os

try:  # the C halves alone: importing ``json`` costs the agent 7 ms and 20 modules
    from _json import encode_basestring_ascii as quote
    from _json import make_encoder as _make_encoder
except ImportError:  # an interpreter without the C accelerator
    from json.encoder import encode_basestring_ascii as quote

    _make_encoder = None  # type: ignore[assignment,misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class NotPlain(Exception):
    """The value is not plain JSON as it stands; jsonable() has to look at it first."""


def _refuse(value: object) -> object:
    raise NotPlain


def dumps(value: Any, default: Callable[[object], object] = _refuse) -> str:
    """Return the compact ASCII JSON of a value; raises on cycles, NaN and odd keys.

    >>> dumps({"a": [1, "é"]})
    '{"a":[1,"\\\\u00e9"]}'
    """
    kind = type(value)
    if kind is str:
        return quote(value)
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if kind is int:
        return int.__repr__(value)
    if _accelerated is not None and default is _refuse:
        text = _accelerated(value)
        if text is not None:
            return text
    if _make_encoder is None:
        return _slow_dumps(value, default)
    # Fresh markers each time: a shared dict would see another thread's list as a cycle.
    return "".join(_make_encoder({}, default, quote, None, ":", ",", False, False, False)(value, 0))


def _slow_dumps(value: Any, default: Callable[[object], object]) -> str:
    import json

    return json.dumps(value, default=default, separators=(",", ":"), allow_nan=False)


_accelerated: Callable[[Any], str | None] | None = None


def accelerate() -> bool:
    """Use orjson for values both encoders write alike; lines stay byte-identical."""
    global _accelerated
    try:
        import orjson
    except ImportError:
        return False
    fast = orjson.dumps
    strict = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATETIME
    strict |= orjson.OPT_PASSTHROUGH_DATACLASS

    def encode(value: Any) -> str | None:
        if not _alike(value, 0):
            return None
        try:
            data: bytes = fast(value, _refuse, strict)
        except TypeError:  # orjson's own limits, a lone surrogate for instance
            return None
        # The stdlib escapes DEL and everything beyond ASCII, orjson does neither.
        if not data.isascii() or b"\x7f" in data:
            return None
        return data.decode("ascii")

    _accelerated = encode
    return True


def _alike(value: Any, depth: int) -> bool:
    """True if orjson and the stdlib give the same text: exact types, plain keys, unremarkable numbers."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is dict:
        if depth > 200:
            return False
        for key, item in value.items():
            if type(key) is not str:
                return False
            kind = type(item)
            if kind is not str and not _alike(item, depth + 1):
                return False
        return True
    if kind is list:
        return depth <= 200 and all(_alike(item, depth + 1) for item in value)
    if kind is int:
        return -(2**63) <= value < 2**63
    # Below 1e-4 and above 1e15 the two spell exponents differently; NaN fails both comparisons.
    return kind is float and (value == 0 or 1e-4 <= abs(value) < 1e15)


def envelope(ts: float, run: str, w: str, step: int, kind: str) -> str:
    """Return the opening of a line, up to and without the comma before the first field."""
    return f'{{"ts": {ts:.6f}, "run": {quote(run)}, "w": "{w}", "step": {step}, "kind": {quote(kind)}'


def peek(line: bytes) -> tuple[float, str, str, int, str] | None:
    """Return the envelope of one of our own lines without parsing the rest; None if it is not ours."""
    if not line.startswith(b'{"ts": '):
        return None
    head = line[:4096].split(b', "', 5)
    try:
        if head[1][:6] != b'run": ' or head[2][:5] != b'w": "' or head[3][:7] != b'step": ':
            return None
        if head[4][:7] != b'kind": ':
            return None
        kind = head[4][7:].rstrip(b"}\r\n").decode("ascii")
        run = head[1][6:].decode("ascii")
        if "\\" in run or "\\" in kind:
            return None  # escaped: the caller parses the line whole
        return float(head[0][7:]), run[1:-1], head[2][5:-1].decode("ascii"), int(head[3][7:]), kind[1:-1]
    except (IndexError, ValueError):
        return None


def parse(line: bytes) -> dict[str, Any]:
    """Return the JSON object a line holds; ValueError if it holds none."""
    import json

    try:
        value = json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply to read") from None
    if type(value) is not dict:
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    return value


def escape_key(key: str) -> str:
    """Double a leading ``$``, which is ours."""
    return "$" + key if key.startswith("$") else key


def unescape_key(key: str) -> str:
    """Take off what escape_key() put on."""
    return key[1:] if key.startswith("$$") else key


def new_id(nbytes: int) -> str:
    """Return that many random bytes as hex digits."""
    return os.urandom(nbytes).hex()
