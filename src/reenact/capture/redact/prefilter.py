"""The prefilter of redaction: does this encoded text hold anything the rules might replace?

Called by the redactor for every event. A superset of the rules: False is certain.
A few passes over the bytes decide for ordinary text; no ``re``.
"""

from __future__ import annotations

from .environment import RUN, TOKEN_BYTES
from .names import CONTEXT, NAME, SPACED_KEYS, secret_name, spaced_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .environment import EnvSecrets

# Token characters become "a", the rest " ", so that a long token is a run of "a". The search goes backwards
# because CPython's rfind() pivots on the first byte of the needle and then skips its whole length.
_MASK = bytes(97 if byte in TOKEN_BYTES else 32 for byte in range(256))
_RUN_START = b" " + b"a" * RUN
_ONLY_WORDS = bytes(byte if chr(byte).isalnum() and byte < 128 else 32 for byte in range(256))
_SHAPE_WORDS = frozenset(
    b"sk rk ghp gho ghs ghu ghr pat glpat gldt glrt glcbt glptt glft glsoat hf npm pypi gsk xai xapp xoxa "
    b"xoxb xoxc xoxd xoxe xoxo xoxp xoxr xoxs whsec pplx r8 dop shpat shpss tvly lsv2 nvapi figd ntn SG ya29 "
    b"hvs".split()
)
"""Words before the first separator of a token with a known shape."""
_SCHEMES = (b"bearer ", b"basic ")
"""What announces any token, in any case, whatever it is glued to."""
_SHAPE_HEADS = (b"AKIA", b"ASIA", b"AIza", b"eyJ")
_BEFORE_RUN = 12  # bytes that may announce it: "Bearer", an escape and then "ya29."

_KEY_WORDS = (
    (b"key", (b"",)), (b"token", (b"",)), (b"cookie", (b"",)), (b"secret", (b"",)),
    (b"pass", (b"word", b"wd", b"phrase")), (b"z", (b"ation",)),
)  # fmt: skip
"""What is looked for in lower-cased text, and how it goes on; "z" is rare, and in authorization."""
_HEADERS = (b"authorization", b"cookie")
_MAY_FOLLOW = frozenset(b"\"'`\\=: %>-")
_CERTAIN = frozenset(b"\"'`=:>")
_AFTER_BACKSLASH = frozenset(b"\"'\\tu`: =%")
_PERCENT = frozenset((b"3D", b"3d", b"3A", b"3a", b"22", b"27"))
_BACKSLASH, _SPACE, _SLASH, _COLON = b"\\ /:"


def scan(data: bytes, env: EnvSecrets | None) -> bool:
    """True if these bytes may hold something to redact: compact ASCII JSON, or ASCII text between quotes
    that has no tab in it."""
    mask = data.translate(_MASK)
    at = mask.rfind(_RUN_START)
    if at >= 0 and _runs(data, mask, at, env):
        return True
    low = data.lower()
    for stem, ends in _KEY_WORDS:
        at = low.rfind(stem)
        if at >= 0 and _names(data, low, mask, stem, ends, at):
            return True
    at = data.rfind(b"@")
    if at >= 0 and _user_info(data, at):
        return True
    if data.rfind(b" -u ") >= 0:  # curl -u user:password
        return True
    if b"&" in data and (b"sig=" in low or b"ignature=" in low):
        return True
    if b"$" in data and b'{"$bytes":' in data:  # not readable in here: the redactor decodes them
        return True
    if env is not None:
        for spelling in env.anywhere:
            if spelling in data:
                return True
    return False


def _runs(data: bytes, mask: bytes, at: int, env: EnvSecrets | None) -> bool:
    """True if a long run of token characters has a known shape, place or value."""
    runs = []
    while at >= 0:
        # With the bytes before it. There is an end: JSON text does not end in a token character.
        runs.append(data[at - _BEFORE_RUN if at > _BEFORE_RUN else 0 : mask.find(b" ", at + RUN)])
        at = mask.rfind(_RUN_START, 0, at)
    joined = b" ".join(runs)
    low = joined.lower()
    if any(scheme in low for scheme in _SCHEMES):
        return True
    if not _SHAPE_WORDS.isdisjoint(joined.translate(_ONLY_WORDS).split()):
        return True
    for head in _SHAPE_HEADS:
        if head in joined:
            return True
    if b"\\" in joined:
        # What follows a backslash is an escape, "\\n" or "\\u00e9", and only then the token.
        escaped = joined.split(b"\\")[1:]
        rest = b" ".join([*(part[1:] for part in escaped), *(part[5:] for part in escaped)])
        if not _SHAPE_WORDS.isdisjoint(rest.translate(_ONLY_WORDS).split()):
            return True
    return env is not None and env.in_joined(joined)


def _names(data: bytes, low: bytes, mask: bytes, stem: bytes, ends: tuple[bytes, ...], at: int) -> bool:
    """True if a key word ends a secret name, here or before."""
    while at >= 0:
        for rest in ends:
            end = at + len(stem) + len(rest)
            if low.startswith(rest, at + len(stem)) and end < len(data):
                if data[end] in _MAY_FOLLOW and (
                    _is_header(data, low, end) or _names_secret(data, mask, end)
                ):
                    return True
        at = low.rfind(stem, 0, at)
    return False


def _is_header(data: bytes, low: bytes, end: int) -> bool:
    """True for ``authorization:`` and ``cookie:``, whatever they are glued to."""
    if not low.endswith(_HEADERS, 0, end):
        return False
    return data[end : end + 9].replace(b"\\t", b" ").lstrip(b" ")[:1] == b":"


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
        before = data[max(0, start - CONTEXT - 1) : start].decode("ascii")
        if len(name) != 3 or not (spaced_key(before) or before.lower().endswith(SPACED_KEYS)):
            return False
        if data.startswith((b"-----", b" BLOCK-----"), end):  # PRIVATE KEY, as PEM and as PGP have it
            return True
    follows = data[end]
    if follows in _CERTAIN:
        return True
    if follows == _BACKSLASH:
        return data[end + 1] in _AFTER_BACKSLASH
    if follows == _SPACE:
        rest = data[end : end + 6].lstrip(b" ")
        is_flag = name[:1] == "-" or after_escape[:1] == "-"
        return is_flag or rest[:1] in (b"=", b":", b"%", b"") or rest[:2] == b"\\t"
    return data[end + 1 : end + 3] in _PERCENT


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
