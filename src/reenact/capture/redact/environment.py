"""Secret values of the environment, in every spelling in which they may turn up in an event.

Made once per distinct environment by the redactor; guarantees that short, wordy or path-like values,
which would black out ordinary text, are left alone.
"""

from __future__ import annotations

from ...lines import quote
from ..import_lock import import_lock
from .names import secret_variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MIN_LENGTH = 12
RUN = 20
"""A prefilter run: this many token characters in a row."""

TOKEN_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
_TO_RUNS = bytes(byte if byte in TOKEN_BYTES else 32 for byte in range(256))
_UNRESERVED = TOKEN_BYTES + b".~"


class EnvSecrets:
    """The spellings of all secret values, and what the prefilter looks for to find any of them."""

    def __init__(self, values: tuple[str, ...]) -> None:
        spellings: dict[str, str] = {}
        for value in values:
            for spelling in _spellings(value):
                spellings.setdefault(spelling, value)
        # Longest first: a value may be the beginning of another one.
        self.spellings = sorted(spellings.items(), key=lambda pair: -len(pair[0]))
        in_runs: set[bytes] = set()
        anywhere: set[bytes] = set()
        for spelling in spellings:
            anchor = max(
                spelling.encode("utf-8", "surrogatepass").translate(_TO_RUNS).split() or [b""], key=len
            )
            if len(anchor) >= RUN:
                in_runs.add(anchor)
                continue
            once = quote(spelling)[1:-1]
            plain = spelling.encode("utf-8", "surrogatepass")
            anywhere.update((plain, once.encode(), quote(once)[1:-1].encode()))
        self.in_runs = tuple(in_runs)
        self.anywhere = tuple(anywhere)
        # Any occurrence of an anchor covers one aligned block of 8 bytes: the set of all such blocks finds
        # many anchors in a big text at once.
        self.blocks = frozenset(
            memoryview(anchor[start : start + 8]).cast("Q")[0]
            for anchor in in_runs
            for start in range(len(anchor) - 7)
        )

    def in_joined(self, joined: bytes) -> bool:
        """True if any anchor is in these runs."""
        if len(joined) > 8192:
            view = memoryview(joined)[: len(joined) & ~7].cast("Q")
            if self.blocks.isdisjoint(view):
                return False
        for anchor in self.in_runs:
            if anchor in joined:
                return True
        return False


_last: tuple[dict[Any, Any], EnvSecrets | None] | None = None
"""A copy of the environment that was looked at last, and its secrets."""


def secrets_of(environ: Mapping[str, str]) -> EnvSecrets | None:
    """Return the secrets of this environment, None if it has none. Equal environments share one table."""
    global _last
    # A server begins many runs in one environment. What os.environ holds inside is compared at once in C;
    # used itself, it would decode each variable again.
    held = dict(getattr(environ, "_data", environ))
    last = _last  # another thread may look at another environment meanwhile
    if last is None or last[0] != held:
        last = _last = held, _found(environ)
    return last[1]


def _found(environ: Mapping[str, str]) -> EnvSecrets | None:
    found = []
    for name in environ:
        value = environ.get(name, "")  # another thread may take it out meanwhile
        if len(value) < MIN_LENGTH:
            continue
        if "://" in value:
            value = _password_of_url(value)
            if len(value) < MIN_LENGTH or not looks_secret(value):
                continue
        elif not secret_variable(name) or not looks_secret(value):
            continue
        found.append(value)
    return EnvSecrets(tuple(found)) if found else None


def looks_secret(value: str) -> bool:
    """True for 12 and more characters of mixed classes that are neither a path nor made of words."""
    if not MIN_LENGTH <= len(value) <= 8192 or value.isspace():
        return False
    classes = (
        any(c.islower() for c in value)
        + any(c.isupper() for c in value)
        + any(c.isdigit() for c in value)
        + any(not c.isalnum() for c in value)
    )
    return classes >= 2 and len(set(value)) >= 6 and not is_path(value) and not wordy(value)


def is_path(value: str) -> bool:
    """True for a path, not base64 that begins like one."""
    if value[1:3] == ":\\":
        return True
    base64 = len(value) >= 32 and len(value) % 4 == 0 and not any(c in value for c in ".-_ ")
    return value[0] in "/~.\\" and not base64


def wordy(value: str) -> bool:
    """True if the text is words, file names, small numbers with punctuation between them.

    >>> wordy("/usr/lib/python3.11"), wordy("my-secret-name"), wordy("hunter2"), wordy("x9Kq27LmZ")
    (True, True, False, False)
    """
    words = "".join(c if c.isalnum() else " " for c in value[:80]).split()
    if sum(len(word) <= 2 for word in words) * 2 > len(words):
        return False
    for word in words:
        stem = word[:-2] + word[-2:].rstrip("0123456789") if "/" in value or "." in value else word
        if stem.isdigit() or not stem:
            if len(word) > 4:
                return False
        elif not (stem.isalpha() and len(stem) < 24 and (stem.islower() or stem.isupper() or _camel(stem))):
            return False
    return True


def _camel(word: str) -> bool:
    """True for ``Title`` and ``camelCase`` of readable parts: few capitals."""
    capitals = sum(c.isupper() for c in word)
    return capitals * 3 <= len(word) + 1


def _password_of_url(value: str) -> str:
    authority = value.partition("://")[2].partition("/")[0]
    user_info, at, _ = authority.rpartition("@")
    return user_info.partition(":")[2] if at else ""


def _spellings(value: str) -> set[str]:
    with import_lock:
        from binascii import b2a_base64

    data = value.encode("utf-8", "surrogatepass")
    escaped = quote(value)[1:-1]
    out = {value, escaped, quote(escaped)[1:-1]}
    for safe in (_UNRESERVED, _UNRESERVED + b"/", _UNRESERVED + b"+/=:@,;!$'()*"):
        upper = "".join(chr(byte) if byte in safe else f"%{byte:02X}" for byte in data)
        out.update((upper, "".join(chr(byte) if byte in safe else f"%{byte:02x}" for byte in data)))
        out.add(upper.replace("%20", "+"))
    for shift in range(3):  # base64 of any text around the value
        coded = b2a_base64(b"\0" * shift + data, newline=False).decode("ascii").rstrip("=")
        whole_end = len(coded) if (shift + len(data)) % 3 == 0 else len(coded) - 1
        core = coded[(0, 2, 3)[shift] : whole_end]
        out.update((core, core.replace("+", "-").replace("/", "_")))
    return out
