"""A folder's contents as a value, to compare it with another's."""

from __future__ import annotations

import os
from pathlib import Path


def state(folder: Path, *leave_out: str) -> dict[bytes, tuple[str, bytes]]:
    """Return every file and link by its path: what it is, and what is in it. Repositories are left out."""
    found = {}
    for place, folders, files in os.walk(os.fsencode(folder)):
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        folders[:] = [name for name in folders if name != b".git" and os.fsdecode(name) not in leave_out]
        for name in [*files, *links]:
            path = os.path.join(place, name)
            if os.path.islink(path):
                entry = ("link", os.readlink(path))
            else:
                mode = "program" if os.stat(path).st_mode & 0o100 else "file"
                entry = (mode, Path(os.fsdecode(path)).read_bytes())
            if os.fsdecode(name) not in leave_out:
                found[os.path.relpath(path, os.fsencode(folder))] = entry
    return found
