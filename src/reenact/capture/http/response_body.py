"""A response body as it arrives: its bytes with their times, on disk while it is still arriving."""

from __future__ import annotations

import errno
import json
import os
import re
from array import array
from binascii import Error, a2b_base64
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

from .. import guard
from ..recorder.encode import RawStream
from ..recorder.file import FAR, LOOK_EVERY_S, far_descriptor
from ..redact.redactor import Redactor

MAX_HELD = 32 << 20
"""Bytes of one response kept in memory; the rest of a longer one is not recorded, and reported as missing."""
MAX_PIECES = 100_000
"""Pieces whose times are kept; later ones get the time of the last."""


class Arrived:
    """The pieces of one response, content encoding taken off."""

    def __init__(self) -> None:
        self.inflate: Callable[[bytes], bytes] | None = None
        """Takes a content encoding off, where the library has not done so."""
        self.decoded = False
        """True if there was one."""
        self.is_sealed = False
        """True if there is one that we cannot take off: redaction cannot look inside, so nothing is kept."""
        self.spill: Spill | None = None
        self.missing = 0
        """Bytes that were not kept."""
        self._data = bytearray()
        self._sizes = array("Q")
        self._times = array("d")

    def add(self, data: bytes) -> None:
        """Take in the next piece."""
        if self.is_sealed:
            return
        if self.inflate is not None:
            try:
                data = self.inflate(data)
            except Exception as exc:  # it is not in the encoding that its header names
                guard.pass_on(exc)
                self.is_sealed = True
                return
        room = MAX_HELD - len(self._data)
        if len(data) > room:
            self.missing += len(data) - room
            data = data[:room]
            if not data:
                return
        if len(self._sizes) < MAX_PIECES:
            self._sizes.append(len(data))
            self._times.append(monotonic())
        else:
            self._sizes[-1] += len(data)
        self._data += data  # last: a signal handler that calls a model records streams that look whole
        if self.spill is not None:
            self.spill.add(data)

    def forget_spill(self) -> None:
        """Remove the file: the response is recorded."""
        if self.spill is not None:
            self.spill.remove()

    def close_spill(self) -> None:
        """Leave the file: in a forked child it is the parent's, after the end of a run all that there is."""
        if self.spill is not None:
            self.spill.close()

    def tail(self, size: int) -> bytes:
        """Return the last bytes of it."""
        return bytes(self._data[-size:])

    def data(self) -> bytes:
        """Return all that is kept."""
        return bytes(self._data)

    def loss(self, problems: Sequence[str] = ()) -> dict[str, Any]:
        """Return the fields that report missing bytes, added to the other problems."""
        if not self.missing:
            return {}
        problem = f"{self.missing} bytes more arrived than are kept of one response"
        return {"problems": [problem, *problems], "lossy": True}

    def ms_until(self, offset: int | None, began: float) -> float | None:
        """Return when the byte at an offset arrived, in milliseconds since the call began."""
        if offset is None:
            return None
        upto = 0
        for size, at in zip(self._sizes, self._times, strict=True):
            upto += size
            if upto >= offset:
                return round((at - began) * 1000, 3)
        return None

    def stream(self, began: float) -> RawStream | None:
        """Return the response as it came, with the times of its pieces; None if nothing came."""
        if not self._data:
            return None
        pieces = zip(self._sizes, self._times, strict=True)
        chunks = ",".join([f"[{size},{(at - began) * 1000:.3f}]" for size, at in pieces])
        return RawStream(self.data(), chunks, is_decoded=self.decoded, is_lossy=bool(self.missing))


def as_json(data: bytes | None) -> Any:
    """Return bytes decoded as JSON, None if they are none."""
    if not data or data[:1] not in b'{["tfn-0123456789 \t\r\n':
        return None

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


# The text of a stream, joined from its events: detects secrets that arrive split across stream chunks.
#
# Used by the spill, for every few pieces of a stream. A word waits until it is complete and checked; after
# the first secret nothing more is written.

_TEXT = re.compile(
    rb'"(?:t(?:ext|hinking|ranscript|ool_plan)|c(?:ontent|ode)|d(?:elta|iff)|arguments|partial_json|input'
    rb'|re(?:asoning(?:_content|_text)?|fusal|sponse))": ?"([^"\\]*+(?:\\.[^"\\]*+)*+)"'
)
"""Fields that hold text in the events of the providers; names by their first letters, for speed."""
_PACKED = re.compile(rb'"bytes": ?"([A-Za-z0-9+/=]+)"')
"""Bedrock's invoke: an event inside an event, as base64."""
_PLAIN = bytes(byte if byte < 128 else 32 for byte in range(256))
"""A letter beyond ASCII ends a word as a space does; so does a backslash: a line feed, a quote."""
_BEFORE = 160
"""Bytes before a word that may show what it is: a name, a URL it ends."""
_LONGEST_WORD = 4_096
_NEW_FRAMES = 8
"""Events in a row that differ in more than their text; after so many no more is remembered of them."""


class StreamText:
    """The text of one stream so far: its end, and the events of a word that is not complete."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._text = b""
        self._word = 0
        """Bytes of the word that is not complete."""
        self._waiting = bytearray()
        self._head = self._tail = b""
        """An event with one text, before and after that text, in which there is nothing to redact."""
        self._line = 0
        """Where the line with the text begins in it."""
        self._new_frames = _NEW_FRAMES
        self._is_framed = True
        """True if all that is waiting has such a frame, so that nothing but its text needs a look."""
        self.holds_secret = False

    def passes(self, block: bytes) -> bytes:
        """Take in whole events; returns what may be written, of these and those before, without secrets."""
        if self._head and block.startswith(self._head) and block.endswith(self._tail):
            piece = block[len(self._head) : -len(self._tail)]
            is_one = len(self._head) + len(piece) + len(self._tail) == len(block) and piece.rfind(b'"') < 0
            if is_one and piece[-1:] != b"\\" and piece.isascii():
                self._new_frames = _NEW_FRAMES
                return self._take(block, piece, (len(piece), self._line), is_framed=True)
        found = list(_TEXT.finditer(block))
        pieces = [piece[1] for piece in found]
        if b'"bytes":' in block:
            pieces += [piece for packed in _PACKED.findall(block) for piece in _unpacked(packed)]
        if len(pieces) == len(found) == 1 and self._new_frames:
            self._learn(block, *found[0].span(1))
        last = (len(pieces[-1]), _begins(block, found[-1].start())) if found else (0, 0)
        return self._take(block, b"".join(pieces), last, is_framed=False)

    def _learn(self, block: bytes, begin: int, end: int) -> None:
        """Remember what stands around the text: the next event is likely to have the same."""
        self._new_frames -= 1
        if not self._redactor.may_hold(block[:begin] + block[end:]):
            self._head, self._tail, self._line = block[:begin], block[end:], _begins(block, begin)

    def _take(self, block: bytes, joined: bytes, last: tuple[int, int], *, is_framed: bool) -> bytes:
        """Take in events and their text; ``last``: the size of its last piece, where its line begins."""
        framed = self._is_framed and is_framed
        spoken = joined.translate(_PLAIN)
        if not spoken:
            if self._waiting:
                self._is_framed = framed
                return self._keep(block)
            clean: bytes = self._redactor.clean(block)
            return clean
        text = self._text + spoken
        over = max(spoken.rfind(b" "), spoken.rfind(b"\\")) + 1
        if not over and self._word + len(spoken) < _LONGEST_WORD:
            self._text, self._word, self._is_framed = text, self._word + len(spoken), framed
            return self._keep(block)
        self._word = word = len(spoken) - over if over else 0
        self._text = text[-_BEFORE - word :]
        begins = 0 if word else len(block)
        if 0 < word <= last[0]:
            begins = last[1]
        before, self._waiting = bytes(self._waiting) + block[:begins], bytearray(block[begins:])
        self._is_framed = is_framed or not self._waiting
        if not self._redactor.may_hold(text if framed else b'%b" "%b' % (before, text)):
            return before
        if self._redactor.witness.clean(text) is not text:
            self.holds_secret = True
            self._waiting.clear()
            return b""
        cleaned: bytes = self._redactor.clean(before)
        return cleaned

    def _keep(self, block: bytes) -> bytes:
        self._waiting += block
        return b""


def _begins(block: bytes, at: int) -> int:
    """Return where the event begins that holds the text at this place."""
    line = block.rfind(b"\n", 0, at) + 1
    return line or max(block.rfind(b'"}', 0, at), 0)


def _unpacked(packed: bytes) -> list[bytes]:
    try:
        return _TEXT.findall(a2b_base64(packed))
    except Error:
        return []


# A stream so far, on disk: ``<stem>.blobs/<call>.part``, until the response is recorded.
#
# SIGKILL leaves it there, and the reader shows it. Redacted as it is written. Held back are an event that is
# not whole, so that a secret that arrives in two pieces of a line is seen whole, and the events of a word
# that is not complete, for a secret that arrives a few letters at a time. The file ends before such a secret.

LONG, HELD_BACK = 8_192, 256
"""Bytes of an event too long to wait for its end; of such a one that wait."""
_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
_may_stay_open = [True] * 32
"""One for each descriptor that may be kept: with a thousand streams at once, the agent needs its own."""


class Spill:
    """One stream's file."""

    def __init__(self, folder: str, call: str, redactor: Redactor | None) -> None:
        self.path = os.path.join(folder, f"{call}.part")
        self._redactor = redactor
        self._held = b""
        self._stream_text = None if redactor is None else StreamText(redactor)
        self._is_over = False
        self._fd = far_descriptor(self._create(folder))
        state = os.fstat(self._fd)
        self._identity = state.st_dev, state.st_ino
        self._looked = monotonic()
        try:
            _may_stay_open.pop()
        except IndexError:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def _create(self, folder: str) -> int:
        flags = _FLAGS | os.O_CREAT | os.O_EXCL
        try:
            return os.open(self.path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return os.open(self.path, flags, 0o600)

    def add(self, data: bytes) -> None:
        """Append what arrived, events that are whole; of a long unfinished one all but its end."""
        if self._is_over:
            return
        block = self._held + data if self._held else data
        self._held = b""
        if block[-1:] != b"\n":  # usually whole events arrive
            upto = _end_of_events(block)
            block, self._held = block[:upto], block[upto:]
        if block and self._stream_text is not None:
            block = self._stream_text.passes(block)
        try:
            if block:
                self._write(block)
            elif self._stream_text is not None and self._stream_text.holds_secret:
                self.close()
        except OSError as exc:
            self.close()
            guard.tell(f"part:{exc.errno}", f"a stream is not kept as it arrives ({guard.explain(exc)}).")

    def _write(self, data: bytes) -> None:
        """Append to the file, and to no other that has got its descriptor since."""
        is_own = self._may_be_used()
        fd = self._fd if is_own else os.open(self.path, _FLAGS)
        try:
            done = os.write(fd, data)
        except OSError as exc:
            if exc.errno != errno.EBADF or not is_own:
                raise
            self._let_go()  # closed by the agent
            self._write(data)
            return
        finally:
            if not is_own:
                os.close(fd)
        if done < len(data):  # later bytes would be at the wrong place
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _may_be_used(self) -> bool:
        """True for a descriptor of our own; a far one is looked at as often as that of the trace."""
        now = monotonic()
        if self._fd >= FAR and now - self._looked < LOOK_EVERY_S:
            return True
        self._looked = now
        return self._is_ours()

    def _is_ours(self) -> bool:
        """False without a descriptor of our own: an agent may close all it finds, and open others."""
        if self._fd < 0:
            return False
        try:
            state = os.fstat(self._fd)
        except OSError as exc:
            guard.pass_on(exc)
            self._let_go()
            return False
        if (state.st_dev, state.st_ino) == self._identity:
            return True
        self._let_go()
        return False

    def _let_go(self) -> None:
        self._fd = -1
        _may_stay_open.append(True)

    def close(self) -> None:
        """Stop writing; what is there stays."""
        self._is_over = True
        if self._is_ours():
            fd = self._fd
            self._let_go()
            os.close(fd)

    def __del__(self) -> None:
        """Give the descriptor back, if a fault of ours kept the response from being ended."""
        try:
            self.close()
        except Exception:  # half made, or the interpreter ends
            pass

    def remove(self) -> None:
        """Remove the file: the response is recorded."""
        try:
            self.close()
            os.unlink(self.path)
        except OSError as exc:
            guard.pass_on(exc)


def _end_of_events(data: bytes) -> int:
    """Return where the last whole event ends: a line, or the object in a frame of Bedrock's binary stream."""
    upto = data.rfind(b"\n") + 1
    if upto < len(data) and b"\0" in data[upto:] and (at := data.rfind(b'"}', upto)) >= 0:
        upto = at + 2
    return upto if len(data) - upto <= LONG else len(data) - HELD_BACK
