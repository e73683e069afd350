"""Values and messages as short digests: equal digests are equal content, whatever ids or forms carry it.

Works on values as they are stored. A long text kept beside the file is known by its digest. What was cut,
redacted or not recorded is noted, since two such values may be equal or not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b, sha256
from typing import Any, NamedTuple

from ..tracefile.events.event import ErrorText
from ..wire.equality_rules import PLACEHOLDER, without_addresses
from ..wire.json_values import canonical, mapping
from ..wire.messages import message_parts, role_of
from ..wire.neutral import Image, Other, Part, Reasoning, Text, ToolResult, ToolUse
from .masks import Masks

_LONG = 4096
"""A longer text counts by its SHA-256, by which the recorder names it where it stands beside the file."""

_MAX_DEPTH = 120

CUT, REDACTED, WITHHELD = "cut", "redacted", "not recorded"

_FRAME = re.compile(r'File "[^"\n]*", line \d+|\b[\w./\\-]+\.py:\d+')
_TRACEBACK = "Traceback (most recent call last)"

Digest = bytes


def digest(value: Any) -> Digest:
    """Return a digest of a comparable value."""
    text = value if type(value) is str else "\0" + canonical(value)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Comparable:
    """Makes stored values comparable, and notes what is lost in them."""

    def __init__(self, masks: Masks) -> None:
        self.masks = masks
        self.lost: set[str] = set()
        """Why the values since ``taken`` may hide a difference."""
        self._is_plain = False
        """True if the line at hand has nothing in it that a walk through its values would change."""

    def line(self, line: bytes | None) -> None:
        """Take in the line that the next values stand in, if it is at hand."""
        self._is_plain = (
            line is not None
            and len(line) <= _LONG
            and b'"$' not in line
            and b"<redacted:" not in line
            and b"Traceback" not in line
            and not self.masks.has_patterns
        )

    def taken(self) -> frozenset[str]:
        """Return why the values so far may hide a difference, and begin anew."""
        found = frozenset(self.lost)
        if found:
            self.lost.clear()
        return found

    def value(self, value: Any, depth: int = 0) -> Any:
        """Return a value without our marks, addresses, source lines and what patterns match."""
        if self._is_plain:
            return value
        kind = type(value)
        if kind is str:
            return self._text(value)
        if kind is list and depth < _MAX_DEPTH:
            return [self.value(item, depth + 1) for item in value]
        if kind is dict and depth < _MAX_DEPTH:
            if any(key[:1] == "$" for key in value):
                marked = self._marked(value)
                if marked is not None:
                    return marked
            return {key: self.value(item, depth + 1) for key, item in value.items()}
        return value

    def _marked(self, value: dict[str, Any]) -> Any:
        """Return what stands for a value that the recorder replaced; None if it replaced nothing."""
        reference = value.get("$blob")
        if type(reference) is str and "form" not in value:
            return reference
        if "$hash" in value:
            return str(value["$hash"])
        if "$none" in value:
            self.lost.add(WITHHELD)
            return f"<{WITHHELD}: {value.get('bytes')} bytes>"
        if "$cut" in value:
            self.lost.add(CUT)
        elif "$repr" in value:
            return without_addresses(value)
        return None

    def _text(self, text: str) -> str:
        if "<redacted:" in text:
            self.lost.add(REDACTED)
            text = PLACEHOLDER.sub(r"<redacted:\1>", text)
        if _TRACEBACK in text:
            text = _FRAME.sub("File", text)
        if self.masks.has_patterns:
            text = self.masks.text(text)
        if len(text) > _LONG:
            return "sha256:" + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return text

    def error(self, error: ErrorText) -> Digest:
        """Return a digest of type and message; frames do not count."""
        return digest([error.type, self._text(_FRAME.sub("File", str(error)))])

    def of(self, value: Any, kind: str, name: str, part: str) -> Digest:
        """Return a digest of a part of a step without what its masks name."""
        if self.masks.paths(kind, name, part):
            value = self.masks.masked(value, kind, name, part)
        return digest(self.value(value))


class Piece(NamedTuple):
    """One thing in a prompt: what somebody wrote, or the result of a tool."""

    role: str
    """``system user assistant tool``."""
    digest: Digest
    tool: str | None = None
    """Of a result: the id of the tool use, else the name of the tool."""


class ResponseWords(NamedTuple):
    """The parts of a message of the model."""

    text: Digest | None
    uses: tuple[tuple[str, Digest], ...]
    """Name and arguments, sorted: the order of calls made at once does not count."""
    reasoning: Digest | None


def pieces_of(message: Any, comparable: Comparable) -> list[Piece]:
    """Return what a message of any provider consists of."""
    message = comparable.value(message)
    role = role_of(message)
    content = mapping(message).get("content")
    if type(content) is str and len(message) == 2 and role in ("user", "system"):
        return [Piece(role, digest(content))]  # by far the most frequent form
    parts = list(message_parts(message))
    results = [_result(part) for part in parts if isinstance(part, ToolResult)]
    rest = [part for part in parts if not isinstance(part, ToolResult)]
    if role == "assistant":
        return [Piece(role, digest_of_words(words_of(rest))), *results]
    own = [part for part in map(_plain_part, rest) if part]
    role = "system" if role == "system" else "user"
    return [*([Piece(role, digest(own[0] if len(own) == 1 else own))] if own else []), *results]


def words_of(parts: Iterable[Part]) -> ResponseWords:
    """Return what the model wrote and which tools it requested."""
    texts, reasoning, uses = [], [], []
    for part in parts:
        if isinstance(part, ToolUse):
            uses.append((part.name, digest(part.args)))
        elif isinstance(part, Reasoning):
            reasoning.append(part.text)
        elif (found := _plain_part(part)) is not None:
            texts.append(found)
    return ResponseWords(
        digest("".join(map(str, texts)).strip()) if any(texts) else None,
        tuple(sorted(uses)),
        digest("".join(reasoning)) if any(reasoning) else None,
    )


def digest_of_words(found: ResponseWords) -> Digest:
    """Return one digest for what a message of the model does; its thoughts are left out."""
    return digest([str(found.text), [[name, args.hex()] for name, args in found.uses]])


def _plain_part(part: Part) -> Any:
    if isinstance(part, Text):
        return part.text or None
    if isinstance(part, Image):
        return ["image", part.url or digest(part.data or "").hex()]
    return [part.what, part.text] if isinstance(part, Other) else None


def _result(part: ToolResult) -> Piece:
    value = part.value
    if type(value) is list and all(type(item) is dict and type(item.get("text")) is str for item in value):
        value = "\n".join(item["text"] for item in value)
    return Piece("tool", digest(["failed", value] if part.failed else value), part.id or part.name)
