"""What a stream says, put together from its events: a secret said a few letters at a time is seen in it.

Used by the spill, for every few pieces of a stream. A word waits until it is over and has been looked at;
with the first secret nothing more is let through.
"""

from __future__ import annotations

import re

from .import_lock import import_lock
from .rawstream import cleaned_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .redact import Redactor

_TEXT = re.compile(
    rb'"(?:t(?:ext|hinking|ranscript|ool_plan)|c(?:ontent|ode)|d(?:elta|iff)|arguments|partial_json|input'
    rb'|re(?:asoning(?:_content|_text)?|fusal|sponse))": ?"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
)
"""Where the providers put what is said, as it stands in an event; names by their first letters, for speed."""
_PACKED = re.compile(rb'"bytes": ?"([A-Za-z0-9+/=]+)"')
"""Bedrock's invoke: an event inside an event, as base64."""
_PLAIN = bytes(byte if byte < 128 else 32 for byte in range(256))
"""A letter beyond ASCII ends a word as a space does; so does a backslash: a line feed, a quote."""
_BEFORE = 160
"""Bytes before a word that may say what it is: a name, a URL it ends."""
_LONGEST_WORD = 4_096


class Said:
    """The text of one stream so far: its end, and the events that say a word which is not over."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = b""
        self._word = 0
        """Bytes of the word that is not over."""
        self._waiting = bytearray()
        self.holds_secret = False

    def passes(self, block: bytes) -> bytes:
        """Take in whole events; returns what may be written, of these and those before, without secrets."""
        found = list(_TEXT.finditer(block))
        pieces = [piece[1] for piece in found]
        if b'"bytes":' in block:
            pieces += [piece for packed in _PACKED.findall(block) for piece in _unpacked(packed)]
        said = b"".join(pieces).translate(_PLAIN)
        if not said:
            return self._keep(block) if self._waiting else cleaned_bytes(block, self._redactor)
        text = self._text + said
        over = max(said.rfind(b" "), said.rfind(b"\\")) + 1
        if not over and self._word + len(said) < _LONGEST_WORD:
            self._text, self._word = text, self._word + len(said)
            return self._keep(block)
        self._word = word = len(said) - over if over else 0
        self._text = text[-_BEFORE - word :]
        begins = 0 if word else len(block)
        if word and found and word <= len(pieces[-1]):
            begins = _begins(block, found[-1].start())
        before, self._waiting = bytes(self._waiting) + block[:begins], bytearray(block[begins:])
        if not self._redactor.may_hold(b'%b" "%b' % (before, text)):  # one look for both, nearly always
            return before
        if self._redactor.may_hold(text) and self._redactor.finds(text.decode("ascii")):
            self.holds_secret = True
            self._waiting.clear()
            return b""
        return cleaned_bytes(before, self._redactor)

    def _keep(self, block: bytes) -> bytes:
        self._waiting += block
        return b""


def _begins(block: bytes, at: int) -> int:
    """Return where the event begins that says what is said here."""
    line = block.rfind(b"\n", 0, at) + 1
    return line or max(block.rfind(b'"}', 0, at), 0)


def _unpacked(packed: bytes) -> list[bytes]:
    with import_lock:
        from binascii import Error, a2b_base64

    try:
        return _TEXT.findall(a2b_base64(packed))
    except Error:
        return []
