"""The rules of redaction on one text: what counts as a secret in it and which part of it is replaced.

Loaded by the redactor only when the prefilter has found something, because it needs ``re``. Every pattern
is linear: bounded or possessive repeats, no nested ones. Whatever matches here, the prefilter announces.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import Match

from .environment import RUN, is_path, wordy
from .names import NAME, SPACED_KEYS, last_identifier, secret_name
from .table import (
    FIRST_TOKENS,
    FOLLOWS,
    HASHES,
    HEADS,
    KEY_BLOCKS,
    KEY_WORDS,
    MASK,
    NETRC,
    RUN_START,
    SCHEMES,
    STEMS,
    TOKENS,
    WORDS,
    phrases,
)

Replace = Callable[[str, str], str]
"""(kind, secret) -> placeholder"""

PLACEHOLDER = re.compile(r"<redacted:[a-z-]+:\d+>")

_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")

_PEM_LINE = re.compile(r"[A-Za-z0-9+/]{12}")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\]*+")

_URL = re.compile(
    r"(:(?:\\{0,4}/){2})(?:([^\s/\"'`<>@:\\?#]{0,128}+):([^\s/\"'`<>\\?#]{1,512})|([^\s/\"'`<>@:\\?#]{16,512}+))@"
)
_SIGNATURE = re.compile(r"(?i:([?&;](?:sig|(?:x-(?:amz|goog)-)?signature)=))([^&\s\"'`\\<>]{8,4000}+)")
_CURL_USER = re.compile(r"( (?:-u|--user) [\"']?[^\s:\"'<>]{1,64}+:)([^\s\"'<>]{1,200}+)")
_OAUTH_CODE = re.compile(
    r"(?i:((?<=[?&])code=(?=[^&\s\"'`\\<>]{8})|(?<![\w-])code=(?=[^&\s\"'`\\<>]{8,1000}+&)))"
    r"([^&\s\"'`\\<>]{8,1000}+)"
)
_OAUTH = ("state=", "oauth", "authorization_code", "code_verifier")
"""What stands beside the code of a callback."""
_WEBHOOK = re.compile(
    r"(?i:(hooks\.slack\.com\\?/(?:services|workflows|triggers)\\?/|webhook\.office\.com\\?/webhookb2\\?/"
    r"|discord(?:app)?\.com\\?/api\\?/(?:v\d{1,2}\\?/)?webhooks\\?/))((?:[A-Za-z0-9_@.+-]|\\?/){20,400}+)"
)
_HASH = re.compile(
    rf"\$(?:{'|'.join(sorted(name.decode() for name in HASHES))})\$"
    r"(?:[A-Za-z0-9=,./+-]{1,64}\$){1,3}[A-Za-z0-9./+]{22,}+"
)

_KEYWORD = f"(?ai:{'|'.join(stem + end for stem, ends in KEY_WORDS for end in ends)})"
_ASSIGNS = r"\\{0,8}[\"'`]?[ \t]{0,4}(?::=|=>|[:=]|%3[DdAa])[ \t]{0,4}"
_QUOTED = r"(?P<q>\\{0,8}[\"'`])(?!(?P=q))(?P<quoted>[^\n]{1,1000}?)(?<!\\)(?P=q)"
_BARE = r"[^\s\"'`\\,;&<>(){}\[\]|]{1,1000}+"
_ASSIGNMENT = re.compile(
    rf"({_KEYWORD})({_ASSIGNS})(?:{_QUOTED}|(?P<bare>{_BARE})|\\{{0,8}}[\"'`](?P<torn>[^\s\"'`\\,;&<>]{{4,1000}}+)\Z)"
)
_HEADER = re.compile(
    r"((?i:authorization|cookie(?=[ \t]{0,4}:[ \t]{0,4}[^\s=;:,\"'`\\<>]{1,128}=)))([ \t]{0,4}:[ \t]{0,4})"
    r"([^\s\"'`\\<>][^\r\n\"'`\\]{0,4000}+)"
)
_FLAG = re.compile(
    rf"({_KEYWORD})(?: {{1,4}}|\\{{0,8}}[\"'`],\s{{0,40}}+(?=[\\\"'`]))(?:{_QUOTED}|(?P<bare>{_BARE}))"
)
"""In a text, and in a list of arguments as JSON or Python print it."""
_SSHPASS = re.compile(rf"((?ai:pass))( {{1,4}}-p {{0,4}})(?:{_QUOTED}|(?P<bare>{_BARE}))")
_BREAKS = re.compile(r"\\[nrt]|[\"'`]")
_NETRC = re.compile(r"((?ai:password))(\s{1,20}+)([^\s\\\"]{1,500}+)")
_ELEMENT = re.compile(rf"({_KEYWORD})(>)([^<>\n]{{1,500}}+)(?=</)")

_PLAIN_VALUES = frozenset(
    "none null nil true false undefined str string int integer number bool boolean bytes object any text "
    "char required optional password passwd secret token key apikey basic bearer digest oauth oauth2 "
    "redacted hidden masked changeme example placeholder default empty invalid valid expired missing unknown "
    "value prompt ed25519".split()
)
_REFERENCE = re.compile(
    r"\$(?:[A-Z_][A-Z0-9_]*+|[\d?@]|[{(].*|env:.*|(?i:\w*(?:pass|token|secret|key|pw)\w*))"
    r"|\{.*\}|<[^<>]*>|%(?:\(.*\))?s|%[A-Za-z_]+%|\[[A-Za-z ]*\]"
    r"|(?i:your[-_ ].*|my[-_ ](?:password|token|key|secret))|.*(?:environ|getenv|process\.env).*"
    r"|[\w-]{0,12}(?:\*{3,}|\.{3,}|x{4,}|X{4,})[\w-]{0,6}",
    re.DOTALL,
)


def is_reference(value: str) -> bool:
    """True if a value only stands for a secret: a type, a variable, a blank, a placeholder."""
    if len(value) > 200:
        return False
    if value.lower().strip(".,:;!?*") in _PLAIN_VALUES or len(set(value)) == 1:
        return True
    return _REFERENCE.fullmatch(value) is not None


def already_redacted(value: str) -> bool:
    """True if nothing but placeholders, and the word before a header's token, is left in a value."""
    if "<redacted:" not in value:
        return False
    return PLACEHOLDER.sub("", value).strip(" ,;\"'").lower() in ("", "bearer", "basic", "token")


def _is_no_secret(value: str) -> bool:
    return is_reference(value) or already_redacted(value)


def plausible_leaf(kind: str, value: str) -> bool:
    """True if the string under a secret JSON key is to be replaced."""
    if not value or _is_no_secret(value):
        return False
    if kind == "token":  # also the word for a piece of text
        return len(value) >= 8 and not any(c.isspace() for c in value)
    return kind != "credential" or _is_credential(value)


def plausible_flag(kind: str, value: str) -> bool:
    """True if the argument after a flag is a secret."""
    if not value or value[0] == "-" or _is_no_secret(value):
        return False
    if kind == "credential":
        return _is_credential(value)
    return kind == "password" or (len(value) >= 8 and not wordy(value))


_PIECES = re.compile("[A-Za-z0-9+/=]{7,}+")


def _is_credential(value: str) -> bool:
    """True if what stands under ``pass``, ``pwd`` or ``auth`` is more than a word, a path or a method."""
    if is_path(value) or "://" in value or any(c.isspace() for c in value):
        return False
    return any(not piece.isdigit() and not wordy(piece) for piece in _PIECES.findall(value))


def _plausible(kind: str, value: str, *, quoted: bool, assign: str, after: str) -> bool:
    """True if what is assigned in a text is a secret rather than prose or program code."""
    if _is_no_secret(value):
        return False
    if kind == "credential":
        return after not in ("(", "[", "{") and _is_credential(value)
    bare_word = wordy(value)
    if quoted:
        if ":" in assign and kind == "password":
            return len(value) >= 3
        if any(c.isspace() for c in value):
            return False
        return len(value) >= 4 and (kind == "password" or (len(value) >= 8 and not bare_word))
    if after in ("(", "[", "{") or len(value) < 4:
        return False
    if kind == "password":
        if not bare_word:
            return len(value) >= 6 or assign == "="
        # password=letmein in a shell or a query, but neither password=password) nor password: required
        code = after in (")", ",") or "." in value or "pass" in value.lower() or not value.isalnum()
        return assign == "=" and not code
    return len(value) >= 8 and not bare_word and any(c.isdigit() for c in value)


def name_before(text: str, end: int) -> str:
    """Return the name that ends at this place, without an escape that runs into it."""
    name = last_identifier(text[max(0, end - NAME) : end])
    start = end - len(name)
    if secret_name(name) is None:
        if start and text[start - 1] == "\\":
            return name[5 if name[0] == "u" else 1 :]
        if len(name) == 3 and text[max(0, start - 8) : start].lower().endswith(SPACED_KEYS):
            return "api_key"
    return name


def clean_text(text: str, replace: Replace) -> str:
    """Return the text with all its secrets replaced; the environment's are the caller's business."""
    if any(block in text for block in KEY_BLOCKS):
        text = _private_keys(text, replace)
    data = _ascii(text)
    # rfind(): see RUN_START
    for kind in phrases(data.lower(), (b" " + data.translate(MASK)).rfind(RUN_START) >= 0):
        text = _PHRASES[kind](text, replace)
    if "@" in text:
        text = _URL.sub(lambda match: _url(match, replace), text)
    return _clean_shapes(_assignments(text, replace), replace)


def _ascii(text: str) -> bytes:
    """Return one byte for each character, so that places in one are places in the other."""
    return text.encode("ascii", "replace")


def _private_keys(text: str, replace: Replace) -> str:
    out, done, ends = [], 0, True
    begin = _PEM.search(text)
    while begin is not None:
        end = _PEM_END.search(text, begin.end()) if ends else None
        ends = end is not None
        # A torn key is still a key: as far as its letters go.
        stop = end.end() if end is not None else _PEM_BODY.match(text, begin.end()).end()  # type: ignore[union-attr]
        if _PEM_LINE.search(text, begin.end(), stop) is not None:
            out += [text[done : begin.start()], replace("private-key", text[begin.start() : stop])]
            done = stop
        begin = _PEM.search(text, stop)
    return "".join([*out, text[done:]])


def _assignments(text: str, replace: Replace) -> str:
    """Replace what is assigned to a secret name, looking only where a key word stands."""
    low = _ascii(text).lower()
    places = []
    for stem, ends in _KEY_WORDS:
        at = low.rfind(stem)
        while at >= 0:
            upto = at + len(stem)
            for end in ends:
                if low.startswith(end, upto) and low[upto + len(end) : upto + len(end) + 1] in _FOLLOWS:
                    places.append(at)
                    break
            at = low.rfind(stem, 0, at)
    out, done = [], 0
    for at in sorted(places):
        if at < done or _inside_placeholder(text, at):
            continue
        for pattern, rule in _RULES:
            match = pattern.match(text, at)
            if match is not None:
                new = rule(match, replace)
                if new != match[0]:
                    out += [text[done:at], new]
                    done = match.end()
                    break
    return "".join([*out, text[done:]]) if out else text


def _signature(match: Match[str], replace: Replace) -> str:
    return match[0] if is_reference(match[2]) else match[1] + replace("signature", match[2])


def _oauth_code(match: Match[str], replace: Replace) -> str:
    around = match.string[max(0, match.start() - 300) : match.end() + 300].lower()
    code = match[2]
    if _is_no_secret(code) or wordy(code) or not any(each in around for each in _OAUTH):
        return match[0]
    return match[1] + replace("oauth-code", code)


def _webhook(match: Match[str], replace: Replace) -> str:
    path = match[2].rstrip("./\\")
    if len(set(path.rpartition("/")[2])) <= 1:  # XXXX
        return match[0]
    return match[1] + replace("webhook", path) + match[2][len(path) :]


def _curl_user(text: str, replace: Replace) -> str:
    if "curl" not in text and "http" not in text:
        return text
    return _CURL_USER.sub(lambda match: match[1] + replace("password", match[2]), text)


_PHRASES: dict[str, Callable[[str, Replace], str]] = {
    "signature": lambda text, replace: _SIGNATURE.sub(lambda match: _signature(match, replace), text),
    "oauth-code": lambda text, replace: _OAUTH_CODE.sub(lambda match: _oauth_code(match, replace), text),
    "webhook": lambda text, replace: _WEBHOOK.sub(lambda match: _webhook(match, replace), text),
    "curl-user": _curl_user,
    "password-hash": lambda text, replace: _HASH.sub(lambda match: replace("password-hash", match[0]), text),
}


def _url(match: Match[str], replace: Replace) -> str:
    lead, user, password, alone = match.groups()
    if alone is not None:
        if wordy(alone) or is_reference(alone):
            return match[0]
        return f"{lead}{replace('url-user', alone)}@"
    if is_reference(password) and password.lower() != "password":
        return match[0]
    if len(user) >= 20 and not wordy(user):
        user = replace("url-user", user)
    return f"{lead}{user}:{replace('url-password', password)}@"


def _header(match: Match[str], replace: Replace) -> str:
    value = match[3].rstrip()
    scheme, _, rest = value.partition(" ")
    if match[1].lower() == "cookie":
        if "=" not in value or " = " in value or already_redacted(value):
            return match[0]
        return f"{match[1]}{match[2]}{replace('cookie', value)}{match[3][len(value) :]}"
    if not rest and (wordy(scheme) or scheme.startswith("AWS4-")):
        return match[0]
    secret = rest if rest and scheme.isalpha() else value
    # Prose goes on in words: "Authorization: the header that ..."
    if (
        is_reference(secret)
        or already_redacted(value)
        or (wordy(secret) and scheme.lower() not in ("bearer", "basic"))
    ):
        return match[0]
    head = value[: len(value) - len(secret)]
    return f"{match[1]}{match[2]}{head}{replace('authorization', secret)}{match[3][len(value) :]}"


def _inside_placeholder(text: str, at: int) -> bool:
    opened = text.rfind("<redacted:", max(0, at - 40), at)
    return opened >= 0 and text.find(">", opened, at) < 0


def _assignment(match: Match[str], replace: Replace) -> str:
    name = name_before(match.string, match.end(1))
    kind = secret_name(name)
    if kind is None:
        return _query_key(name, match, replace)
    group = "quoted" if match["quoted"] else "bare" if match["bare"] else "torn"
    value = match[group]
    start, stop = match.span(group)
    before_name = match.string[max(0, match.start(1) - NAME) : match.start(1)]
    query = match[2] == "=" and ("?" in before_name or "&" in before_name)
    if kind in ("authorization", "cookie"):
        scheme, _, rest = value.partition(" ")
        if rest and scheme.isalpha():
            start, value = stop - len(rest), rest
        ok = (
            len(value) >= 8
            and not is_reference(value)
            and not already_redacted(match[group])
            and not wordy(value)
        )
    elif query and group == "bare":
        ok = len(value) >= 4 and not is_reference(value)
    else:
        after = match.string[stop : stop + 1]
        assign = match[2].strip("\\\"'`") if group != "bare" else match[2]
        ok = _plausible(kind, value, quoted=group != "bare", assign=assign, after=after)
    if not ok:
        return match[0]
    whole = match[0]
    return whole[: start - match.start()] + replace(kind, value) + whole[stop - match.start() :]


def _query_key(name: str, match: Match[str], replace: Replace) -> str:
    """``key`` in the query of a URL is a secret if it looks like one."""
    before = match.string[max(0, match.end(1) - len(name) - 6) : match.end(1) - len(name)]
    key = match["bare"]
    if name.lower() != "key" or match[2] != "=" or not key or not before.endswith(("?", "&", "\\u0026")):
        return match[0]
    if len(key) < 16 or wordy(key) or _is_no_secret(key):
        return match[0]
    return match[1] + match[2] + replace("api-key", key)


def _sshpass(match: Match[str], replace: Replace) -> str:
    value = match["quoted"] or match["bare"]
    before = match.string[max(0, match.start() - 3) : match.start()]
    if before.lower() != "ssh" or _is_no_secret(value):
        return match[0]
    return _with_value(match, replace("password", value))


def _with_value(match: Match[str], new: str) -> str:
    """Return what matched with another value."""
    start, stop = match.span("quoted" if match["quoted"] else "bare")
    return match[0][: start - match.start()] + new + match[0][stop - match.start() :]


def _netrc(match: Match[str], replace: Replace) -> str:
    """``machine HOST login USER password SECRET``, in one line or in several."""
    before = match.string[max(0, match.start() - NETRC) : match.start()].lower()
    words = _BREAKS.sub(" ", before).split()
    if words[-2:-1] == ["login"]:
        words = words[:-2] if words[-3:-2] != ["default"] else ["machine", "default"]
    if words[-2:-1] != ["machine"] or _is_no_secret(match[3]):
        return match[0]
    return match[1] + match[2] + replace("password", match[3])


def _flag(match: Match[str], replace: Replace) -> str:
    name = name_before(match.string, match.end(1))
    kind = secret_name(name)
    value = match["quoted"] or match["bare"]
    if kind is None or name[0] != "-" or not plausible_flag(kind, value):
        return match[0]
    return _with_value(match, replace(kind, value))


def _element(match: Match[str], replace: Replace) -> str:
    kind = secret_name(name_before(match.string, match.end(1)))
    value = match[3].strip()
    if kind is None or not value or not plausible_leaf(kind, value):
        return match[0]
    return match[1] + match[2] + match[3].replace(value, replace(kind, value), 1)


_RULES = (
    (_HEADER, _header),
    (_ASSIGNMENT, _assignment),
    (_FLAG, _flag),
    (_ELEMENT, _element),
    (_SSHPASS, _sshpass),
    (_NETRC, _netrc),
)
_KEY_WORDS = tuple((stem.encode(), tuple(end.encode() for end in ends)) for stem, ends in KEY_WORDS)
_FOLLOWS = frozenset(bytes([byte]) for byte in FOLLOWS)


# Tokens that are known by their shape, wherever they stand, and tokens announced by ``Bearer``.
#
# Looked for only where a token can begin, so that a long text costs one pass; whatever matches has 20 token
# characters in a row, by which the prefilter finds it.

_KINDS = [row[0] for row in (*TOKENS, *FIRST_TOKENS)]


def _pattern(rows: tuple[tuple[str, str, str, str, str], ...]) -> re.Pattern[str]:
    each = []
    for number, (_, starts, letters, times, end) in enumerate(rows):
        either = "|".join(map(re.escape, starts.split()))
        either = either.replace(":", r"(?<=\d:)")  # stands before the run
        each.append(f"(?P<s{number}>(?:{either}){letters}{times}{end})")
    return re.compile("|".join(each))


_INNER = _pattern(TOKENS)
_OUTER = _pattern((*TOKENS, *FIRST_TOKENS))
_WORDS = frozenset(word.decode() for word in WORDS)
_HEADS = tuple(head.decode().lstrip(":") for head in HEADS)
_STEM_ENDS = frozenset(stem[-1] for stem in STEMS)
_SEPARATOR = re.compile("[_-]")
_ANNOUNCED = re.compile("[A-Za-z0-9_.~+/=-]++")


def shape_of(value: str) -> str | None:
    """Return the kind of a value that as a whole is a token of a known shape."""
    match = _OUTER.fullmatch(value)
    return None if match is None else _kind(match)


def _kind(match: Match[str]) -> str | None:
    kind = _KINDS[int((match.lastgroup or "s0")[1:])]
    if kind in ("secret-key", "vendor-key") and not any(c.isdigit() or c.isupper() for c in match[0]):
        return None  # a kebab-case name
    return kind


def _clean_shapes(text: str, replace: Replace) -> str:
    """Return the text with all tokens of known shape, and announced ones, replaced."""
    out, done = [], 0
    mask = b" " + _ascii(text).translate(MASK) + b" "
    begins, at = [], mask.rfind(RUN_START)
    while at >= 0:
        begins.append(at)
        at = mask.rfind(RUN_START, 0, at)
    for begin in reversed(begins):
        if begin < done:
            continue
        for start, stop, kind in _tokens(text, begin, mask.index(b" ", begin + RUN) - 1):
            out += [text[done:start], replace(kind, text[start:stop])]
            done = stop
    return "".join([*out, text[done:]]) if out else text


def _tokens(text: str, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Yield the secrets in and around one run of token characters."""
    last = text[start - 1 : start] if start else ""
    before = text[max(0, start - 7) : start].lower() if last == " " else ""
    for scheme in SCHEMES:
        if before.endswith(scheme + " "):
            whole = _ANNOUNCED.match(text, start)
            assert whole is not None
            mixed = any(c.isupper() for c in whole[0])
            if not wordy(whole[0]) and (mixed or scheme == "bearer"):
                yield start, whole.end(), scheme
                return
    for stem in STEMS if last in _STEM_ENDS else ():
        if text.startswith(stem, start - len(stem)) and start >= len(stem):
            match = _INNER.match(text, start - len(stem))
            if match is not None and _begins(text, match.start()):
                yield match.start(), match.end(), _kind(match) or stem
                return
    if last != "\\" and not _may_hold_token(text[start:stop]):
        return
    at = start
    while at < stop:
        match = (_OUTER if at == start or _after_escape(text, at) else _INNER).match(text, at)
        if match is None and at == start and start and text[start - 1] == "\\":
            # The run begins with an escape, "\n" or "\u00e9", and only then the token.
            match = _OUTER.match(text, start + (5 if text[start] == "u" else 1))
        if match is not None:
            kind = _kind(match)
            if kind is not None:
                yield match.start(), match.end(), kind
            at = match.end()
        separator = _SEPARATOR.search(text, at, stop)
        if separator is None:
            return
        at = separator.end()


def _may_hold_token(run: str) -> bool:
    """False for nearly all runs, which are long names and numbers: no word in it begins a token."""
    return run.startswith(_HEADS) or not _WORDS.isdisjoint(run.replace("_", "-").split("-"))


def _after_escape(text: str, at: int) -> bool:
    return at >= 2 and text[at - 2] == "\\" and text[at - 1] in "nrtbf"


def _begins(text: str, at: int) -> bool:
    before = text[at - 1 : at]
    if not (before.isalnum() and before.isascii()):
        return True
    return _after_escape(text, at) or (at >= 6 and text[at - 6 : at - 4] == "\\u")
