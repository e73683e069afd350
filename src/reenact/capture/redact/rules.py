"""The rules of redaction on one text: what counts as a secret in it and which part of it is replaced.

Loaded by the redactor only when the prefilter has found something, because it needs ``re``. Every pattern
is linear: bounded or possessive repeats, no nested ones. Whatever matches here, redact_scan announces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from re import Match

from .environment import wordy
from .names import NAME, SPACED_KEYS, last_identifier, secret_name
from .shapes import clean_shapes

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
_CURL_USER = re.compile(r"( -u [\"']?[^\s:\"'<>]{1,64}+:)([^\s\"'<>]{1,200}+)")

_KEYWORDS = ("token", "key", "secret", "passw", "passphrase", "authorization", "cookie")
_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_KEYWORD = r"(?i:token|key|secret|passw(?:or)?d|passphrase|authorization|cookie)"
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
    rf"((?i:token|key|secret|passw(?:or)?d|passphrase))( {{1,4}})(?:{_QUOTED}|(?P<bare>{_BARE}))"
)
_ELEMENT = re.compile(rf"({_KEYWORD})(>)([^<>\n]{{1,500}}+)(?=</)")

_PLAIN_VALUES = frozenset(
    "none null nil true false undefined str string int integer number bool boolean bytes object any text "
    "char required optional password passwd secret token key apikey basic bearer digest oauth oauth2 "
    "redacted hidden masked changeme example placeholder default empty invalid valid expired missing unknown "
    "value prompt".split()
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


def plausible_leaf(kind: str, value: str) -> bool:
    """True if the string under a secret JSON key is to be replaced."""
    if not value or is_reference(value) or already_redacted(value):
        return False
    if kind == "token":  # also the word for a piece of text
        return len(value) >= 8 and not any(c.isspace() for c in value)
    return True


def _plausible(kind: str, value: str, *, quoted: bool, assign: str, after: str) -> bool:
    """True if what is assigned in a text is a secret rather than prose or program code."""
    if is_reference(value) or already_redacted(value):
        return False
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
    text = _private_keys(text, replace)
    if "@" in text:
        text = _URL.sub(lambda match: _url(match, replace), text)
    if "&" in text:
        text = _SIGNATURE.sub(lambda match: _signature(match, replace), text)
    if " -u " in text and ("curl" in text or "http" in text):
        text = _CURL_USER.sub(lambda match: match[1] + replace("password", match[2]), text)
    return clean_shapes(_assignments(text, replace), replace)


def _private_keys(text: str, replace: Replace) -> str:
    if "PRIVATE KEY" not in text:
        return text
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
    low = text.lower() if text.isascii() else text.translate(_LOWER)
    places = []
    for word in _KEYWORDS:
        at = low.find(word)
        while at >= 0:
            places.append(at)
            at = low.find(word, at + 1)
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
    kind = secret_name(name_before(match.string, match.end(1)))
    if kind is None:
        return match[0]
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


def _flag(match: Match[str], replace: Replace) -> str:
    name = name_before(match.string, match.end(1))
    kind = secret_name(name)
    value = match["quoted"] or match["bare"]
    if kind is None or name[0] != "-" or value[0] == "-" or is_reference(value) or already_redacted(value):
        return match[0]
    if kind != "password" and (len(value) < 8 or wordy(value)):
        return match[0]
    return match[0].replace(value, replace(kind, value), 1)


def _element(match: Match[str], replace: Replace) -> str:
    kind = secret_name(name_before(match.string, match.end(1)))
    value = match[3].strip()
    if kind is None or not value or not plausible_leaf(kind, value):
        return match[0]
    return match[1] + match[2] + match[3].replace(value, replace(kind, value), 1)


_RULES = ((_HEADER, _header), (_ASSIGNMENT, _assignment), (_FLAG, _flag), (_ELEMENT, _element))
