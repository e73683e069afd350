"""What a summary, or a shortened conversation, no longer says: conditions first, then other statements.

By words, clause by clause: a condition ("nothing with peanuts") is kept if a clause of the new prompt has a
condition, too, and one of its words. Who rewrites a text in other words may be accused wrongly, so the
confidence is not high.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CLAUSE = re.compile(r"[^.;:!?\n]+")
_PART = re.compile(r"[^.;:!?\n,]+")
_WORD = re.compile(r"[^\W_]+")
_CONDITION = re.compile(
    r"\b(?:no|not|never|nothing|none|nobody|neither|nor|without|except|only|must|mustn|cannot|can't|don't|"
    r"do not|won't|avoid|exclude|excluding|allerg\w+|at most|at least|maximum|minimum|max|min|limit\w*|"
    r"budget|before|after|until|under|over|below|above|less than|more than|always|required|mandatory|"
    r"forbidden|free of|prefer\w*|instead)\b",
    re.IGNORECASE,
)
_COMMON = frozenset(
    "about after also and any are because been before both but can could did does dont each for "
    "from get had has have her here him his how into its just keep like make may more most much "
    "must need not now off one only other our out over please plan same she should some such take "
    "than that the their them then there these they this those to too until use was way week were "
    "what when where which while who will with without would you your".split()
)
_MOST_TEXT = 200_000


def dropped_clauses(texts: Iterable[str], now: str) -> tuple[list[str], list[str]]:
    """Return the conditions, and the other statements, of some texts that a prompt no longer has.

    >>> dropped_clauses(["80 portions, nothing with peanuts."], "80 portions; tofu with peanut sauce")
    ([' nothing with peanuts'], [])
    """
    now = now[:_MOST_TEXT].lower()
    conditions = [_stems(clause) for clause in _CLAUSE.findall(now) if _CONDITION.search(clause)]
    known = _stems(now)
    lost: tuple[list[str], list[str]] = [], []
    for text in texts:
        for part in _PART.findall(text[:_MOST_TEXT]):
            stems = _stems(part.lower())
            if not stems:
                continue
            if _CONDITION.search(part):
                is_kept = any(not stems.isdisjoint(clause) for clause in conditions)
                if not is_kept:
                    lost[0].append(part)
            elif len(stems - known) > len(stems) / 2:
                lost[1].append(part)
    return lost


def _stems(text: str) -> set[str]:
    """Return the words that say something, without their endings; numbers as they are."""
    words = [word for word in _WORD.findall(text) if word not in _COMMON and not _CONDITION.fullmatch(word)]
    return {
        word if word.isdigit() else word[:5].rstrip("s") for word in words if len(word) > 2 or word.isdigit()
    }
