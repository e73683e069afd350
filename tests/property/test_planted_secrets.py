"""Whatever surrounds a secret, it is not in the bytes; and the prefilter never knows less than the rules."""

from __future__ import annotations

import base64
import json
import random
import string
import urllib.parse
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.capture.redact import table
from reenact.capture.redact.environment import EnvSecrets, secrets_of
from reenact.capture.redact.prefilter import scan
from reenact.capture.redact.re2_prefilter import first_look
from reenact.capture.redact.redactor import Redactor
from reenact.capture.redact.rules import clean_text
from reenact.lines import dumps, quote
from support.examples import LONG, long, up_to
from support.tokens import ROWS, tokens_of

ALNUM = string.ascii_letters + string.digits
ENV_VALUE = "q7W" + "-plum/Tree+55x"
ENVIRON = {"SERVICE_TOKEN": ENV_VALUE, "DB_PASSWORD": "Kd83" + "nfQ02lPx77Zr41mW9aT6"}


def body(least: int, most: int) -> st.SearchStrategy[str]:
    """Random token characters with a digit and both cases, as issued keys have them."""
    return st.text(ALNUM, min_size=least, max_size=most).map(lambda text: "aB3" + text)


# Prefixes are put together at run time, so that no scanner takes the tests for a leak.
SHAPED = st.one_of(
    body(30, 60).map(lambda b: "sk-" + "ant-" + "api03-" + b),
    body(30, 60).map(lambda b: "sk-" + "proj-" + b),
    body(20, 60).map(lambda b: "sk-" + b),
    body(33, 33).map(lambda b: "ghp" + "_" + b),
    body(30, 60).map(lambda b: "github" + "_pat_" + b),
    body(20, 40).map(lambda b: "glpat" + "-" + b),
    body(30, 40).map(lambda b: "xoxb" + "-12345-" + b),
    body(31, 31).map(lambda b: "AI" + "za" + b),
    st.text(string.ascii_uppercase + string.digits, min_size=16, max_size=16).map(lambda b: "AK" + "IA" + b),
    body(20, 40).map(lambda b: "eyJ" + b + ".eyJ" + b + "." + b),
)
NAMED = st.text(ALNUM + "!#^*+._~-", min_size=8, max_size=30).map(lambda text: "x7K" + text + "9")

KEYS = st.sampled_from(
    [
        "password",
        "passphrase",
        "api_key",
        "apiKey",
        "x-api-key",
        "client_secret",
        "access_token",
        "authorization",
        "DB_PASSWD",
    ]
)
PROSE = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=40).map(lambda t: t + " ")

PLACES = {
    "value": lambda key, secret: {key: secret},
    "list under the key": lambda key, secret: {key: [secret]},
    "pair": lambda key, secret: [["Accept", "*/*"], [key, secret]],
    "name and value": lambda key, secret: {"name": key, "value": secret},
    "JSON text": lambda key, secret: {"text": json.dumps({"user": "bob", key: secret})},
    "JSON text in JSON text": lambda key, secret: {"text": json.dumps({"a": json.dumps({key: secret})})},
    "spaced JSON text": lambda key, secret: {"text": json.dumps({key: secret}, indent=2)},
    "query": lambda key, secret: f"https://h.example/x?a=1&{key}={urllib.parse.quote(secret, safe='')}&b=2",
}


def wrap(value: object, depth: list[str]) -> object:
    for step in depth:
        value = [value, 1] if step == "list" else {step: value, "n": None}
    return value


DEPTH = st.lists(st.sampled_from(["list", "content", "args", "id_list", "result"]), max_size=5)


def check(value: object, *secrets: str) -> None:
    redactor = Redactor(ENVIRON)
    assert redactor.may_hold(dumps(value))
    new = redactor.clean(value)
    written = dumps(new)
    for secret in secrets:
        assert secret not in written
        assert dumps(secret)[1:-1] not in written
    again = redactor.clean(new)
    assert dumps(again) == written


@given(secret=SHAPED, before=PROSE, after=PROSE, depth=DEPTH)
def test_token_of_known_shape_never_reaches_the_bytes(
    secret: str, before: str, after: str, depth: list[str]
) -> None:
    check(wrap(before + secret + " " + after, depth), secret)
    check(wrap({"k": before + "\n" + secret + "\n" + after}, depth), secret)
    check(wrap(json.dumps({"x": before + "\n" + secret}), depth), secret)
    check(wrap(json.dumps(json.dumps({"x": "\n" + secret + "\t" + after})), depth), secret)
    check(wrap({secret: 1}, depth), secret)


@given(key=KEYS, secret=NAMED, place=st.sampled_from(sorted(PLACES)), depth=DEPTH)
def test_value_under_a_secret_name_never_reaches_the_bytes(
    key: str, secret: str, place: str, depth: list[str]
) -> None:
    check(wrap(PLACES[place](key, secret), depth), secret)  # type: ignore[no-untyped-call]


@given(
    before=st.binary(max_size=7),
    after=st.binary(max_size=7),
    name=st.sampled_from(sorted(ENVIRON)),
    depth=DEPTH,
)
def test_environment_value_never_reaches_the_bytes_in_any_coding(
    before: bytes, after: bytes, name: str, depth: list[str]
) -> None:
    value = ENVIRON[name]
    check(wrap(f"a {value} b", depth), value)
    coded = base64.b64encode(before + value.encode() + after).decode()
    check(wrap(f"a {coded} b", depth), coded)
    coded = base64.urlsafe_b64encode(before + value.encode() + after).decode()
    check(wrap({"x": coded}, depth), coded)
    check(
        wrap("https://h/?q=" + urllib.parse.quote(value, safe="") + "&r", depth),
        urllib.parse.quote(value, safe=""),
    )
    check(wrap(json.dumps({"x": json.dumps([value])}), depth), value)


@given(user=st.text(ALNUM, min_size=1, max_size=10), secret=NAMED, before=PROSE)
def test_password_in_a_url_never_reaches_the_bytes(user: str, secret: str, before: str) -> None:
    secret = secret.replace("#", "_")
    check(before + f"postgres://{user}:{secret}@db.example:5432/x", secret)
    check({"url": f"https://{user}:{secret}@h.example"}, secret)
    check(json.dumps({"u": f"redis://:{secret}@h"}), secret)


FRAGMENTS = st.sampled_from(
    ["token", "Token", "key", "KEY", "api", "API", "secret", "password", "passwd", "passphrase", "authorization", "Cookie", "has",
     "private", "=", ":", ": ", " = ", "\"", "'", "\\", "\\\"", "\n", "\t", " ", "_", "-", "--", ".", "/", "//", "://",
     "@", "&", "?", "%3D", "%22", "sig", "<", ">", "</", "{", "}", "[", ",", "é", "\u212a", "-u", " -u ", "curl",
     "sk-", "gh" + "p_", "eyJ", "AK" + "IA", "SG.", "ya29.", "Bearer ", "basic ", "bEaReR ", "Sig=", "BLOCK", "a1B2c3D4e5F6g7H8i9J0k", "Qx9-27",
     "hunter2", "-----", "BEGIN", "END", "PRIVATE KEY", "u0041", "n", "u", "5", "x" * 30, "<redacted:token:1>",
     "value", "name", ENV_VALUE, "ABCDEFGH12345678", "--api-key", "--pass", "auth", "pwd", "PASS",
     "sshpass", "-p", "curl", "?key=", "$6$", "code=", "hooks.slack.com/services/"]
)  # fmt: skip
SOUP = st.lists(FRAGMENTS, max_size=14).map("".join)
VALUES = st.recursive(
    SOUP | st.integers() | st.none() | st.booleans(),
    lambda inner: (
        st.lists(
            inner | st.sampled_from(["--api-key", "--password", "-u", "-p", "sshpass", "curl"]), max_size=3
        )
        | st.dictionaries(
            SOUP | st.sampled_from(["name", "value", "key", "id", "text", "signature"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@up_to(1500)
@given(value=VALUES)
def test_rules_never_find_what_the_prefilter_did_not_announce(value: object) -> None:
    redactor = Redactor(ENVIRON)
    encoded = dumps(value)
    new = redactor.clean(value)
    assert dumps(value) == encoded
    if dumps(new) != encoded:
        assert redactor.may_hold(encoded)
    else:
        assert new is value or redactor.total > 0


@up_to(1500)
@given(text=SOUP | VALUES.map(dumps) | VALUES.map(lambda value: json.dumps(value, ensure_ascii=False)))
def test_nothing_is_found_in_text_after_its_bytes_were_cleared(text: str) -> None:
    redactor = Redactor(ENVIRON)
    if redactor.clean(text) != text:
        assert redactor.may_hold(text.encode("utf-8", "surrogatepass"))


STARTS = [start for row in (*table.TOKENS, *table.FIRST_TOKENS) for start in row[1].split()]
"""How tokens begin, from the table itself: a new row is tried without a new test."""
WORDS = [
    *STARTS,
    *(f"{scheme} " for scheme in table.SCHEMES),
    *(stem + end for stem, ends in table.KEY_WORDS for end in ends),
    *(word.decode() for word in (*table.SIGNATURES, table.OAUTH_CODE)),
    *(f"${name.decode()}$" for name in sorted(table.HASHES)),
    *"api key|api_key|PRIVATE KEY|-----BEGIN RSA PRIVATE KEY-----|-----BEGIN PGP PRIVATE KEY BLOCK-----|curl|http".split(
        "|"
    ),
    *"-----END PGP PRIVATE KEY BLOCK-----|https://|user:|@host|X-Amz-Signature|--token|--password|-u|--user|sshpass".split(
        "|"
    ),
    *"hooks.slack.com/services/|discord.com/api/webhooks/|DB_PASS|db_pwd|PWD|Pwd|machine h|login u|&state=".split(
        "|"
    ),
]
SEPARATORS = [
    *" :=\"'`\n\t\\-_&?;/>.,$é\u2028\r\x0b\xa0",
    *"\\n|\\u00e9|\\u0026|: | = |://|</|%3D|%3A|:=|=>| -u | -p |?key=|&key=".split("|"),
]
LETTERS = ["ABCdef0123456789ghIJKL-_mnop", "0123456789abcdef", "ABCDEFGH12345678", "aB3./", "a1"]


def soup_of(chance: random.Random) -> str:
    """Words that announce secrets in any case, tokens and separators, glued together."""
    parts = []
    for _ in range(chance.randint(2, 7)):
        sort = chance.random()
        if sort < 0.4:
            word = chance.choice(WORDS)
            mixed = "".join(chance.choice((letter.lower(), letter.upper())) for letter in word)
            parts.append(chance.choice((word, word, word, word.upper(), word.title(), mixed)))
        elif sort < 0.7:
            parts.append(chance.choice(SEPARATORS))
        else:
            parts.append("".join(chance.choices(chance.choice(LETTERS), k=chance.choice((6, 8, 16, 20, 40)))))
    return "".join(parts)


re2_look = cache(first_look)


def re2_finds(data: bytes, env: EnvSecrets | None) -> bool:
    """True if the first look finds something, and where RE2 is not installed."""
    look = re2_look(env)
    return look is None or look(data) is not None


def marked(kind: str, secret: str) -> str:
    return f"<{kind}>"


@pytest.mark.parametrize("seed", [20, *(long(seed) for seed in range(21, 71))])
def test_the_prefilter_announces_all_that_the_rules_replace(seed: int) -> None:
    chance = random.Random(seed)
    found = 0
    for _ in range(20_000):
        text = soup_of(chance)
        for held in (text, quote(text)):  # as it is, and as JSON inside of a text
            if clean_text(held, marked) != held:
                found += 1
                data = quote(held).encode("ascii")
                assert scan(data, None) and re2_finds(data, None), held
    assert found > 1_000


def value_of(chance: random.Random) -> object:
    """The same under keys, in pairs, in objects with a name and a value, in arguments of a program."""
    texts = [soup_of(chance) for _ in range(3)]
    word = chance.choice(WORDS) + chance.choice(("", "", "\xe9", " ", ":", "_"))
    named = {chance.choice(("name", "key", "header")): word, "value": texts[0]}
    environment = chance.choice(("", "", *ENVIRON.values()))
    return chance.choice((
        {word: texts[0], "x": texts[1]},
        {texts[0]: {word: [texts[1], {"$bytes": base64.b64encode(texts[2].encode()).decode()}]}},
        dict(reversed(named.items())) if chance.random() < 0.5 else named,
        [[word, texts[0]], [texts[1], texts[2]]],
        ["curl", "-u", f"a:{texts[0]}", f"--{word}", texts[1], "sshpass", "-p", texts[2]],
        {"text": texts[0] + environment + texts[1]},
    ))  # fmt: skip


@pytest.mark.parametrize("seed", [1, *(long(seed) for seed in range(2, 52))])
def test_the_prefilter_announces_all_that_is_replaced_in_a_value(seed: int) -> None:
    chance = random.Random(seed)
    env = secrets_of(ENVIRON)
    found = 0
    values = 10_000 if LONG else 3_000
    for _ in range(values):
        value = value_of(chance)
        if Redactor(ENVIRON).clean(value) is not value:
            found += 1
            data = dumps(value).encode("ascii")
            assert scan(data, env) and re2_finds(data, env), value
    assert found > values // 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1][:8]}")
@pytest.mark.parametrize("before", ["", "x ", "é", "\n", "\t", "a\\n", "=", '"', "日"])
def test_each_token_of_the_table_is_announced_and_replaced(row: tuple[str, ...], before: str) -> None:
    for token, part in tokens_of(row):
        new = Redactor({}).clean(before + token)
        assert part not in new and f"<redacted:{row[0]}:1>" in new, (token, new)


@pytest.mark.parametrize(
    "text",
    [
        "bEaReR " + "aB3" * 8,
        "xBearer " + "aB3" * 8,
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nlQOYBGN" + "aB3" * 8,
        "a1authorization: " + "aB3" * 8,
        "?a=1&SIG=" + "aB3" * 8,
        "\\Tsk-" + "aB3" * 8,
        "PASSWORD %3D" + "aB3" * 8,
    ],
)
def test_what_only_the_rules_knew_is_replaced(text: str) -> None:
    assert "aB3aB3aB3" not in Redactor({}).clean(text)


@up_to(1500)
@given(value=VALUES)
def test_redaction_is_idempotent(value: object) -> None:
    redactor = Redactor(ENVIRON)
    once = redactor.clean(value)
    assert dumps(redactor.clean(once)) == dumps(once)


def test_a_scheme_that_only_looks_like_one_is_kept_by_a_second_pass() -> None:
    redactor = Redactor({})
    once = redactor.clean({"authorization": "tokentoken token"})
    assert redactor.clean(once) == once == {"authorization": "tokentoken <redacted:authorization:1>"}
