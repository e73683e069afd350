"""The prefilter of redaction: does this encoded text hold anything the rules might replace?

Called by the redactor for every event. A superset of the rules: False is certain.
A few passes over the bytes decide for ordinary text; no ``re``. They use ``rfind``: ``in`` first tries its
operand as a number, which costs more than the search of a short text.
"""

from __future__ import annotations

import sys
from _thread import get_ident

from ..import_lock import import_lock
from ..runs import exit_and_fork
from .environment import RUN
from .names import CONTEXT, NAME, SPACED_KEYS, secret_name, spaced_key
from .table import (
    BEFORE_RUN,
    FOLLOWS,
    HEADS,
    KEY_BLOCKS,
    KEY_WORDS,
    MASK,
    NETRC,
    RUN_START,
    SCHEMES,
    WORDS,
    phrases,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .environment import EnvSecrets

_ONLY_WORDS = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_WORDS = frozenset(WORDS)
_ANNOUNCED = tuple(f"{scheme} ".encode() for scheme in SCHEMES)
_KEY_WORDS = tuple((stem.encode(), tuple(end.encode() for end in ends if end)) for stem, ends in KEY_WORDS)
_KEY_BLOCKS = tuple(block.encode()[len("PRIVATE KEY") :] for block in KEY_BLOCKS)
_HEADERS = (b"authorization", b"cookie")
_QUOTES = b"\\\"'`"
_BREAKS = (b"\\n", b"\\r", b"\\t", b'\\"', b"'", b"`")
_SPACES = (b" ", b"\\n", b"\\t", b"\\r", b"\\u", b"\\f")
"""White space, as it stands in JSON."""
_PERCENT = frozenset((b"3D", b"3d", b"3A", b"3a", b"22", b"27"))
_BACKSLASH, _SPACE, _SLASH, _COLON, _QUOTE = b'\\ /:"'


def scan(data: bytes, env: EnvSecrets | None) -> bool:
    """True if these bytes may hold something to redact: compact ASCII JSON, or ASCII text between quotes
    that has no tab in it."""
    look = _looks.get(env)
    if look is None and _may_load and (len(data) > LARGE or "re2" in sys.modules):
        look = _load(env)
    if look is not None and get_ident() == _main_thread and look(data) is None:
        return False
    mask = data.translate(MASK)
    run = mask.rfind(RUN_START)
    if run >= 0 and _runs(data, mask, run, env):
        return True
    low = data.lower()
    for stem, ends in _KEY_WORDS:
        at = low.rfind(stem)
        if at >= 0 and _names(data, low, mask, stem, ends, at):
            return True
    at = data.rfind(b"@")
    if at >= 0 and _user_info(data, at):
        return True
    if phrases(low, run >= 0):
        return True
    if data.rfind(b"$") >= 0 and data.rfind(b'{"$bytes":') >= 0:  # the redactor decodes them
        return True
    if env is not None:
        for spelling in env.anywhere:
            if data.rfind(spelling) >= 0:
                return True
    return False


LARGE = 4_096
"""Bytes from which RE2, if it is installed and the agent has not loaded it, pays for its import."""
_looks: dict[EnvSecrets | None, Callable[[bytes], object]] = {}
_may_load = True
_main_thread = 0
"""The thread that may search with RE2. RE2 gives up the GIL: a daemon thread that waits for it at the exit of
the interpreter is unwound through C++, and the whole process aborts (Python before 3.14)."""


def _load(env: EnvSecrets | None) -> Callable[[bytes], object] | None:
    """Return the first look with RE2, which the passes confirm; None without it."""
    global _may_load, _main_thread
    with import_lock:
        import threading

        from .re2_prefilter import first_look

        look = first_look(env)
        _main_thread = threading.main_thread().ident or 0
    _may_load = look is not None
    if look is not None:
        exit_and_fork.forget_searches = after_fork_in_child
        if len(_looks) >= 8:
            _looks.clear()
        _looks[env] = look
    return look


def after_fork_in_child() -> None:
    """Do without RE2 from now on: another thread of the parent may have been in a search, with its lock."""
    global _may_load
    if _looks:
        _looks.clear()
        _may_load = False


def _runs(data: bytes, mask: bytes, at: int, env: EnvSecrets | None) -> bool:
    """True if a long run of token characters has a known shape, place or value."""
    runs = []
    while at >= 0:
        # With the bytes before it. There is an end: JSON text does not end in a token character.
        runs.append(data[at - BEFORE_RUN if at > BEFORE_RUN else 0 : mask.find(b" ", at + RUN)])
        at = mask.rfind(RUN_START, 0, at)
    joined = b" ".join(runs)
    low = joined.lower()
    for scheme in _ANNOUNCED:
        if low.rfind(scheme) >= 0:
            return True
    for head in HEADS:
        if joined.rfind(head) >= 0:
            return True
    words = joined.translate(_ONLY_WORDS).split()
    if joined.rfind(b"\\") >= 0:
        # What follows a backslash is an escape, "\\n" or "\\u00e9", and only then the token.
        escaped = joined.split(b"\\")[1:]
        rest = [part[1:] for part in escaped] + [part[5:] for part in escaped if part[:1] == b"u"]
        words += b" ".join(rest).translate(_ONLY_WORDS).split()
    if not _WORDS.isdisjoint(words):
        for word in _WORDS.intersection(words):
            for start in WORDS[word]:
                if start in joined:
                    return True
    return env is not None and env.in_joined(joined)


def _names(data: bytes, low: bytes, mask: bytes, stem: bytes, ends: tuple[bytes, ...], at: int) -> bool:
    """True if a key word ends a secret name, here or before."""
    size, last = len(stem), len(data)
    while at >= 0:
        end = at + size
        if ends and low.startswith(ends, end):
            end += next(len(rest) for rest in ends if low.startswith(rest, end))
        if end < last and data[end] in FOLLOWS:
            if (
                _is_header(data, low, end)
                or _names_secret(data, mask, end)
                or _is_login(low, end)
                or data.startswith(_KEY_BLOCKS, end)
            ):
                return True
        at = low.rfind(stem, 0, at)
    return False


def _is_header(data: bytes, low: bytes, end: int) -> bool:
    """True for ``authorization:`` and ``cookie:``, whatever they are glued to."""
    if not low.endswith(_HEADERS, 0, end):
        return False
    return data[end : end + 9].replace(b"\\t", b" ").lstrip(b" ")[:1] == b":"


def _is_login(low: bytes, end: int) -> bool:
    """True for ``sshpass``, and for ``password`` in a line of a netrc."""
    if low.endswith(b"sshpass", 0, end):
        return True
    if not low.endswith(b"password", 0, end) or not low.startswith(_SPACES, end):
        return False
    before = low[max(0, end - 6 * NETRC) : end]
    for broken in _BREAKS:
        before = before.replace(broken, b" ")
    # "machine HOST login USER password", where a lone backslash is no word
    words = [word for word in before.split() if word.strip(b"\\")][-5:]
    return any(b"machine" in word or b"default" in word for word in words)


def _names_secret(data: bytes, mask: bytes, end: int) -> bool:
    """True if the name that ends here promises a secret and something is assigned to it."""
    floor = max(0, end - NAME)
    start = max(floor, mask.rfind(b" ", floor, end) + 1)
    name = after_escape = data[start:end].decode("ascii")
    if start and data[start - 1] == _BACKSLASH:  # a line feed, a letter beyond ASCII
        after_escape = name[5 if name[0] == "u" else 1 :]
    kind = secret_name(name)
    if kind is None and after_escape is not name:
        name = after_escape
        kind = secret_name(name)
    if kind is None:
        if _is_query_key(after_escape, data, start):
            return data[end : end + 1] == b"="
        before = data[max(0, start - CONTEXT - 1) : start].decode("ascii")
        if len(name) != 3 or not (spaced_key(before) or before.lower().endswith(SPACED_KEYS)):
            return False
    return _is_assigned(data, end, name[:1] == "-" or after_escape[:1] == "-")


def _is_assigned(data: bytes, end: int, is_flag: bool) -> bool:
    """True if what follows a name assigns something to it: an operator, or the next value in JSON."""
    rest = data[end : end + 40].replace(b"\\t", b" ").lstrip(_QUOTES).lstrip(b" ")
    first = rest[:1]
    if first in (b":", b"="):
        return not rest.lstrip(b":=> ").startswith(
            (b"\\n", b"\\r")
        )  # what is assigned stands in the same line
    if first in (b",", b"}"):  # of a list of arguments, a pair, an object with "name" and "value"
        return is_flag or data[end] == _QUOTE
    if first == b"%":
        return rest[1:3] in _PERCENT
    if first in (b">", b""):
        return True
    return data.startswith(b"\\u", end) or (is_flag and data[end] == _SPACE)


def _is_query_key(name: str, data: bytes, start: int) -> bool:
    """True for ``key`` in the query of a URL."""
    return name.lower() == "key" and data[start - 1 : start] in (b"?", b"&", b"\\")


def _user_info(data: bytes, at: int) -> bool:
    """True if an ``@`` ends the user part of a URL."""
    while at >= 0:
        slash = data.rfind(b"/", max(0, at - 700), at)
        if slash > 1 and at - slash > 1 and data.find(b" ", slash, at) < 0:
            before = data[slash - 1]
            if before == _BACKSLASH or (before == _SLASH and data[slash - 2] == _COLON):
                return True
        at = data.rfind(b"@", 0, at)
    return False
