"""What the provider is to answer, and what to do wrong while answering: words in the URL.

A client's base URL is `http://127.0.0.1:PORT/s/<words>`, so that no body, header or key differs because of it.
`/s/tools-3,drip-5` asks for a tool loop of three turns, its pieces 5 ms apart; `/s/text@7` is `/s/text` with
counters of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ANSWERS = {
    "text": "a short text (the default)",
    "long": "n words of text",
    "tools": "n turns that each ask for one tool, then a text",
    "parallel": "one turn that asks for n tools at once, then a text",
    "thinking": "a thinking block before the text",
    "cached": "a text whose usage tells of a cache",
    "unicode": "a text beyond ASCII",
    "empty": "no content at all",
    "json": "a text that is a JSON object",
    "length": "a text cut by the token limit",
    "sampled": "another text each time; seed n decides how late it comes, none within 20 ms of another",
    "plan": "the tools that the prompt's PLAN names, then a text (plan.py)",
}
FAULTS = {
    "status": "answer n with the provider's error body",
    "times": "the status only the first n times",
    "after": "a status asks to retry after n milliseconds (default 1)",
    "late": "the head comes n ms late",
    "silent": "never answer; wait until the client leaves",
    "drip": "n ms between pieces",
    "shred": "pieces of n bytes, whatever they cut through",
    "reset": "n pieces, then the connection is reset",
    "close": "n pieces, then the connection is closed in the middle of the body",
    "hang": "n pieces, then nothing until the client leaves",
    "endless": "the pieces before the last n, then the middle one again and again",
    "malformed": "piece n is garbage",
    "error": "n pieces, then the provider's in-band error and the end",
    "restart": "the first piece comes twice",
    "gzip": "a compressed body",
    "nousage": "no token counts",
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """The words of one base URL, each with its number."""

    path: str = ""
    words: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Scenario:
        words: dict[str, int | None] = {}
        for word in text.partition("@")[0].split(","):
            name, _, number = word.partition("-")
            if name not in ANSWERS and name not in FAULTS:
                raise ValueError(f"no scenario word {word!r}")
            words[name] = int(number) if number else None
        return cls(f"/s/{text}", words)

    def __contains__(self, word: str) -> bool:
        return word in self.words

    def number(self, word: str, default: int = 1) -> int | None:
        """The number of a word that was said; None for one that was not."""
        if word not in self.words:
            return None
        number = self.words[word]
        return default if number is None else number
