"""Stored values -> what the agent had: long texts put back, ``$float`` restored, ``$$`` keys unescaped.

Returns fresh objects, never parts of its argument. Long texts stand beside the file as blobs, found by digest
and checked. A digest from a trace is untrusted: only 64 hex digits ever become part of a path.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable
from typing import Any

from ... import lines
from ..findings import Note
from ..plain_files import is_plain, read_plain

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_MAX_DEPTH = lines.MAX_NESTING
"""Well below where the interpreter would refuse; capture cuts long before."""


def restore(value: Any, blob: Callable[[object], str | None], depth: int = 0) -> Any:
    """Return a fresh copy with our own marks resolved where they can be."""
    kind = type(value)
    if kind is dict:
        if depth > _MAX_DEPTH:
            return {"$cut": "depth"}
        result = {}
        for key, item in value.items():
            kind = type(item)
            if kind is dict or kind is list:
                item = restore(item, blob, depth + 1)
            if key[:1] == "$":
                if lines.is_mark(key) and (found := _mark(value, blob)) is not None:
                    return found
                key = lines.unescape_key(key)
            result[key] = item
        return result
    if kind is list:
        if depth > _MAX_DEPTH:
            return [{"$cut": "depth"}]
        return [
            restore(item, blob, depth + 1) if type(item) is dict or type(item) is list else item
            for item in value
        ]
    return value


def _mark(value: dict[str, Any], blob: Callable[[object], str | None]) -> Any:
    if "$blob" in value and "form" not in value:
        return blob(value["$blob"])
    if "$float" in value and len(value) == 1:
        return _FLOATS.get(value["$float"]) if type(value["$float"]) is str else None
    return None


def fresh(value: Any, depth: int = 0) -> Any:
    """Return a fresh copy of a value in which nothing is ours."""
    if type(value) is dict:
        return {"$cut": "depth"} if depth > _MAX_DEPTH else {k: fresh(v, depth + 1) for k, v in value.items()}
    if type(value) is list:
        return [{"$cut": "depth"}] if depth > _MAX_DEPTH else [fresh(item, depth + 1) for item in value]
    return value


def point(value: Any, pointer: object) -> Any:
    """Return what a JSON pointer leads to; LookupError if nothing."""
    for key in _keys(pointer):
        value = value[_index(value, key)]
    return value


def drop_at(value: Any, pointer: object) -> None:
    """Remove what a JSON pointer leads to; LookupError if nothing."""
    *way, last = _keys(pointer)
    for key in way:
        value = value[_index(value, key)]
    del value[_index(value, last)]


def set_at(value: Any, pointer: object, new: Any) -> None:
    """Put ``new`` where a JSON pointer leads; LookupError if there is no such place."""
    *way, last = _keys(pointer)
    for key in way:
        value = value[_index(value, key)]
    if type(value) is list and last == "-":
        value.append(new)
    else:
        value[last if type(value) is dict else _index(value, last)] = new


def change(value: Any, reference: dict[str, Any]) -> None:
    """Make the small changes that a reference carries, in place."""
    for pointer in reference.get("drop") or ():
        drop_at(value, pointer)
    for pointer, new in (reference.get("set") or {}).items():
        set_at(value, pointer, new)


def _keys(pointer: object) -> list[str]:
    if type(pointer) is not str or (pointer and pointer[0] != "/"):
        raise LookupError(pointer)
    if not pointer:
        return []
    return [key.replace("~1", "/").replace("~0", "~") for key in pointer[1:].split("/")]


def _index(value: Any, key: str) -> Any:
    if type(value) is dict:
        return key
    if type(value) is list and key.isascii() and key.isdigit() and len(key) < 10:
        return int(key)
    raise LookupError(key)


# Blobs: the files that hold long texts.

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})\Z")

MAX_BLOB = 96 << 20
"""Larger ones stay references; who wants them reads the file. A small stream can unpack to terabytes."""


class Blobs:
    """The blob folders of one run."""

    __slots__ = ("_note", "folders")

    def __init__(self, folders: list[str], note: Note) -> None:
        self.folders = folders
        self._note = note

    def path(self, reference: object) -> str | None:
        """Return where the blob of a ``sha256:…`` reference lies, None if nowhere."""
        found = _DIGEST.match(reference) if type(reference) is str else None
        if found is None:
            return None
        for folder in self.folders:
            path = os.path.join(folder, found[1])
            if is_plain(path):
                return path
        return None

    def opener(self) -> Callable[[object], str | None]:
        """Return ``text`` for the references of one value, which together may lead to so much and no more."""
        left = MAX_BLOB

        def text(reference: object) -> str | None:
            nonlocal left
            found = self.text(reference, left)
            left -= 0 if found is None else len(found)
            return found

        return text

    def stream(self, reference: object) -> tuple[bytes, bytes] | None:
        """Return a recorded stream, packed and unpacked; None if it is missing, damaged or too large."""
        path = self.path(reference)
        if path is None:
            return None
        unpacking = zlib.decompressobj()
        try:
            packed = read_plain(path, MAX_BLOB + 1)
            data = unpacking.decompress(packed, MAX_BLOB) if len(packed) <= MAX_BLOB else b""
        except (OSError, zlib.error):
            return None
        is_whole = unpacking.eof and hashlib.sha256(packed).hexdigest() == os.path.basename(path)
        return (packed, data) if is_whole else None

    def text(self, reference: object, most: int = MAX_BLOB) -> str | None:
        """Return the whole text, or None after noting why it cannot be had."""
        path = self.path(reference)
        name = _short(reference)
        if path is None:
            self._note("blob-missing", f"the blob {name} is not beside the file; its head is shown")
            return None
        try:
            data = read_plain(path, most + 1)
        except OSError as why:
            self._note("blob-missing", f"the blob {name} cannot be read ({why.strerror})")
            return None
        if len(data) > most:
            self._note("blob-large", f"the blob {name} is too large to be put in; see {path}")
            return None
        if hashlib.sha256(data).hexdigest() != os.path.basename(path):
            self._note("blob-damaged", f"the blob {name} has other content than when it was written")
            return None
        return data.decode("utf-8", "surrogatepass" if _is_decodable(data) else "replace")


def _is_decodable(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _short(reference: object) -> str:
    return str(reference)[:19] + "…" if type(reference) is str else "without a digest"
