"""What announces a secret: the one table from which the prefilter and the rules are made.

A new token, key word or phrase is a row in here, and both know it. No ``re``: this is on the hot path.
"""

from __future__ import annotations

from .environment import RUN, TOKEN_BYTES

# Tokens that are known by how they begin: kind, beginnings, letters that follow, how many at least, the end.
# Whatever matches has RUN token characters in a row, by which the prefilter finds it.

_ANY = "[A-Za-z0-9_-]"
_ALNUM = "[A-Za-z0-9]"
_HEX = "[a-f0-9]"
_CAPS = "[A-Z0-9]"
_ALONE = f"(?!{_ANY})"

TOKENS = (
    ("anthropic-key", "sk-ant-", _ANY, "{13,}+", ""),
    ("openrouter-key", "sk-or-", _ANY, "{14,}+", ""),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", _ANY, "{12,}+", ""),
    ("secret-key", "sk-", _ANY, "{17,}+", ""),
    ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", _ANY, "{12,}+", ""),
    ("stripe-key", "whsec_", _ANY, "{14,}+", ""),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", _ANY, "{16,}+", ""),
    ("github-token", "github_pat_", _ANY, "{12,}+", ""),
    ("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat-", _ANY, "{15,}+", ""),
    ("slack-token", "xoxa- xoxb- xoxc- xoxd- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", _ANY, "{15,}+", ""),
    ("huggingface-token", "hf_", _ALNUM, "{17,}+", ""),
    ("npm-token", "npm_", _ALNUM, "{30,}+", ""),
    ("pypi-token", "pypi-", _ANY, "{30,}+", ""),
    ("groq-key", "gsk_", _ALNUM, "{16,}+", ""),
    ("xai-key", "xai-", _ALNUM, "{16,}+", ""),
    ("google-secret", "GOCSPX-", _ANY, "{20,}+", ""),
    ("age-key", "AGE-SECRET-KEY-", _CAPS, "{40,}+", ""),
    ("docker-token", "dckr_pat_ dckr_oat_", _ANY, "{20,}+", ""),
    ("vendor-key", "sk_ sbp_ pul-", _HEX, "{40,}+", ""),
    ("vendor-key", "lin_api_ secret_", _ALNUM, "{32,}+", ""),
    ("vendor-key", "fw_ csk- NRAK-", _ALNUM, "{20,}+", ""),
    ("vendor-key", "glsa_ pscale_tkn_ pscale_pw_ pscale_oauth_ PMAK-", _ANY, "{24,}+", ""),
    ("vendor-key", "pplx- tvly- nvapi- lsv2_ shpat_ shpss_ figd_ ntn_ dop_v1_ r8_", _ANY, "{20,}+", ""),
    ("sendgrid-key", "SG.", _ANY, "{20,}+", rf"\.{_ANY}{{16,}}+"),
    ("google-token", "ya29.", _ANY, "{20,}+", ""),
    ("google-token", "1//0", _ANY, "{30,}+", ""),
    ("google-key", "AQ.", _ANY, "{30,}+", ""),
    ("vault-token", "hvs.", _ANY, "{20,}+", ""),
    ("doppler-token", "dp.st. dp.st.dev. dp.st.stg. dp.st.prd. dp.pt. dp.ct. dp.sa.", _ALNUM, "{32,}+", ""),
)
"""At the beginning of a run of token characters or after a ``_`` or ``-`` in it; up to its last dot or slash,
a beginning stands before the run."""

FIRST_TOKENS = (
    ("aws-key-id", "AKIA ASIA", _CAPS, "{16}", _ALONE),
    ("google-key", "AIza", _ANY, "{30,}+", ""),
    ("jwt", "eyJ", _ANY, "{17,}+", rf"\.{_ANY}{{8,}}+\.{_ANY}*+"),
    ("databricks-token", "dapi", _HEX, "{32}", rf"(?:-\d)?{_ALONE}"),
    ("atlassian-token", "ATATT3", _ANY, "{30,}+", ""),
    ("telegram-token", ":AA", _ANY, "{32,}+", ""),
    ("vendor-key", "key-", _HEX, "{32}", _ALONE),
    ("vendor-key", "pa-", _ANY, "{40,}+", ""),
)
"""Beginnings that an id may well contain: only at the very beginning of a run. A colon stands before it,
after a digit."""

_STARTS = tuple(start for row in (*TOKENS, *FIRST_TOKENS) for start in row[1].split())


def _before_run(start: str) -> str:
    """Return the part of a token's beginning that stands before its run of token characters."""
    return start.rstrip(TOKEN_BYTES.decode())


def _first_word(start: str) -> str:
    """Return the word that a beginning begins with, "" if it does not end in there or says too little."""
    words = "".join(letter if letter.isalnum() else " " for letter in start).split(" ")
    return words[0] if len(words) > 1 and len(words[0]) > 1 else ""


STEMS = tuple(sorted({_before_run(start) for start in _STARTS} - {"", ":"}, key=len, reverse=True))
"""What stands before the run of a token."""
BEFORE_RUN = len(STEMS[0]) + len("\\u00e9")
"""So many characters before a run may announce it: a scheme, or an escape and a stem."""
WORDS: dict[bytes, tuple[bytes, ...]] = {}
"""First words of tokens, which stand alone in a run or before it, and the beginnings that begin with them."""
for _start in _STARTS:
    if _word := _first_word(_start).encode():
        WORDS[_word] = (*WORDS.get(_word, ()), _start.encode())
HEADS = tuple(start.encode() for start in _STARTS if not _first_word(start))
"""Beginnings of tokens without such a word."""
SCHEMES = ("bearer", "basic")
"""What announces any token, with a space after it, in any case, whatever it is glued to."""

# Names: the key words that may end the name of a secret, in lower case, with the ways in which they go on.

KEY_WORDS = (
    ("key", ("",)),
    ("token", ("",)),
    ("cookie", ("",)),
    ("secret", ("",)),
    ("pass", ("word", "wd", "phrase", "")),
    ("pwd", ("",)),
    ("auth", ("orization", "")),
)
FOLLOWS = frozenset(b"\"'`\\=: %>-\t\n\r\v\f")
"""What may follow a name to which something is assigned; "-" ends the first line of a private key."""
KEY_BLOCKS = ("PRIVATE KEY-----", "PRIVATE KEY BLOCK-----")
"""How that line ends, with ``key`` among the key words, as PEM and as PGP have it."""
NETRC = 200
"""Characters before ``password`` that may show that it is a line of a netrc."""

# Phrases: patterns looked for in a whole text where one of these words is in it, in lower case.

SIGNATURES = (b"sig=", b"signature=")
OAUTH_CODE = b"code="
WEBHOOKS = (b"hooks.slack.com", b"webhooks", b"webhookb2")
HASHES = frozenset(b"1 5 6 7 y gy apr1 2a 2b 2x 2y argon2i argon2d argon2id scrypt".split())
"""How the hash of a password names its function, between dollar signs."""
USER_FLAGS = ("-u", "--user")
"""Of curl, before user and password."""
_AT_USER_FLAG = (b"-u ", b'-u"', b"-user ", b'-user"')


def phrases(low: bytes, has_run: bool) -> list[str]:
    """Return the kinds of phrases that may be in these bytes, which are in lower case.

    ``has_run`` is True if they hold a run of token characters, without which there is no webhook.
    """
    found = []
    if low.rfind(b"&") >= 0:
        if any(low.rfind(word) >= 0 for word in SIGNATURES):
            found.append("signature")
        if low.rfind(OAUTH_CODE) >= 0:
            found.append("oauth-code")
    if has_run and low.rfind(b"hook") >= 0 and any(word in low for word in WEBHOOKS):
        found.append("webhook")
    at = low.rfind(b"-u")
    while at >= 0:
        if low.startswith(_AT_USER_FLAG, at) and low[at - 1 : at] in (b" ", b'"', b"-"):
            found.append("curl-user")
            break
        at = low.rfind(b"-u", 0, at)
    # Only short parts are looked up: the hash of a long one takes longer than all else here.
    if low.rfind(b"$") >= 0 and not HASHES.isdisjoint([part for part in low.split(b"$") if len(part) < 10]):
        found.append("password-hash")
    return found


# Runs of token characters. Those become "a", the rest " ", so that a long token is a run of "a". The search
# goes backwards because CPython's rfind() pivots on the first byte of the needle and then skips its length.

MASK = bytes(97 if byte in TOKEN_BYTES else 32 for byte in range(256))
RUN_START = b" " + b"a" * RUN
