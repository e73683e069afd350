"""The prefilter's first look with RE2, if it is installed: one pass over the bytes for all that rules match.

Made of the same table as the prefilter and the rules. What it finds, the prefilter looks at again; what it
does not find, no rule replaces.
"""

from __future__ import annotations

from .. import guard
from .environment import RUN, TOKEN_BYTES
from .names import SECRET_KEYS
from .table import (
    FIRST_TOKENS,
    HASHES,
    KEY_BLOCKS,
    KEY_WORDS,
    SCHEMES,
    SIGNATURES,
    TOKENS,
    WEBHOOKS,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .environment import EnvSecrets

_TOKEN = f"[{TOKEN_BYTES.decode().replace('-', '')}-]"
_ESCAPE = rf"\\u{_TOKEN}{{4}}|\\{_TOKEN}"
"""An escape, of JSON or in a text, whose letters run into the word after it."""
_BEGIN = f"(?:^|[^A-Za-z0-9]|{_ESCAPE})"
_BETWEEN = f"(?:[^A-Za-z0-9]|{_ESCAPE})"
_QUOTES = r"[\\\"'`]"
_BLANK = r"(?: |\\t)*"


def first_look(env: EnvSecrets | None) -> Callable[[bytes], object] | None:
    """Return a search that finds nothing where no rule can match; None without RE2."""
    try:
        import re2

        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.never_capture = True
        options.log_errors = False
        literals = (*env.in_runs, *env.anywhere) if env is not None else ()
        search: Callable[[bytes], object] = re2.compile(_pattern(literals, re2.escape), options).search
        return search
    except Exception as exc:  # not installed, or another library of this name
        guard.pass_on(exc)
        return None


def _pattern(literals: Iterable[bytes], quoted: Callable[[bytes], bytes]) -> bytes:
    """Return the expression; ``literals`` are secrets of the environment."""
    either = [_tokens((*TOKENS, *FIRST_TOKENS), quoted), *_names(), *_phrases()]
    return b"|".join([*(each.encode("ascii") for each in either), *map(quoted, literals)])


def _tokens(rows: Iterable[tuple[str, ...]], quoted: Callable[[bytes], bytes]) -> str:
    each = []
    for _, starts, letters, times, _ in rows:
        least = times.strip("{}+,").partition(",")[0]
        # a colon stands before the run, after a digit
        words = "|".join(quoted(start.lstrip(":").encode()).decode() for start in starts.split())
        each.append(f"(?:{words}){letters}{{{least}}}")
    return f"{_BEGIN}(?:{'|'.join(each)})"


def _names() -> list[str]:
    """Return what matches a name that promises a secret together with what assigns it."""
    words = [stem + end for stem, ends in KEY_WORDS for end in ends if stem != "key"]
    words.append(f"(?:{'|'.join(sorted(SECRET_KEYS))}){_BETWEEN}*key")
    name = f"(?i:{'|'.join(words)})"
    operator = r"[:=](?:[:=> ]|\\t)*(?:[^\\:=> ]|\\[^nrt])"  # what is assigned stands in the same line
    assigned = rf"{_QUOTES}*{_BLANK}(?:{operator}|%[23]|\z)|\"[,}}]|>|\\u"
    return [
        f"{name}(?:{assigned})",
        rf"-{_TOKEN}*{name}(?: |{_QUOTES}+,)",
        r"(?i:[?&\\](?:u0026)?key=)",
        r"(?i:sshpass)",
        rf"(?i:(?:machine{_GAP}[^ ]+|default)(?:{_GAP}login{_GAP}[^ ]+)?(?:{_GAP})?password(?: |\\))",
        *KEY_BLOCKS,
    ]


_GAP = rf"(?: |{_ESCAPE}|{_QUOTES})+"


def _phrases() -> list[str]:
    signatures, webhooks = (
        "|".join(each.decode().replace(".", r"\.") for each in some) for some in (SIGNATURES, WEBHOOKS)
    )
    return [
        f"(?i:(?:{'|'.join(SCHEMES)}) {_TOKEN}{{{RUN}}})",
        r":(?:\\*/){2}[^ /\"'`<>]+@",
        f"(?i:[?&;][a-z-]*(?:{signatures}))",
        r"(?i:[?&]code=|code=[^& ]+&)",
        rf"(?i:(?:{webhooks})\\*/)",
        r"(?i:[ \"-]-u(?:ser)?[ \"])",
        rf"(?i:\$(?:{'|'.join(sorted(each.decode() for each in HASHES))})\$)",
        r"\{\"\$bytes\":",
    ]
