"""Long strings and raw streams, kept whole beside the trace: content-addressed, equal ones stored once.

Used by the recorder for strings over the cap, of which the line keeps the head, and for streams as they came;
docs/format.md has the rules.
"""

from __future__ import annotations

import os
import zlib
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from .. import guard

if TYPE_CHECKING:
    from .encode import RawStream

HEAD_BYTES = 2_048
"""What stays readable in the line itself."""
INLINE_MAX = 1 << 20
"""A sink without a folder gets long strings inline up to this size."""


class Blobs:
    """The ``<stem>.blobs/`` folder of one run; made with the first blob."""

    def __init__(self, folder: str, fsync: bool = False) -> None:
        self.folder = folder
        self.fsync = fsync
        """True if a power cut must not take a blob that an event speaks of."""
        self.known: set[str] = set()

    def put(self, data: bytes) -> str:
        """Store the bytes and return their digest; raises OSError when they are not on disk."""
        digest = sha256(data).hexdigest()
        if digest in self.known:
            return digest
        path = os.path.join(self.folder, digest)
        if not os.path.exists(path):
            self._write(path, data)
        if len(self.known) > 10_000:
            self.known.clear()
        self.known.add(digest)
        return digest

    def put_stream(self, stream: RawStream, clean: bytes) -> dict[str, Any] | None:
        """Store a stream with ``clean`` bytes; returns what stands for it in the line, None if that fails.

        The blob is zlib of a JSON line ``{"chunks": [[bytes, ms], …]}`` followed by the bytes. ``form`` says
        what they are: ``exact``, ``decoded`` (a content encoding was taken off) or ``rebuilt`` (secrets were
        replaced; the pieces are then not listed).
        """
        form, chunks = "decoded" if stream.is_decoded else "exact", stream.chunks
        if clean is not stream.data:
            form, chunks = "rebuilt", ""
        packed = zlib.compress(f'{{"chunks":[{chunks}]}}\n'.encode("ascii") + clean, 1)
        try:
            digest = self.put(packed)
        except OSError as exc:
            guard.pass_on(exc)
            guard.tell(f"blob:{exc.errno}", f"could not keep a stream as it came ({guard.explain(exc)}).")
            return None
        reference = {"$blob": f"sha256:{digest}", "bytes": len(packed), "form": form}
        return {**reference, "lossy": True} if stream.is_lossy else reference

    def _write(self, path: str, data: bytes) -> None:
        # Under another name first: a blob that exists is whole, also after SIGKILL.
        partial = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
        try:
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            done = 0
            while done < len(data):
                done += os.write(fd, memoryview(data)[done:])
            if self.fsync:
                os.fsync(fd)
            os.close(fd)
            fd = -1
            os.rename(partial, path)
            if self.fsync:
                fsync_folder(self.folder)
        except BaseException:
            if fd >= 0:
                os.close(fd)
            if os.path.exists(partial):
                os.unlink(partial)
            raise


def fsync_folder(folder: str) -> None:
    """Flush the names in a folder: a new file's data without its name is lost all the same."""
    try:
        fd = os.open(folder or ".", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as exc:  # not every file system can; the data itself is flushed
        guard.pass_on(exc)
        where = guard.shown(folder)
        guard.tell(f"fsync:{exc.errno}", f"the names in {where} could not be flushed ({guard.explain(exc)}).")


def shorten(value: Any, cap: int, blobs: Blobs | None) -> tuple[Any, bool]:
    """Return a plain value with every string over ``cap`` bytes moved out, and whether something was cut.

    Without a folder, or when it cannot be written, what does not fit is cut and marked.
    """
    work = _Shorten(cap, blobs)
    return work.of(value), work.lossy


class _Shorten:
    __slots__ = ("blobs", "cap", "lossy")

    def __init__(self, cap: int, blobs: Blobs | None) -> None:
        self.cap = cap
        self.blobs = blobs
        self.lossy = False

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            # One character is at most 4 bytes, so most strings need no encoding to be measured.
            if len(value) * 4 <= self.cap:
                return value
            data = value.encode("utf-8", "surrogatepass")
            return value if len(data) <= self.cap else self.move(data)
        if kind is list:
            return [self.of(item) for item in value]
        if kind is dict:
            if "$blob" in value:
                return value
            return {key: self.of(item) for key, item in value.items()}
        return value

    def move(self, data: bytes) -> dict[str, Any]:
        head = data[: min(HEAD_BYTES, self.cap // 2)].decode("utf-8", "ignore")
        if self.blobs is not None:
            try:
                digest = self.blobs.put(data)
                return {"$blob": "sha256:" + digest, "bytes": len(data), "head": head}
            except OSError as exc:
                guard.pass_on(exc)
                guard.tell(
                    f"blob:{exc.errno}",
                    f"could not store a long value ({guard.explain(exc)}); its head is kept.",
                )
        self.lossy = True
        return {"$cut": "blob", "bytes": len(data), "head": head}
