"""Tokens that are known by their shape, wherever they stand, and tokens announced by ``Bearer``.

Used by the rules of redaction, loaded with them. Looks only where a token can begin, so that a long text
costs one pass; whatever matches has 20 token characters in a row, by which the prefilter finds it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from re import Match

from .environment import wordy

_T = "[A-Za-z0-9_-]"
_SHAPES = (  # kind, pattern
    ("anthropic-key", rf"sk-ant-{_T}{{13,}}+"),
    ("openrouter-key", rf"sk-or-{_T}{{14,}}+"),
    ("openai-key", rf"sk-(?:proj|svcacct|admin|None)-{_T}{{12,}}+"),
    ("secret-key", rf"sk-{_T}{{17,}}+"),
    ("stripe-key", rf"(?:[sr]k_(?:live|test)_{_T}{{12,}}+|whsec_{_T}{{14,}}+)"),
    ("github-token", rf"(?:gh[pousr]_{_T}{{16,}}+|github_pat_{_T}{{12,}}+)"),
    ("gitlab-token", rf"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-{_T}{{15,}}+"),
    ("slack-token", rf"(?:xox[a-eoprs]-{_T}{{15,}}+|xapp-{_T}{{15,}}+)"),
    ("huggingface-token", r"hf_[A-Za-z0-9]{17,}+"),
    ("npm-token", r"npm_[A-Za-z0-9]{30,}+"),
    ("pypi-token", rf"pypi-{_T}{{30,}}+"),
    ("groq-key", r"gsk_[A-Za-z0-9]{16,}+"),
    ("xai-key", r"xai-[A-Za-z0-9]{16,}+"),
    ("vendor-key", rf"(?:pplx-|tvly-|nvapi-|lsv2_|shpat_|shpss_|figd_|ntn_|dop_v1_|r8_){_T}{{20,}}+"),
    ("sendgrid-key", rf"SG\.{_T}{{20,}}+\.{_T}{{16,}}+"),
    ("google-token", rf"ya29\.{_T}{{20,}}+"),
    ("vault-token", rf"hvs\.{_T}{{20,}}+"),
)
# Letters that a random id may well contain: only at the very beginning of a run.
_FIRST_SHAPES = (
    ("aws-key-id", rf"A[KS]IA[A-Z0-9]{{16}}(?!{_T})"),
    ("google-key", rf"AIza{_T}{{30,}}+"),
    ("jwt", rf"eyJ{_T}{{17,}}+\.{_T}{{8,}}+\.{_T}*+"),
)
_KINDS = [kind for kind, _ in (*_SHAPES, *_FIRST_SHAPES)]


def _any_of(shapes: tuple[tuple[str, str], ...], first: int) -> str:
    return "|".join(f"(?P<s{number}>{pattern})" for number, (_, pattern) in enumerate(shapes, first))


_INNER = re.compile(_any_of(_SHAPES, 0))
_OUTER = re.compile(_any_of((*_SHAPES, *_FIRST_SHAPES), 0))
_RUN = re.compile(_T + "{20,}+")
_SEPARATOR = re.compile("[_-]")
_ANNOUNCED = re.compile("[A-Za-z0-9_.~+/=-]++")
_STEMS = ("SG.", "ya29.", "hvs.")


def shape_of(value: str) -> str | None:
    """Return the kind of a value that as a whole is a token of a known shape."""
    match = _OUTER.fullmatch(value)
    return None if match is None else _kind(match)


def _kind(match: Match[str]) -> str | None:
    kind = _KINDS[int((match.lastgroup or "s0")[1:])]
    if kind == "secret-key" and not any(c.isdigit() or c.isupper() for c in match[0]):
        return None  # a kebab-case name
    return kind


def clean_shapes(text: str, replace: Callable[[str, str], str]) -> str:
    """Return the text with all tokens of known shape, and announced ones, replaced."""
    out, done = [], 0
    for run in _RUN.finditer(text):
        if run.start() < done:
            continue
        for start, stop, kind in _tokens(text, run.start(), run.end()):
            out += [text[done:start], replace(kind, text[start:stop])]
            done = stop
    return "".join([*out, text[done:]]) if out else text


def _tokens(text: str, start: int, stop: int) -> Iterator[tuple[int, int, str]]:
    """Yield the secrets in and around one run of token characters."""
    before = text[max(0, start - 7) : start].lower()
    for scheme in ("bearer", "basic"):
        if before.endswith(scheme + " "):
            whole = _ANNOUNCED.match(text, start)
            assert whole is not None
            mixed = any(c.isupper() for c in whole[0])
            if not wordy(whole[0]) and (mixed or scheme == "bearer"):
                yield start, whole.end(), scheme
                return
    for stem in _STEMS:
        if text.startswith(stem, start - len(stem)) and start >= len(stem):
            match = _INNER.match(text, start - len(stem))
            if match is not None and _begins(text, match.start()):
                yield match.start(), match.end(), _kind(match) or stem
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


def _after_escape(text: str, at: int) -> bool:
    return at >= 2 and text[at - 2] == "\\" and text[at - 1] in "nrtbf"


def _begins(text: str, at: int) -> bool:
    before = text[at - 1 : at]
    if not (before.isalnum() and before.isascii()):
        return True
    return _after_escape(text, at) or (at >= 6 and text[at - 6 : at - 4] == "\\u")
