"""Redaction: what is replaced, what is never touched, and how placeholders behave."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import urllib.parse

import pytest

from reenact.capture.redact.names import secret_name
from reenact.capture.redact.redactor import Redactor
from reenact.lines import dumps
from support.examples import LONG
from support.work import calls_of

# Put together at run time, so that no scanner takes them for real ones.
BODY = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2"
ANTHROPIC = "sk-" + "ant-" + "api03-" + BODY + "-" + BODY
OPENAI = "sk-" + "proj-" + BODY
GITHUB = "ghp" + "_" + BODY
AWS_ID = "AKIA" + "Q3EGRT2YB4NZKLMP"
AWS_SECRET = "wJalrXUtn" + "FEMI/K7MDENG/bPxRfiCY" + "q8Lr0Zt9Vw"
JWT = ".".join("ey" + part for part in ("JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", "JzdWIiOiIxMjM0NTY3ODkwIn0"))
JWT += "." + BODY
DASHES = "-" * 5
PEM_BODY = "\n".join(BODY + "+/" + BODY[::-1] for _ in range(4))
PEM = f"{DASHES}BEGIN RSA PRIVATE KEY{DASHES}\n{PEM_BODY}\n{DASHES}END RSA PRIVATE KEY{DASHES}"
PASSWORD = "hunter2" + "-Tr0ub4dor"
ENV_VALUE = "q7W" + "-plumTree_55x"
ENVIRON = {"SERVICE_TOKEN": ENV_VALUE, "HOME": "/home/someone", "APP_KEY_NAME": "production-key-name"}

SHAPES = {
    "anthropic-key": ANTHROPIC,
    "openai-key": OPENAI,
    "openrouter-key": "sk-" + "or-v1-" + BODY,
    "secret-key": "sk-" + BODY,
    "stripe-key": "sk" + "_live_" + BODY,
    "github-token": GITHUB,
    "gitlab-token": "glpat" + "-" + BODY[:20],
    "slack-token": "xoxb" + "-123456789012-" + BODY,
    "huggingface-token": "hf" + "_" + BODY[:34],
    "npm-token": "npm" + "_" + BODY,
    "pypi-token": "pypi" + "-" + BODY + BODY,
    "groq-key": "gsk" + "_" + BODY + BODY[:16],
    "xai-key": "xai" + "-" + BODY + BODY,
    "sendgrid-key": "SG" + "." + BODY[:22] + "." + BODY,
    "google-token": "ya29" + "." + BODY + BODY,
    "google-key": "AIza" + BODY[:35],
    "aws-key-id": AWS_ID,
    "jwt": JWT,
    "private-key": PEM,
}


def cleaned(value: object, key: str | None = None) -> str:
    """The redacted value as it would be written, having checked what holds for every redaction."""
    redactor = Redactor(ENVIRON)
    before = dumps(value)
    new = redactor.clean(value, key)
    assert dumps(value) == before, "the caller's value was changed"
    if new is not value:
        assert redactor.may_hold(dumps({key: value} if key else value)), "clean() knew more than may_hold()"
        assert redactor.total > 0
    if isinstance(value, str) and redactor.clean(value) != value:
        assert redactor.may_hold(value.encode("utf-8", "surrogatepass")), (
            "clean() knew more than may_hold() of bytes"
        )
    again = redactor.clean(new, key)
    assert dumps(again) == dumps(new), "not idempotent"
    return dumps(new)


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize(
    "around",
    ["{}", "use {} please", "a\n{}\nb", "é{}", 'x="{}"', "({})", "é\n{}", "\\\\n{}", "https://h/{}/x"],
)
def test_token_of_known_shape_is_replaced_by_its_kind(kind: str, around: str) -> None:
    text = cleaned(around.replace("{}", SHAPES[kind]))
    assert f"<redacted:{kind}:1>" in text
    assert BODY[:16] not in text and AWS_ID not in text


# The 17 plants of the comparison with other recorders.
PLANTED = {
    "sdk key header": ({"headers": {"x-api-key": ANTHROPIC}}, ANTHROPIC),
    "custom header": ({"headers": {"X-Internal-Auth-Token": "zz-9981-abc"}}, "zz-9981-abc"),
    "custom header in pairs": ({"headers": [["Accept", "*/*"], ["X-Corp-Secret", "zz9981"]]}, "zz9981"),
    "header as name and value": ({"name": "Authorization", "value": "Bearer zz9981"}, "zz9981"),
    "cookie": ({"headers": {"cookie": "session=zz9981; theme=dark"}}, "zz9981"),
    "url query": ({"url": "https://h.example/v1?q=1&api_key=zz9981&x=2"}, "zz9981"),
    "key in a user prompt": ({"role": "user", "content": f"my key is {ANTHROPIC}, ok?"}, ANTHROPIC),
    "key in a system prompt": ({"system": [{"type": "text", "text": f"KEY={OPENAI}"}]}, OPENAI),
    "password= in text": ({"content": f"log in with user=bob password={PASSWORD} now"}, PASSWORD),
    "env value": ({"output": f"the value was {ENV_VALUE}."}, ENV_VALUE),
    "json field client_secret": ({"body": {"client_secret": "zz9981"}}, "zz9981"),
    "json field access_token": ({"body": {"access_token": "zz9981-abcdef"}}, "zz9981"),
    "tool argument": ({"args": {"url": "x", "apiKey": "zz9981"}}, "zz9981"),
    "url user and password": ({"url": "https://bob:zz9981@h.example/x"}, "zz9981"),
    "url token": ({"cmd": f"git clone https://{BODY}@git.example/r.git"}, BODY),
    "dsn": ({"dsn": "postgresql://app:zz%409981@db:5432/main"}, "zz%409981"),
    "github": ({"out": f"remote: {GITHUB}"}, GITHUB),
    "aws": ({"env": f"AWS_ACCESS_KEY_ID={AWS_ID}\nAWS_SECRET_ACCESS_KEY={AWS_SECRET}\n"}, AWS_SECRET),
    "list argument": ({"command": ["python", "agent.py", "--api-key", "zz9981abc"]}, "zz9981abc"),
    "list argument of a tool": ({"args": {"cmd": ["tool", "-v", "--password", "rosebud", "x"]}}, "rosebud"),
    "sshpass as a list": ({"cmd": ["/usr/bin/sshpass", "-p", "rosebud", "ssh", "h"]}, "rosebud"),
    "curl as a list": ({"cmd": ["curl", "-s", "-u", "bob:rosebud", "https://h.example"]}, "rosebud"),
    "docker auth": ({"auths": {"h.example": {"auth": "Ym9iOnp6OTk4MQ=="}}}, "Ym9iOnp6OTk4MQ"),
    "pwd of a database": ({"db": {"user": "sa", "pwd": "zz9981x"}}, "zz9981x"),
    "json password": ({"login": {"user": "bob", "password": "zz9981"}}, "zz9981"),
}


@pytest.mark.parametrize("plant", PLANTED)
def test_planted_secret_is_not_in_the_bytes(plant: str) -> None:
    value, secret = PLANTED[plant]
    assert secret not in cleaned(value)


TEXTS = {
    "DB_PASS=rosebud": "rosebud",
    "HOME=/root\nSMTP_PASS=zz9981!\nPWD=/root": "zz9981!",
    "db_pass: zz9981x": "zz9981x",
    "export MYSQL_PWD=zz9981x": "zz9981x",
    "Server=h;Uid=sa;Pwd=zz9981x;Database=main": "zz9981x",
    "Driver={ODBC};UID=sa;PWD=zz9981x": "zz9981x",
    "//registry.example/:_auth=Ym9iOnp6OTk4MQ==": "Ym9iOnp6OTk4MQ",
    '{"auths": {"h": {"auth": "Ym9iOnp6OTk4MQ=="}}}': "Ym9iOnp6OTk4MQ",
    "GET https://h.example/v1beta/models?key=zz9981abcdefghijk": "zz9981",
    "https://h.example/v1?alt=sse&KEY=zz9981abcdefghijk&x=1": "zz9981",
    "https://h.example/v1?alt=sse\\u0026key=zz9981abcdefghijk": "zz9981",
    "sshpass -p rosebud ssh bob@h": "rosebud",
    "sshpass -p 'rose bud' ssh bob@h": "rose bud",
    "machine h.example login bob password rosebud": "rosebud",
    "machine h.example\n\tlogin bob\n\tpassword rosebud\n": "rosebud",
    "default login anonymous password rosebud": "rosebud",
    json.dumps({"content": "machine h.example\n  login bob\n  password rosebud\n"}): "rosebud",
    "GET /callback?code=zz9981abcdef&state=af0if": "zz9981",
    "grant_type=authorization_code&code=4%2F0AXzz9981&client_id=c": "zz9981",
    "root:$6$saltSalt$" + BODY + BODY + ":19000:0:99999": BODY,
    "$2b$12$" + BODY + BODY[:17]: BODY,
    "$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$" + BODY: BODY,
    "https://hooks.slack.com/" + "services/T0ABC1234/B0ABC1234/" + BODY[:24]: BODY[:24],
    "see https://hooks.slack.com/" + "services/T0ABC1234/B0ABC1234/" + BODY[:24] + "/.": BODY[:24],
    "https://discord.com/" + "api/webhooks/123456789012345678/" + BODY + BODY: BODY,
    "https:\\/\\/hooks.slack.com\\/services\\/T0ABC1234\\/B0ABC1234\\/" + BODY[:24]: BODY[:24],
    "Command '['a.py', '--token', 'zz9981abc']' returned non-zero exit status 1.": "zz9981abc",
    json.dumps(["a.py", "--api-key", "zz9981abc"], indent=2): "zz9981abc",
    json.dumps({"arguments": json.dumps({"cmd": ["--api-key", "zz9981abc"]})}): "zz9981abc",
    "curl --user bob:rosebud https://h.example": "rosebud",
    'password: "zz 99 81"': "zz 99 81",
    "Password: zz9981!": "zz9981!",
    "DB_PASSWORD='zz9981'": "zz9981",
    '{"user": "bob", "password": "zz9981"}': "zz9981",
    json.dumps({"a": json.dumps({"password": "zz9981"})}): "zz9981",
    json.dumps(json.dumps(json.dumps({"x": 1, "client_secret": "zz9981-abc"}))): "zz9981-abc",
    '{"password": "zz9981-torn': "zz9981-torn",
    "export API_TOKEN=zz9981abc": "zz9981abc",
    "config['api_key'] and {'api_key': 'zz9981abc'}": "zz9981abc",
    "GET / HTTP/1.1\r\nHost: h\r\nAuthorization: Basic "
    + base64.b64encode(b"bob:zz9981").decode()
    + "\r\n": "Ym9i",
    "x-api-key: zz9981abc\nAccept: */*": "zz9981abc",
    "Set-Cookie: sid=zz9981; Path=/; HttpOnly": "zz9981",
    "tool --user bob --password zz9981 --verbose": "zz9981",
    'tool --api-key "zz9981abc"': "zz9981abc",
    "curl -s -u bob:zz9981 https://h.example/": "zz9981",
    "AccountName=a;AccountKey=zz9981abcdefgh+/==;EndpointSuffix=x": "zz9981",
    "https://a.blob.example/c?sv=2022&se=2030&sig=zz9981%2Fabc%3D": "zz9981",
    "redirect=https%3A%2F%2Fh%2Fcb%3Faccess_token%3Dzz9981abc": "zz9981abc",
    "<login><password>zz9981</password></login>": "zz9981",
    "my API key: zz9981abc": "zz9981abc",
    "mongodb+srv://app:zz9981@cluster0.example/db?w=majority": "zz9981",
    "https:\\/\\/bob:zz9981@h.example\\/x": "zz9981",
    "Authorization: Bearer zz9981": "zz9981",
    "call it with Bearer " + "zz9981" * 5: "zz9981",
    "password=letmein": "letmein",
    "line one\\npassword=zz9981\\nline three": "zz9981",
}


@pytest.mark.parametrize("text", TEXTS)
def test_assignment_in_plain_text_is_redacted(text: str) -> None:
    assert TEXTS[text] not in cleaned({"content": text})


@pytest.mark.parametrize(
    "spell",
    [
        lambda v: v,
        lambda v: urllib.parse.quote(v, safe=""),
        lambda v: urllib.parse.quote_plus(v),
        lambda v: base64.b64encode(v.encode()).decode(),
        lambda v: base64.b64encode(b"u:" + v.encode() + b"!!").decode(),
        lambda v: base64.urlsafe_b64encode(b"user:" + v.encode()).decode(),
        lambda v: json.dumps(v),
        lambda v: json.dumps(json.dumps({"x": v})),
    ],
)
@pytest.mark.parametrize("value", [ENV_VALUE, 'a"B3\\c/d+9 é~Xy', "Zq-" + "x1Y" * 12, "S3cr:t/&=v@lue99"])
def test_environment_value_is_found_in_every_spelling(value: str, spell: object) -> None:
    redactor = Redactor({"MY_SECRET": value})
    spelled = spell(value)  # type: ignore[operator]
    text = f"before {spelled} after"
    assert redactor.may_hold(dumps(text))
    out = redactor.clean(text)
    assert "<redacted:env-value:1>" in out
    assert value not in out and spelled not in out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "short1A"),
        ("API_KEY", "production"),
        ("API_KEY", "my-production-key"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-XXab12/agent.77"),
        ("TOKEN_URL", "https://h.example/oauth/token"),
        ("EDITOR", "Zq9-x1Yx1Yx1Y"),
        ("PWD", "Zq9-x1Yx1Yx1Y"),
        ("ACCOUNT_KEY", "123456789012"),
    ],
)
def test_environment_value_that_is_no_secret_is_left_alone(name: str, value: str) -> None:
    redactor = Redactor({name: value})
    text = f"here: {value} end"
    assert redactor.clean(text) == text


def test_password_of_a_url_in_the_environment_is_known() -> None:
    redactor = Redactor({"DATABASE_URL": f"postgres://u:{PASSWORD}@h/db"})
    assert PASSWORD not in redactor.clean(f"it is {PASSWORD} indeed")


def test_environment_of_the_process_is_read_when_none_is_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_TOKEN", ENV_VALUE)
    assert ENV_VALUE not in Redactor().clean(f"x {ENV_VALUE} y")


def test_an_environment_is_looked_at_again_only_if_it_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = "x9Kq27LmZ8dfj2kPq0", "Tm4Wc81QeR6yUb3Hs7"
    monkeypatch.setenv("PAYMENT_TOKEN", first)
    for number in range(100):
        monkeypatch.setenv(f"ORDINARY_{number}", f"value number {number}")
    assert first not in str(Redactor().clean({"text": f"it is {first}"}))
    assert calls_of(Redactor) < 20  # a server begins a run with each request; 100 variables are 700 calls
    monkeypatch.setenv("PAYMENT_TOKEN", second)  # as many variables as before
    assert second not in str(Redactor().clean({"text": f"it is {second}"}))
    monkeypatch.delenv("PAYMENT_TOKEN")
    assert second in str(Redactor().clean({"text": f"it is {second}"}))


def test_equal_secrets_get_equal_placeholders_however_they_are_found() -> None:
    redactor = Redactor({})
    first = redactor.clean({"x-api-key": ANTHROPIC})
    second = redactor.clean([f"again {ANTHROPIC}", {"authorization": f"Bearer {ANTHROPIC}"}])
    other = redactor.clean(ANTHROPIC + "x")
    assert first == {"x-api-key": "<redacted:anthropic-key:1>"}
    assert second == [
        "again <redacted:anthropic-key:1>",
        {"authorization": "Bearer <redacted:anthropic-key:1>"},
    ]
    assert other == "<redacted:anthropic-key:2>"
    assert redactor.counts == {"anthropic-key": 4}
    assert redactor.total == 4


def test_secret_itself_is_not_kept_by_the_redactor() -> None:
    redactor = Redactor({})
    redactor.clean(f"password={PASSWORD} {GITHUB}")
    assert PASSWORD not in repr(vars(redactor)) and GITHUB not in repr(vars(redactor))


def test_value_without_secrets_comes_back_as_the_same_object() -> None:
    value = {"a": [1, None, True, 2.5, {"b": "plain text, nothing else"}], "max_tokens": 10}
    assert Redactor(ENVIRON).clean(value) is value


UNTOUCHED = [
    {"id": "toolu_01A09q90qw90lq917835lq9", "tool_use_id": "toolu_01A09q90qw90lq917835lq9"},
    {"id": "msg_01XFDUDYJgAACzvnptvVoYEL", "call_id": "call_9pw1qnYScqvGrCH58HWCvFH6"},
    {"id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"},
    "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b gen-1700000000-AbCdEfGhIjKlMnOpQrSt",
    "fc_67ccd2bf17f0819081ff3bb2cf6508e60bb6a6b452d3795b rs_0123456789abcdef0123456789abcdef",
    "6f1c2b1e-9c7d-4d6f-8a53-1f2e3d4c5b6a 4bf92f3577b34da6a3ce929d0e0e4736",
    "sha256:" + "0123456789abcdef" * 4,
    {"token": 5, "password": True, "secret": None, "api_key": 1.5},
    {"tokens": "many of them", "max_tokens": "100", "token_count": "12345678", "key": "value-1234567"},
    {"cache_key": "abcdef123456", "next_page_token": "abcdef123456", "primary_key": "id12345678"},
    {"usage": {"input_tokens": 12, "output_tokens": 13, "cache_creation_input_tokens": 0}},
    {"logprobs": {"content": [{"token": "Greetings", "logprob": -0.1, "bytes": [1]}]}},
    {"input_schema": {"type": "object", "properties": {"password": {"type": "string"}, "token": "text-9-x"}}},
    {"parameters": {"properties": {"api_key": {"description": "The key"}}, "required": ["token", "api_key"]}},
    "def login(user: str, password: str = None, token: Token | None = None) -> None:",
    "client = Client(api_key=api_key, token=settings.token, password=password)",
    "password = os.environ['DB_PASSWORD']; token = tokens[i]; secret = get_secret()",
    "The token: a piece of text. Password: required. api_key: API key for the service.",
    "export TOKEN=$GITHUB_TOKEN KEY=${API_KEY} --password $PASSWORD --token <token>",
    "https://example.com/path?page=2#frag mail bob@example.com or ssh://git@github.com/a/b",
    "npm i @types/node; node_modules/.pnpm/a@1.2.3/x; unexpected token ':' at line 3",
    "docker run -u 1000:1000 image",
    "class TokenCounter: keyword = 'key'; monkey: int; task-management-service-name",
    "Basic authentication-is-documented-elsewhere; Bearer of good-news-everyone-today",
    "eyJub3RhIjoiand0In0 is base64 of no token",
    "PWD=/home/bob/x9Kq27LmZ\nOLDPWD=/home/bob/x9Kq27LmZ2\nINIT_PWD=/srv/x9Kq27LmZ cd x; PWD=$(pwd)",
    {"env": {"PWD": "/home/bob/x9Kq27LmZ", "OLDPWD": "/srv/x9Kq27LmZ"}, "pwd": "/srv/x9Kq27LmZ"},
    {
        "auth": "oauth2-client",
        "basicAuth": "https://h.example/x9Kq27LmZ",
        "pass": "first",
        "bypass": "x9Kq27LmZ",
    },
    {"FAIL_TO_PASS": '["tests/test_x9Kq27LmZ.py::test_a"]', "PASS_TO_PASS": "tests/test_x9Kq27LmZ.py"},
    "requests.get(url, auth=HTTPBasicAuth(user, pw)); auth=(user, pw); first_pass = run(x9Kq27LmZ); auth: none",
    "all tests pass: 12345678; one-pass-encryption; the author: x9Kq27LmZ; `auth: ed25519`",
    "https://h.example/?key=some-name&page=2 and ?key=abc and sort_key=x9Kq27LmZx9Kq27LmZ and key=a1b2c3d4e5f6g7h8i9",
    "https://h.example/?code=SUMMER2024&page=2 exit code=12345678 status_code=200&x=1",
    "you may login with password authentication on this machine; the default password is shown",
    "cat $1$2 > $5/x; cost $6$; awk '{print $1$2$3}'",
    "see https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX and the webhooks below",
    ["- set the token", "x9Kq27LmZ"],
    ["--token", "--verbose", "--password", "$PASSWORD", "--key-file", "/etc/x9Kq27LmZ", "--api-key", "<key>"],
    "parser.add_argument('--token', 'api_token', help='x'); cache-key-0123456789abcdef0123456789abcdef",
    "npm-cache-key-0123456789abcdef0123456789abcdef0123456789abcdef; papa-pa-some-long-name-of-a-thing-in-kebab",
    f"{DASHES}BEGIN RSA PRIVATE KEY{DASHES} and {DASHES}END RSA PRIVATE KEY{DASHES} are its marks",
]


@pytest.mark.parametrize("number", range(len(UNTOUCHED)))
def test_ids_numbers_schemas_code_and_prose_are_untouched(number: int) -> None:
    value = UNTOUCHED[number]
    assert Redactor(ENVIRON).clean(value) == value


def test_key_rule_applies_to_the_name_a_value_stands_under() -> None:
    redactor = Redactor({})
    assert redactor.clean("zz9981", "password") == "<redacted:password:1>"
    assert redactor.clean(["zz9981"], "set-cookie") == ["<redacted:password:1>"]
    assert redactor.clean(5, "password") == 5
    assert redactor.clean({"hint": "none"}, "secret") == {"hint": "none"}
    assert redactor.clean("toolu_01A09q90qw90lq917835lq9", "id") == "toolu_01A09q90qw90lq917835lq9"


def test_secret_in_a_key_of_an_object_is_redacted() -> None:
    assert Redactor({}).clean({GITHUB: 1}) == {"<redacted:github-token:1>": 1}


def test_password_that_looks_like_a_variable_is_still_a_password() -> None:
    assert Redactor({}).clean({"password": "$ecret123"}) == {"password": "<redacted:password:1>"}


@pytest.mark.parametrize(
    "block",
    [
        {"type": "thinking", "thinking": f"the key {ANTHROPIC}", "signature": "ErUB" + BODY},
        {"type": "redacted_thinking", "data": f"x {ANTHROPIC}"},
        {"type": "reasoning", "encrypted_content": f"gAAA {ANTHROPIC}"},
        {"text": f"thought {ANTHROPIC}", "thought": True, "thoughtSignature": BODY},
        {"reasoningText": {"text": f"hm {ANTHROPIC}", "signature": BODY}},
    ],
)
def test_secret_inside_a_signed_block_is_kept_and_counted(block: dict[str, object]) -> None:
    redactor = Redactor({})
    message = {"content": [block, {"type": "text", "text": f"it is {ANTHROPIC}"}]}
    out = redactor.clean(message)
    assert out["content"][0] == block
    assert out["content"][1]["text"] == "it is <redacted:anthropic-key:1>"
    assert redactor.unredacted_signed == 1
    assert redactor.total == 1


@pytest.mark.parametrize("position", [4096 - 7, 4096, 65536 - 7, 65536, 28_000, 200_000])
def test_secret_at_any_place_of_a_long_text_is_found(position: int) -> None:
    text = ("lorem ipsum dolor " * 20_000)[:position] + " " + GITHUB + " amet" * 100
    assert GITHUB not in cleaned({"content": text})


def test_private_key_is_replaced_as_a_whole_also_escaped_and_torn() -> None:
    assert Redactor({}).clean(f"a\n{PEM}\nb") == "a\n<redacted:private-key:1>\nb"
    assert Redactor({}).clean("k=" + PEM.replace("\n", "\\n") + "!") == "k=<redacted:private-key:1>!"
    assert BODY not in Redactor({}).clean("a\n" + PEM[:150])
    pgp = PEM.replace("RSA PRIVATE KEY", "PGP PRIVATE KEY BLOCK")
    assert Redactor({}).clean(f"a\n{pgp}\nb") == "a\n<redacted:private-key:1>\nb"
    assert Redactor({}).clean(PEM + "\nx\n" + PEM).count("<redacted:private-key:1>") == 2


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("X-Api-Key", "api-key"), ("apiKey", "api-key"), ("OPENAI_API_KEY", "api-key"), ("api.key", "api-key"),
        ("token", "token"), ("accessToken", "token"), ("session_token", "token"), ("tokens", None),
        ("max_tokens", None), ("token_count", None), ("nextPageToken", None), ("dbPassword", "password"),
        ("passwd", "password"), ("sshPassphrase", "password"), ("set-cookie", "cookie"), ("Proxy-Authorization", "authorization"),
        ("privateKey", "secret-key"), ("key", None), ("cache_key", None), ("has_password", None),
        ("public_key", None), ("DB_PASS", "password"), ("dbPass", "credential"), ("PWD", "credential"), ("OLDPWD", None),
        ("_auth", "credential"), ("FAIL_TO_PASS", None), ("no_auth", None), ("author", None), ("", None), ("-", None), ("é", None),
    ],
)  # fmt: skip
def test_names_promise_secrets_by_their_last_whole_word(name: str, kind: str | None) -> None:
    assert secret_name(name) == kind


HOSTILE = ["eyJ-", "sk-", "token=", 'token="', "token='", "://a:", "@", "\\", '"', "password: ", "Bearer ", "key ",
           "-----BEGIN PRIVATE KEY-----", "--key ", "&sig=", "cookie:", " -u ", "://" + "a" * 20, "é", "<password>",
           '\\"token\\":\\"', "AKIA", "key", "x:y@", "\n", "a" * 20 + ".", "&code=", "code=a1b2c3d4&", "hooks.slack.com/services/", "$6$", "$6$a$", "?key=", "sshpass -p ",
           "machine a login b password ", "password\t", '--token", "', "-u", "curl --user a:", "$", "pass", "auth"]  # fmt: skip


@pytest.mark.parametrize(
    ("piece", "size"),
    [(piece, 1_000_000 if LONG else 300_000) for piece in ("a", "=", "eyJ", "-----BEGIN ")]
    + [(piece, 200_000 if LONG else 50_000) for piece in HOSTILE],
)
def test_hostile_text_is_cleaned_in_linear_time(piece: str, size: int) -> None:
    # A rule that took quadratic time would need hours here.
    text = piece * (size // len(piece))
    redactor = Redactor(ENVIRON)
    out = redactor.clean(text + " " + GITHUB)
    assert GITHUB not in out
    assert redactor.clean(out) == out


def test_value_nested_too_deeply_to_look_at_is_cut_not_written() -> None:
    value: object = GITHUB
    for _ in range(100_000):
        value = [value]
    assert Redactor({}).clean(value) == {"$cut": "redact"}


def test_threads_never_share_a_placeholder_for_different_secrets() -> None:
    redactor = Redactor({})
    found: dict[str, str] = {}

    def work(offset: int) -> None:
        for number in range(200):
            secret = f"pw-{(number * 7 + offset) % 100}-x9"
            found.setdefault(secret, redactor.clean(secret, "password"))

    threads = [threading.Thread(target=work, args=(offset,)) for offset in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found.values())) == len(found) == 100


def test_import_and_a_look_at_harmless_text_load_nothing_heavy() -> None:
    code = (
        "import sys; from reenact.capture.redact.redactor import Redactor; r = Redactor({'A_TOKEN': 'x9Kq27LmZpTt4'});"
        'assert not r.may_hold(\'{"content":"hello there, the key to it all"}\');'
        "print([m for m in ('re', 'json', 'hashlib', 'threading', 'base64', 'urllib') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-I", "-S", "-c", "import sys; sys.path[:0] = " + repr(sys.path) + ";" + code],
                         capture_output=True, text=True, check=True)  # fmt: skip
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("odd", [{}, {"a": 1}, [], 7, None, "no base64"], ids=repr)
def test_marks_of_a_hostile_trace_hold_anything(odd: object) -> None:
    value = {"password": {"$bytes": odd}, "x": {"$bytes": odd}, "token": {"$repr": odd}}
    cleaned = Redactor({}).clean({**value, "note": f"sk-ant-api03-{'a' * 40}"})
    assert "aaaa" not in cleaned["note"]
