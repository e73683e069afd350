"""Event <-> bytes of one line: the only place where writer and reader meet.

The top level is written with ``": "`` and ``", "`` so that the articles' greps work, nested values
are compact, everything is ASCII, the envelope comes first in fixed order. See docs/format.md.

So ``, "name": `` stands at the top level of a line and nowhere else: nested values have no space after a
colon, and inside a text every quote is escaped. Readers that find fields without parsing rely on that; they
ask here for the bytes to look for.
"""

from __future__ import annotations

import os

try:  # the C halves alone: importing ``json`` costs the agent 7 ms and 20 modules
    from _json import encode_basestring_ascii
    from _json import make_encoder as _make_encoder
except ImportError:  # an interpreter without the C accelerator
    from json.encoder import encode_basestring_ascii

    _make_encoder = None  # type: ignore[assignment,misc]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from re import Pattern
    from typing import Any

quote: Callable[[str], str] = encode_basestring_ascii
"""A string as a JSON string, ASCII only."""


def dumps(value: Any) -> str:
    """Return the compact ASCII JSON of a plain value: exact types, no cycle, no NaN (see is_plain()).

    >>> dumps({"a": [1, "é"]})
    '{"a":[1,"\\\\u00e9"]}'
    """
    if type(value) is str:
        return quote(value)
    if _accelerated is not None and 0 <= nodes(value, MAX_DEPTH) < ODD:
        text = _accelerated(value)
        if text is not None:
            return text
    return "".join(_encoder(value, 0))


def dumps_if_plain(value: Any) -> str | None:
    """Return dumps(value), None if the value is not plain as it stands; one walk does both."""
    count = nodes(value, MAX_DEPTH)
    if count < 0:
        return None
    if _accelerated is not None and count < ODD:
        text = _accelerated(value)
        if text is not None:
            return text
    return "".join(_encoder(value, 0))


def _stdlib_encoder() -> Callable[[Any, int], Any]:
    """Build the encoder once; without cycle markers, since is_plain() has bounded the depth already."""
    if _make_encoder is not None:
        encoder: Callable[[Any, int], Any] = _make_encoder(
            None, _refuse, quote, None, ":", ",", False, False, False
        )
        return encoder
    import json

    slow = json.JSONEncoder(check_circular=False, allow_nan=False, separators=(",", ":"))
    return lambda value, _: slow.encode(value)


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not plain JSON")


_encoder = _stdlib_encoder()
_accelerated: Callable[[Any], str | None] | None = None

MAX_DEPTH = 100
MAX_NODES = 1_000_000
"""Deeper or larger values are cut by jsonable(); a shared sub-list can be a bomb of any size."""


ODD = 1 << 32
"""Added to the count of nodes for each number and text that orjson and the stdlib spell differently. To write
the escapes into what orjson made of a text takes longer than the stdlib takes for all of it."""


def is_plain(value: Any) -> bool:
    """True if dumps() can write the value as it stands: no subclass, odd key, ``$`` key, cycle or bomb."""
    return nodes(value, MAX_DEPTH) >= 0


def nodes(value: Any, depth: int) -> int:
    """Count the nodes of a value, plus ODD for odd ones; -1 as soon as something is not plain."""
    kind = type(value)
    if kind is dict:
        for key in value:
            if type(key) is not str or key < "%":  # "$…" and a few rarer first characters
                return -1
        value = value.values()
    elif kind is not list:
        return nodes([value], depth) if value is None or kind in _SCALARS else -1
    if depth == 0:
        return -1
    count = len(value)
    for item in value:
        kind = type(item)
        if kind is str:
            if not item.isascii():
                count += ODD
            continue
        if kind is dict or kind is list:
            inner = nodes(item, depth - 1)
            if inner < 0:
                return -1
            count += inner
            if count % ODD > MAX_NODES:
                return -1
        elif kind is int:
            if not -(2**63) <= item < 2**63:
                count += ODD
        elif kind is float:  # outside this range exponents differ; NaN fails both comparisons
            if item != 0 and not 1e-4 <= abs(item) < 1e15:
                count += ODD
        elif item is not None and kind is not bool:
            return -1
    return count


_SCALARS = frozenset((str, int, bool, float))


def accelerate() -> bool:
    """Use orjson for values both encoders write alike; lines stay byte-identical."""
    global _accelerated
    try:
        import orjson
    except ImportError:
        return False
    fast = orjson.dumps

    def encode(value: Any) -> str | None:
        try:
            data: bytes = fast(value)
        except TypeError:  # orjson's own limits
            return None
        # The stdlib escapes DEL and everything beyond ASCII, orjson does neither; that may still be in a key.
        if not data.isascii() or b"\x7f" in data:
            return None
        return data.decode("ascii")

    _accelerated = encode
    return True


# Writing. A recorder keeps the parts that stay the same from line to line.


def writer_part(run: str, w: str) -> str:
    """Return what stands between the time and the step in all lines of a writer."""
    return f', "run": {quote(run)}, "w": "{w}", "step": '


def kind_part(kind: str) -> str:
    """Return what stands behind the step in all lines of a kind."""
    return f', "kind": {quote(kind)}'


def line(ts: float, writer: str, step: int, kind: str, text: str) -> str:
    """Return a whole line of ``writer_part``, ``kind_part`` and the text of its fields, with its newline."""
    return f'{{"ts": {ts:.6f}{writer}{step}{kind}{text}}}\n'


def field(name: str, text: str) -> str:
    """Return a field with the comma before it; ``text`` is its value as JSON."""
    return f", {quote(name)}: {text}"


def totals_field(turns: int, tokens_in: int, tokens_out: int, errors: int) -> str:
    """Return the field ``tot``, the running sums of a writer."""
    return f', "tot": {{"turns":{turns},"in":{tokens_in},"out":{tokens_out},"err":{errors}}}'


def whole(ts: float, run: str, w: str, step: int, kind: str, fields: Mapping[str, Any]) -> str:
    """Return the line of an event whose fields are in stored form, with its newline."""
    text = "".join(field(name, dumps(value)) for name, value in fields.items())
    return line(ts, writer_part(run, w), step, kind_part(kind), text)


def rewritten(ts: float | None, items: Iterable[tuple[str, str]]) -> str:
    """Return a line from the names and JSON texts of all its fields; ``ts`` is spelled as a recorder does."""
    texts = [f"{quote(name)}: {text}" for name, text in items]
    if ts is not None and texts:
        texts[0] = f'"ts": {ts:.6f}'
    return "{" + ", ".join(texts) + "}\n"


# Reading without parsing: bytes to look for, and patterns for whoever compiles them once.

LATEST, LAST_STEP = 1e11, 1 << 63
"""A time after the year 5138, and a step beyond that, stand in no line of a recorder."""
MAX_NESTING = 200
"""Deeper values are cut when they are read; a recorder cuts at MAX_DEPTH. Readers are recursive."""

START = b'{"ts": '
"""What a line of ours begins with; inside one it cannot stand."""
_SEAM = b"}\n" + START
TOTALS = b'"tot": {'
BOOKKEEPING = (b'"kind": "run.', b'"kind": "proc.')
"""One of these stands in every line that is not an event of the agent."""


def field_start(name: str) -> bytes:
    """Return the bytes before the value of a field."""
    return f', "{name}": '.encode()


def restarts() -> Pattern[bytes]:
    """Return a pattern for the places where a line of any dialect of ours can begin."""
    import re

    return re.compile(rb'\{"(?:ts|run_id)": ')


def heads(kind: bytes, run: str | None = None, w: str | None = None, *, call: bytes = b"") -> Pattern[bytes]:
    """Return a pattern for envelopes: groups as in the patterns for a kind and a call id.

    With a run and a writer the time and the step are groups, too, and come first.
    """
    import re

    text, number = rb'"[^"\\]*"', rb"\d+"
    if run is None or w is None:
        head = rb'\{"ts": [^"]{1,40}"run": %s, "w": %s, "step": %s' % (text, text, number)
    else:
        names = re.escape(quote(run).encode()), re.escape(quote(w).encode())
        head = rb'\{"ts": (\d+\.\d+), "run": %s, "w": %s, "step": (\d+)' % names
    return re.compile(rb'%s, "kind": "%s"%s' % (head, kind, rb', "call": "%s' % call if call else b""))


def fields_named(*names: str, value: bytes = b"") -> Pattern[bytes]:
    """Return a pattern for the beginnings of fields: their name is the first group."""
    import re

    return re.compile(rb', "(%s)": %s' % ("|".join(names).encode(), value))


def is_writer_id(w: str) -> bool:
    """True for a ``w`` as the recorder writes it: a few digits and letters, nothing a terminal acts upon."""
    return len(w) <= 32 and w.isalnum() and w.isascii()


def peek(data: bytes, begin: int = 0) -> tuple[float, str, str, int, str] | None:
    """Return the envelope of one of our own lines without parsing the rest; None if it is not ours."""
    global _envelope
    if _envelope is None:
        _envelope = _envelopes()
    found = _envelope.match(data, begin, begin + 4096)
    if found is None:
        return None  # escaped or odd: the caller parses the line whole
    ts, run, w, step, kind = found.groups()
    time, number = float(ts), int(step)
    if not (-LATEST < time < LATEST and number < LAST_STEP):
        return None
    return time, run.decode(), w.decode(), number, kind.decode()


_envelope: Pattern[bytes] | None = None


def _envelopes() -> Pattern[bytes]:
    """Return a pattern for the envelope as a recorder writes it, each field a group."""
    import re

    text = rb'"([ !#-\[\]-~]*)"'
    head = rb'\{"ts": (-?\d{1,20}(?:\.\d{1,20})?), "run": %s, "w": "([0-9A-Za-z]{1,32})", "step": (\d{1,20})'
    return re.compile(head % text + rb', "kind": ' + text)


def count_if_of(data: bytes, writer: bytes) -> int:
    """Return how many lines a part of a file holds, if all begin and end like lines of one writer; else -1.

    ``writer`` is its ``writer_part``, which comes after a time of always as many digits.
    """
    last, size, ahead = len(data) - 1, len(writer), 1 + len(START) + len("1700000000.000000")
    if not data.startswith(START) or not data.startswith(writer, ahead - 1) or not data.endswith(b"}\n"):
        return -1
    count, at = 1, data.find(b"\n")
    while at < last:  # slices: half the time of ``startswith``
        begin = at + ahead
        if data[begin : begin + size] != writer or data[at - 1 : at + 8] != _SEAM:
            return -1
        at = data.find(b"\n", begin)
        count += 1
    return count


def parse(line: bytes) -> dict[str, Any]:
    """Return the JSON object a line holds; ValueError if it holds none."""
    import json

    try:
        value = json.loads(line)
        cut_deep(value, line)
    except RecursionError:
        raise ValueError("nested too deeply to read") from None
    if type(value) is not dict:
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    return value


def cut_deep(value: Any, text: bytes | None = None) -> None:
    """Cut what is nested too deeply in a value, in place; the text it was parsed from may rule that out."""
    if text is not None:
        size = len(text)
        if size < 2 * MAX_NESTING:
            return
        # ``replace`` finds a byte several times as fast as ``count`` does
        if 2 * size - len(text.replace(b"[", b"")) - len(text.replace(b"{", b"")) <= MAX_NESTING:
            return
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(MAX_NESTING - 1):
        level = [
            item
            for outer in level
            for item in (outer.values() if type(outer) is dict else outer)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return
    for outer in level:
        for key, item in list(outer.items() if type(outer) is dict else enumerate(outer)):
            if type(item) is dict or type(item) is list:
                outer[key] = {"$cut": "depth"}


def escape_key(key: str) -> str:
    """Double a leading ``$``, which is ours."""
    return "$" + key if key.startswith("$") else key


def unescape_key(key: str) -> str:
    """Take off what escape_key() put on."""
    return key[1:] if key.startswith("$$") else key


def is_mark(key: str) -> bool:
    """True for a key that is ours and not the agent's."""
    return key[:1] == "$" and key[:2] != "$$"


def new_id(nbytes: int) -> str:
    """Return that many random bytes as hex digits."""
    return os.urandom(nbytes).hex()
