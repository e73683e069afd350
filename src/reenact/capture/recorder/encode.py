"""The fields of an event as text: serialised, redacted, withheld by policy, long strings moved out.

Used by the recorder and by History; after this only numbering and writing remain.
"""

from __future__ import annotations

from ...lines import MAX_NODES, dumps, escape_key, field, quote
from ..import_lock import import_lock
from ..redact import content_policy
from .jsonable import jsonable, to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..redact.redactor import Redactor
    from .long_strings import Blobs

int_text, float_text = int.__repr__, float.__repr__
_EXACT = 2**63
CAP = 64 << 10
"""Bytes of a string that stay in the line; longer ones become blobs."""


class RawStream:
    """A response as it came: its bytes, and when each piece of them arrived."""

    __slots__ = ("chunks", "data", "is_decoded", "is_lossy")

    def __init__(self, data: bytes, chunks: str, *, is_decoded: bool, is_lossy: bool) -> None:
        self.data = data
        self.chunks = chunks
        """``[bytes, ms]`` of every piece, as JSON."""
        self.is_decoded = is_decoded
        """True if a content encoding was taken off."""
        self.is_lossy = is_lossy
        """True if more arrived than was kept."""


class Texts:
    """How one writer turns values into text."""

    def __init__(
        self, content: str, redactor: Redactor | None, blob_folder: str | None, fsync: bool = False
    ) -> None:
        self.configured_content = self.withheld = content
        self.redactor = redactor
        self.blob_folder = blob_folder
        """Where long strings go; None for a sink without a folder."""
        self.fsync = fsync
        self._blobs: Blobs | None = None
        self.always_full = content == "full"
        """False while the policy or an exceeded quota withholds content."""

    def content(self) -> str:
        """Return the content policy in force for this call."""
        return content_policy.effective("full" if self.always_full else self.withheld)

    def limit(self, over: bool) -> None:
        """Record metadata only while the quota is exceeded."""
        self.always_full = not over and self.configured_content == "full"
        self.withheld = "none" if over else self.configured_content

    def of(self, fields: dict[str, Any], cap: int, twice: bool) -> tuple[str, str, list[str] | None]:
        """Return the fields as text for the file, as text for listeners if ``twice``, and the names of fields
        without their secrets; None in place of the names if nothing was changed."""
        content = "full" if self.always_full and content_policy.private_block is None else self.content()
        if content == "full":
            # The hot path of every event: most fields are short texts under names seen before.
            parts: list[str] = []
            for name, value in fields.items():
                kind = type(value)
                if kind is str:
                    text = quote(value)
                elif value is None:
                    text = "null"
                elif kind is int and -_EXACT < value < _EXACT:
                    text = int_text(value)
                elif kind is float and -_EXACT < value < _EXACT:
                    text = float_text(value)
                else:
                    text = to_json(value)
                parts += _prefixes.get(name) or prefix(name), text
            text = "".join(parts)
            if self.redactor is None or not self.redactor.may_hold(text):
                if len(text) <= cap or not has_long_text(fields.values(), cap):
                    return text, text, None
        plain, redacted = {}, []
        for name, value in fields.items():
            clean = copy = self.withhold(name, jsonable(value), content)
            if self.redactor is not None:
                clean = self.redactor.clean(copy, name)
            if clean is not copy:
                redacted.append(name)
            plain[self.name(name)] = clean
        full = text = self.join(plain)
        if len(text) > cap:
            text = self.join(self.shorten(plain, cap))
            if twice:
                with import_lock:
                    from .long_strings import INLINE_MAX

                full = self.join(self.shorten(plain, INLINE_MAX, inline=True))
        return text, full, redacted

    def of_ours(self, fields: dict[str, Any]) -> tuple[str, str]:
        """Like ``of`` for a bookkeeping line: only the agent's input and messages are content."""
        content = self.content()
        if content == "full":
            text, full, _ = self.of(fields, CAP, True)
            return text, full
        plain = {
            name: self.clean(name, value, content if name in ("input", "error") else "full")
            for name, value in fields.items()
        }
        text = self.join(plain)
        return (text, text) if len(text) <= CAP else (self.join(self.shorten(plain, CAP)), text)

    def clean(self, name: str, value: Any, content: str, *, ours: bool = False) -> Any:
        """Return a plain copy of a value with secrets and withheld content taken out."""
        value = self.withhold(name, value if ours else jsonable(value), content)
        return value if self.redactor is None else self.redactor.clean(value, name)

    def name(self, name: str) -> str:
        """Return the name of a field or a kind without its secrets; a short one holds none."""
        return name if self.redactor is None or len(name) < 12 else self.redactor.clean(name)

    def withhold(self, name: str, plain: Any, content: str) -> Any:
        return plain if content == "full" else content_policy.withhold(name, plain, content)

    def shorten(self, plain: dict[str, Any], cap: int, *, inline: bool = False) -> dict[str, Any]:
        """Return the fields with long strings in blobs, or inline with only the longest cut."""
        with import_lock:
            from .long_strings import shorten

        short, lossy = shorten(plain, cap, None if inline or self.blob_folder is None else self.blobs())
        return {**short, "lossy": True} if lossy else short

    def blobs(self) -> Blobs:
        """Return the folder of long strings; only where there is one."""
        if self._blobs is None:
            with import_lock:
                from .long_strings import Blobs

            assert self.blob_folder is not None
            self._blobs = Blobs(self.blob_folder, self.fsync)
        return self._blobs

    def keep_stream(self, stream: RawStream, *, secret: bool) -> dict[str, Any] | None:
        """Store a stream; returns what stands for it in the line, None where content is not kept.

        One that holds a ``secret`` is not kept: it arrives a few letters at a time, which no rule can see in
        the bytes.
        """
        if self.blob_folder is None or self.content() != "full":
            return None
        if secret:
            return {"withheld": "secret"}
        data = stream.data if self.redactor is None else self.redactor.clean(stream.data)
        return self.blobs().put_stream(stream, data)

    def forget_blobs(self) -> None:
        """Store every long string again, whether or not it was stored before."""
        self._blobs = None

    @staticmethod
    def join(plain: dict[str, Any]) -> str:
        return "".join([prefix(name) + dumps(value) for name, value in plain.items()])


def has_long_text(values: Iterable[Any], cap: int) -> bool:
    """True if a string of more than ``cap`` bytes is in there, or something that takes a longer look."""
    waiting = list(values)
    for value in waiting:  # which grows meanwhile
        kind = type(value)
        if kind is str:
            if len(value) * 4 > cap and len(value.encode("utf-8", "surrogatepass")) > cap:
                return True
        elif kind is dict or kind is list:
            if len(waiting) > MAX_NODES:
                return True
            waiting += value.values() if kind is dict else value
        elif value is not None and kind not in _NUMBERS:
            return True
    return False


_NUMBERS = frozenset((int, float, bool))


_prefixes: dict[str, str] = {}


def prefix(name: str) -> str:
    """Return ``, "name": ``, remembered for the names that come up again and again."""
    text = _prefixes.get(name)
    if text is None:
        text = field(escape_key(name), "")
        if len(_prefixes) < 1_000:
            _prefixes[name] = text
    return text
