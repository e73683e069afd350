"""Which names promise a secret: JSON keys, header, query, flag and environment names.

Used by the redactor's prefilter and its rules, so that both always agree. No ``re``: this is on the hot path.
"""

from __future__ import annotations

NAME = 64
"""A name is looked at from at most this many characters before its end."""
CONTEXT = 16
"""So far before a bare ``key`` we look for the word that makes it secret."""

# The last word of a name decides ("access_token", "tokenCount" is about a count). A page token or a token
# of text is not a secret.
_PLAIN_TOKENS = frozenset(
    "page next prev previous continuation continue cursor sync max min num per special pad eos bos unk sep "
    "cls mask stop start end first last image text input output prompt completion thinking reasoning cached "
    "total cancel cancellation current each lookahead this any every unexpected resume".split()
)
SECRET_KEYS = frozenset(
    "api private access secret account signing encryption auth master shared service subscription functions "
    "deploy ssh client app application admin root storage webhook consumer session hmac jwt license".split()
)
SPACED_KEYS = ("api ", "secret ", "access ", "private ", "account ")
"""What makes a bare ``key`` a secret one in a text, whatever stands right before it."""
_GLUED_KEYS = ("apikey", "secretkey", "privatekey", "accesskey", "authkey", "accountkey")
_PLAIN_PASSES = frozenset(
    "to by all one two each first second third last next final single multi low high band max min num test "
    "tests must should will render compiler optimization".split()
)
"""What makes a ``pass`` one over data, or a test that passes."""
_PLAIN_OWNERS = frozenset(
    "has is no use needs require requires forgot reset show hide public missing".split()
)

_verdicts: dict[str, str | None] = {}


def split_words(name: str) -> list[str]:
    """Return the lower-case words of a snake, kebab, dotted or camel case name."""
    out, lower_before = [], False
    for letter in name:
        if letter.isupper() and lower_before:
            out.append(" ")
        out.append(letter.lower() if letter.isalnum() and letter.isascii() else " ")
        lower_before = letter.islower() or letter.isdigit()
    return "".join(out).split()


def last_identifier(text: str) -> str:
    """Return the letters, digits, ``_`` and ``-`` at the end of a text, at most NAME of them."""
    start = len(text)
    floor = max(0, start - NAME)
    while (
        start > floor and text[start - 1].isascii() and (text[start - 1].isalnum() or text[start - 1] in "_-")
    ):
        start -= 1
    return text[start:]


def spaced_key(before: str) -> bool:
    """True if these words before a bare ``key`` make it a secret one: "API key"."""
    words = split_words(before)
    return bool(words) and words[-1] in SECRET_KEYS


def secret_name(name: str) -> str | None:
    """Return the kind of secret that stands under this name, None if it promises none.

    >>> secret_name("X-Api-Key"), secret_name("max_tokens"), secret_name("dbPassword")
    ('api-key', None, 'password')
    """
    try:
        return _verdicts[name]
    except KeyError:
        pass
    kind = _judge(name)
    if len(_verdicts) >= 4096:
        _verdicts.clear()
    _verdicts[name] = kind
    return kind


def _judge(name: str) -> str | None:
    name = name.rstrip(":=")
    tail = last_identifier(name)
    words = split_words(tail)
    if not words or not tail[-1].isalnum() or words[0] in _PLAIN_OWNERS:
        return None
    last = words[-1]
    before = words[-2] if len(words) > 1 else ""
    if last.endswith(("password", "passwd", "passphrase")):
        return "password"
    if last.endswith("secret"):
        return "secret"
    if last.endswith("token"):
        return None if before in _PLAIN_TOKENS or last[:-5] in _PLAIN_TOKENS else "token"
    if last in ("cookie", "setcookie"):
        return "cookie"
    if last == "authorization":
        return "authorization"
    if last in ("pass", "pwd", "auth"):
        if before in _PLAIN_PASSES:
            return None
        return "password" if last == "pass" and before and tail.isupper() else "credential"
    if last.endswith(_GLUED_KEYS):
        return "api-key" if last.endswith("apikey") else "secret-key"
    if last == "key" and (before in SECRET_KEYS or (not before and spaced_key(name[:-3][-CONTEXT:]))):
        return "api-key" if "api" in name.lower() else "secret-key"
    return None


_ENV_WORDS = frozenset(
    "key apikey token secret secrets password passwd pass pwd passphrase credential credentials auth cookie "
    "pat dsn jwt bearer".split()
)
_env_verdicts: dict[str, bool] = {"PWD": False, "OLDPWD": False, "GPG_KEY": False}


def secret_variable(name: str) -> bool:
    """True if an environment variable of this name is likely to hold a secret."""
    verdict = _env_verdicts.get(name)
    if verdict is None:
        words = split_words(name)
        verdict = not _ENV_WORDS.isdisjoint(words) or any(
            word.endswith(("token", "secret", "password", "apikey")) for word in words
        )
        if len(_env_verdicts) < 4096:
            _env_verdicts[name] = verdict
    return verdict
