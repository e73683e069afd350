"""Long texts that stand beside the file: found by digest, checked, given back whole.

A digest from a trace is untrusted: only 64 hex digits ever become part of a path.
"""

from __future__ import annotations

import hashlib
import os
import re

from .findings import Note

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})\Z")

MAX_BLOB = 256 << 20
"""Larger ones stay references; who wants them reads the file."""


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
            if os.path.isfile(path):
                return path
        return None

    def text(self, reference: object) -> str | None:
        """Return the whole text, or None after noting why it cannot be had."""
        path = self.path(reference)
        if path is None:
            self._note(
                "blob-missing", f"the blob {_short(reference)} is not beside the file; its head is shown"
            )
            return None
        try:
            if os.path.getsize(path) > MAX_BLOB:
                self._note(
                    "blob-large", f"the blob {_short(reference)} is too large to be put in; see {path}"
                )
                return None
            with open(path, "rb") as file:
                data = file.read()
        except OSError as why:
            self._note("blob-missing", f"the blob {_short(reference)} cannot be read ({why.strerror})")
            return None
        if hashlib.sha256(data).hexdigest() != os.path.basename(path):
            self._note(
                "blob-damaged", f"the blob {_short(reference)} has other content than when it was written"
            )
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
