"""Secrets leave before bytes exist: the one place where values of an event are redacted.

One Redactor per writer, used by everything that writes; ``clean`` is the one way in. Equal secrets get equal
placeholders ``<redacted:kind:n>``; the secrets themselves are not kept, ids of providers and signed blocks
not touched.
"""

from __future__ import annotations

import os

from ...lines import quote
from .. import replay_hook
from ..import_lock import import_lock
from .environment import MIN_LENGTH, secrets_of
from .names import NAME, secret_name
from .prefilter import scan
from .table import USER_FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType
    from typing import Any

    from .environment import EnvSecrets

_ID_KEYS = frozenset(
    "id tool_use_id tool_call_id call_id response_id previous_response_id request_id message_id item_id "
    "toolUseId tool_id run_id thread_id session_id trace_id span_id parent_id uuid parentUuid sessionId "
    "responseId requestId traceId spanId observation_id system_fingerprint".split()
)
_SCHEMA_KEYS = frozenset(
    "input_schema parameters inputSchema schema json_schema parametersJsonSchema parameters_json_schema "
    "responseSchema responseJsonSchema outputSchema output_schema args_schema".split()
)
_SCHEMA_MARKS = ("properties", "$schema", "$ref", "anyOf", "oneOf", "allOf", "additionalProperties")
_NAME_KEYS = ("name", "key", "header")
MAX_PLACEHOLDERS = 100_000
"""Different secrets remembered by a writer; a server may see a new token with every request."""
_SEALED_KEYS = frozenset(("signature", "encrypted_content", "thoughtSignature", "thought_signature"))


class Redactor:
    """Replaces secrets in plain JSON values and remembers which placeholder stands for which."""

    policy = "default-2"

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self.counts: dict[str, int] = {}
        """Replaced occurrences per kind."""
        self.unredacted_signed = 0
        """Secrets seen inside signed blocks and left there."""
        self._environ = os.environ if environ is None else environ
        self._held = getattr(self._environ, "_data", self._environ)
        """What os.environ holds inside, which is counted at once in C."""
        self._variables = len(self._held)
        self._env = secrets_of(self._environ)
        self._key = b""
        self.placeholders: dict[bytes, str] = {}
        self.numbers: dict[str, Iterator[int]] = {}
        self._witness: Redactor | None = None

    @property
    def total(self) -> int:
        """How many occurrences were replaced."""
        return sum(list(self.counts.values()))

    def looks_for(self) -> EnvSecrets | None:
        """Return the secrets of the environment, those of a ``.env`` that was read meanwhile, too."""
        if len(self._held) != self._variables:
            self._variables = len(self._held)
            self._env = secrets_of(self._environ)
        return self._env

    def may_hold(self, text: str | bytes) -> bool:
        """False if there is certainly nothing to redact in compact ASCII JSON, or in the bytes of any text.

        Cheap: for a caller that has a whole line or a piece of a stream, before its values are looked at.
        """
        if isinstance(text, str):
            data = text.encode("ascii", "replace")
        elif not text.isascii() or text.rfind(b"\t") >= 0:  # the prefilter knows both by their escapes alone
            return True
        else:
            data = b'"%b"' % text
        return scan(data, self.looks_for())

    def clean(self, value: Any, name: str | None = None) -> Any:
        """Return a plain JSON value, a text or the bytes of a text without secrets: itself if it has none.

        ``name`` is the key it stands under, which may announce a secret.
        """
        self.looks_for()
        try:
            if type(value) is bytes:
                return self._bytes(value)
            if name is None:
                return self._walk(value, schema=False)
            return self._member(name, value, secret_name(name), schema=False)
        except RecursionError:  # what cannot be looked at is not written
            return {"$cut": "redact"}

    @property
    def witness(self) -> Redactor:
        """A second redactor of the same secrets that only looks: what it replaces is counted nowhere."""
        if self._witness is None:
            self._witness = Redactor({})
        self._witness._env = self.looks_for()
        return self._witness

    def _text(self, text: str) -> str:
        if not scan(quote(text).encode("ascii"), self._env):
            return text
        new = text
        if self._env is not None:
            for spelling, value in self._env.spellings:
                if spelling in new:
                    new = new.replace(spelling, self._replace("env-value", value, new.count(spelling)))
        new = _rules().clean_text(new, self._replace)
        return text if new == text else new

    def _bytes(self, data: bytes) -> bytes:
        if not self.may_hold(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        new = self._text(text)
        return data if new is text else new.encode("utf-8", "surrogateescape")

    def _replace(self, kind: str, secret: str, times: int = 1) -> str:
        with import_lock:
            from itertools import count

            try:
                from _blake2 import blake2b
            except ImportError:
                from hashlib import blake2b
        if not self._key:
            self._key = os.urandom(16)
        digest = blake2b(secret.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key).digest()
        placeholder = self.placeholders.get(digest)
        if placeholder is None:
            kind = _rules().shape_of(secret) or kind
            first = 1 if replay_hook.responder is None else replay_hook.FIRST_SECRET
            number = next(self.numbers.setdefault(kind, count(first)))  # atomic: two threads never share one
            placeholder = self.placeholders.setdefault(digest, f"<redacted:{kind}:{number}>")
            if len(self.placeholders) > MAX_PLACEHOLDERS:
                self.placeholders = {digest: placeholder}
        kind = placeholder.split(":", 2)[1]
        self.counts[kind] = self.counts.get(kind, 0) + times
        return placeholder

    def _walk(self, value: Any, *, schema: bool) -> Any:
        if type(value) is str:
            return self._text(value) if len(value) >= 8 else value
        if type(value) is dict:
            return self._dict(value, schema)
        if type(value) is list:
            if not schema and len(value) > 0 and all(_is_pair(item) for item in value):
                return _same(value, [self._pair(item) for item in value])
            if not schema and any(type(item) is str and item[:1] == "-" for item in value):
                return _same(value, self._arguments(value))
            return _same(value, [self._walk(item, schema=schema) for item in value])
        return value

    def _dict(self, holder: dict[str, Any], schema: bool) -> Any:
        if "$bytes" in holder:
            return self._encoded_bytes(holder)
        sealed = _sealed_text(holder)
        named = None if schema else _named_value(holder)
        out, changed = {}, False
        for key, value in holder.items():
            if key == sealed:
                new = self._sealed(value)
            else:
                kind = None
                if not schema:
                    kind = secret_name(key) if named is None or key != "value" else named
                    if kind == "token" and _is_text_token(holder):
                        kind = None
                new = self._member(key, value, kind, schema)
            new_key = self._text(key) if len(key) >= MIN_LENGTH else key
            changed = changed or new is not value or new_key is not key
            out[new_key] = new
        return out if changed else holder

    def _member(self, key: str, value: Any, kind: str | None, schema: bool) -> Any:
        """Clean what stands under a key, which announces a secret of a ``kind`` or none."""
        if key in _SEALED_KEYS:
            return self._sealed(value)
        if key in _ID_KEYS:
            return self._id(value)
        if kind is not None:
            return self._under_secret_key(kind, value)
        return self._walk(value, schema=schema or (key in _SCHEMA_KEYS and _is_schema(value)))

    def _under_secret_key(self, kind: str, value: Any) -> Any:
        if type(value) is str:
            return self._leaf(kind, value)
        if type(value) is list:
            return _same(value, [self._under_secret_key(kind, item) for item in value])
        if type(value) is dict:
            for mark in ("$bytes", "$repr"):  # what was no text before it was made plain
                if type(value.get(mark)) is str:
                    return {**value, mark: self._leaf(kind, value[mark])}
        return self._walk(value, schema=False)

    def _encoded_bytes(self, mark: dict[str, Any]) -> dict[str, Any]:
        """Bytes that are text may hold what any text may: headers of ASGI for instance."""
        with import_lock:
            from binascii import a2b_base64, b2a_base64

        try:
            text = a2b_base64(mark["$bytes"]).decode("utf-8")
        except (ValueError, TypeError):  # a trace that is checked may hold anything there
            return mark
        new = self._text(text)
        if new is text:
            return mark
        data = new.encode("utf-8", "surrogatepass")
        return {**mark, "$bytes": b2a_base64(data, newline=False).decode("ascii"), "bytes": len(data)}

    def _leaf(self, kind: str, value: str) -> str:
        rules = _rules()
        if not rules.plausible_leaf(kind, value):
            return self._text(value)
        scheme, _, rest = value.partition(" ")
        if kind == "authorization" and rest and scheme.isalpha():
            return value if rules.already_redacted(rest) else f"{scheme} {self._replace(kind, rest)}"
        return self._replace(kind, value)

    def _pair(self, pair: list[str]) -> Any:
        kind = secret_name(pair[0])
        second = self._leaf(kind, pair[1]) if kind is not None else self._text(pair[1])
        return _same(pair, [self._text(pair[0]), second])

    def _arguments(self, words: list[Any]) -> list[Any]:
        """Clean the words of a command: the flag before a word may announce that it is a secret."""
        out: list[Any] = []
        for number, word in enumerate(words):
            before = words[number - 1] if number else None
            if type(word) is str and type(before) is str and before[:1] == "-":
                out.append(self._argument(words[:number], before, word))
            else:
                out.append(self._walk(word, schema=False))
        return out

    def _argument(self, words: list[Any], flag: str, word: str) -> str:
        if flag == "-p" and _is_program(words[-2:-1], "sshpass"):
            return self._leaf("password", word)
        if flag in USER_FLAGS and _is_program(words, "curl"):
            user, colon, password = word.partition(":")
            return f"{user}:{self._leaf('password', password)}" if colon else word
        kind = secret_name(flag) if len(flag) <= NAME and flag.replace("-", "").isidentifier() else None
        if kind is not None and _rules().plausible_flag(kind, word):
            return self._replace(kind, word)
        return self._text(word) if len(word) >= 8 else word

    def _id(self, value: Any) -> Any:
        """An id stays as it is, unless it is an API key, a URL or made of a secret of the environment."""
        if type(value) is not str:
            return self._walk(value, schema=False)
        if len(value) < MIN_LENGTH or not self.may_hold(quote(value)):
            return value
        kind = _rules().shape_of(value)
        if kind is not None and kind != "jwt":
            return self._replace(kind, value)
        if "://" in value or (
            self._env is not None and any(each in value for each, _ in self._env.spellings)
        ):
            return self._text(value)
        return value

    def _sealed(self, value: Any) -> Any:
        """A signed text would be refused by its provider if it changed: keep it and count what is in it."""
        if type(value) is str and self.may_hold(quote(value)):
            witness = self.witness
            before = witness.total
            witness.clean(value)
            self.unredacted_signed += witness.total - before
        return value


def _rules() -> ModuleType:
    """Return the rules, loaded when something is suspicious for the first time: they need ``re``."""
    with import_lock:
        from . import rules

    return rules


def _same(before: list[Any], new: list[Any]) -> list[Any]:
    """Return the list from before if no element was replaced."""
    for old, item in zip(before, new, strict=True):
        if old is not item:
            return new
    return before


def _is_schema(value: object) -> bool:
    return type(value) is dict and any(mark in value for mark in _SCHEMA_MARKS)


def _is_pair(value: object) -> bool:
    return type(value) is list and len(value) == 2 and type(value[0]) is str and type(value[1]) is str


def _is_program(words: list[Any], name: str) -> bool:
    """True if one of these words is a program of this name."""
    return any(type(word) is str and word.rpartition("/")[2] == name for word in words)


def _is_text_token(holder: dict[str, Any]) -> bool:
    """True for the entries of ``logprobs``, whose token is a piece of the answer."""
    return "logprob" in holder or "top_logprobs" in holder or "bytes" in holder or "score" in holder


def _named_value(holder: dict[str, Any]) -> str | None:
    """Return the kind of secret in ``{"name": "X-Api-Key", "value": ...}``."""
    if "value" in holder:
        for key in _NAME_KEYS:
            name = holder.get(key)
            if type(name) is str:
                return secret_name(name) if len(name) <= 64 else None
    return None


def _sealed_text(block: dict[str, Any]) -> str | None:
    """Return the key of the text that a signature in the same block covers."""
    if block.get("type") == "redacted_thinking":
        return "data"
    if "thinking" in block and "signature" in block:
        return "thinking"
    if "redactedContent" in block:
        return "redactedContent"
    if "text" in block and (
        "signature" in block or (block.get("thought") is True and "thoughtSignature" in block)
    ):
        return "text"
    return None
