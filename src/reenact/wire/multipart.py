"""The parts of a multipart body, read while it passes, whatever its boundary is.

Pure. A body may be larger than memory: of a part its size and digest are kept, its text while there is room.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

ROOM = 8 << 20
"""Bytes of one body that are kept as text."""
MAX_PARTS, MAX_HEAD = 1_000, 16 << 10


class Piece:
    """Bytes as they pass: how many, their digest, and themselves while there is room for them."""

    def __init__(self, room: int = ROOM) -> None:
        self.size = 0
        self._room = room
        self._digest = sha256()
        self._kept: list[bytes] | None = []

    def add(self, data: bytes) -> None:
        self.size += len(data)
        self._digest.update(data)
        if self._kept is not None:
            self._kept.append(data)
            if self.size > self._room:
                self._kept = None

    @property
    def kept(self) -> int:
        return self.size if self._kept is not None else 0

    def data(self) -> bytes | None:
        """Return all of it, None if it was too much."""
        return None if self._kept is None else b"".join(self._kept)

    def described(self, name: str) -> dict[str, Any]:
        """Return size, and the text under a name; of other data the digest."""
        data = self.data()
        try:
            if data is not None and b"\0" not in data:
                return {"bytes": self.size, name: data.decode("utf-8")}
        except UnicodeDecodeError:
            pass
        return {"bytes": self.size, "sha256": self._digest.hexdigest()}


class Parts:
    """A multipart body, read as it passes. ``add`` raises ValueError for what is none."""

    def __init__(self, boundary: str) -> None:
        self._mark = b"\r\n--" + boundary.encode("latin-1", "replace")
        self._rest = b"\r\n"  # so that the first boundary is like the others
        self._in_head = False
        self._found: list[tuple[dict[str, str], Piece]] = []
        self.is_over = False

    def add(self, data: bytes) -> None:
        """Take in the next bytes."""
        self._rest += data
        while not self.is_over and (self._head() if self._in_head else self._content()):
            pass

    def described(self) -> list[dict[str, Any]]:
        """Return the parts: name, file name and type as far as there are any, size, text or digest."""
        return [{**about, **piece.described("value")} for about, piece in self._found]

    def _content(self) -> bool:
        """Take what is before the next boundary; True if there is one."""
        at = self._rest.find(self._mark)
        upto = at if at >= 0 else max(len(self._rest) - len(self._mark), 0)
        if self._found and upto:
            self._found[-1][1].add(self._rest[:upto])
        self._rest = self._rest[upto:]
        end = len(self._mark)
        if at < 0 or len(self._rest) < end + 2:
            return False
        self.is_over = self._rest[end : end + 2] == b"--"
        self._rest = self._rest[end:]
        self._in_head = True
        return True

    def _head(self) -> bool:
        """Take the lines that say what the next part is; True if they are all there."""
        end = self._rest.find(b"\r\n\r\n")
        if end < 0:
            if len(self._rest) > MAX_HEAD:
                raise ValueError("a part's head has no end")
            return False
        if len(self._found) == MAX_PARTS:
            raise ValueError("too many parts")
        room = ROOM - sum(piece.kept for _, piece in self._found)
        self._found.append((_about(self._rest[:end]), Piece(room)))
        self._rest = self._rest[end + 4 :]
        self._in_head = False
        return True


def boundary_of(content_type: str | None) -> str | None:
    """Return what stands between the parts, None if there are none."""
    if not content_type or not content_type.lstrip().lower().startswith("multipart/"):
        return None
    return _parameters(content_type).get("boundary")


def _about(head: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        if name.strip().lower() == "content-disposition":
            params = _parameters(value)
            found.update({key: params[key] for key in ("name", "filename") if key in params})
        elif name.strip().lower() == "content-type":
            found["type"] = value.strip()
    return found


def _parameters(value: str) -> dict[str, str]:
    """Return ``key="value"`` pairs after the first semicolon, names in lower case."""
    found: dict[str, str] = {}
    rest = value.partition(";")[2]
    while rest:
        name, _, rest = rest.lstrip().partition("=")
        if rest.startswith('"'):
            end = 1
            while end < len(rest) and rest[end] != '"':
                end += 2 if rest[end] == "\\" else 1
            text, rest = (
                rest[1:end].replace('\\"', '"').replace("\\\\", "\\"),
                rest[end + 1 :].partition(";")[2],
            )
        else:
            text, _, rest = rest.partition(";")
            text = text.strip()
        found.setdefault(name.strip().lower().removesuffix("*"), text)
    return found
