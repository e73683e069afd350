"""Content encodings of HTTP bodies, taken off and put on piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

MOST = 256 << 20
"""More than this is not unpacked: a few kilobytes can claim to be terabytes."""
_GZIP, _DEFLATE = ("gzip", "x-gzip"), "deflate"
_LIBRARIES = {
    "br": (("brotli", "Decompressor", "process"), ("brotlicffi", "Decompressor", "process")),
    "zstd": (
        ("compression.zstd", "ZstdDecompressor", "decompress"),
        ("backports.zstd", "ZstdDecompressor", "decompress"),
        ("zstandard", "ZstdDecompressor", "decompress"),
    ),
}

Unpack = Callable[[bytes], bytes]


def inflater(content_encoding: str) -> Unpack | None:
    """Return what undoes an encoding piece by piece as the pieces arrive; None if that cannot be done.

    It raises for data that is not in the encoding, and for more than ``MOST`` bytes of output.
    """
    steps: list[Unpack] = []
    for name in reversed([name.strip().lower() for name in content_encoding.split(",")]):
        if name in ("", "identity", "none"):
            continue
        step = _Zlib(name).unpack if name in (*_GZIP, _DEFLATE) else _library(name)
        if step is None:
            return None
        steps.append(step)
    return _Chain(steps).unpack


class _Chain:
    """Several encodings one after another, seldom more than one."""

    def __init__(self, steps: list[Unpack]) -> None:
        self._steps = steps
        self._size = 0

    def unpack(self, data: bytes) -> bytes:
        for step in self._steps:
            data = step(data)
        self._size += len(data)
        if self._size > MOST:
            raise ValueError(f"unpacked no further than {MOST >> 20} MB")
        return data


class _Zlib:
    """gzip, whose members may follow one another, or deflate, by the book zlib's format, at times bare."""

    def __init__(self, name: str) -> None:
        self._is_gzip = name in _GZIP
        self._unpacker: Any = None

    def unpack(self, data: bytes) -> bytes:
        found = []
        while data:
            if self._unpacker is None:
                bare = not self._is_gzip and data[0] & 15 != 8
                self._unpacker = zlib.decompressobj(31 if self._is_gzip else -15 if bare else 15)
            if self._unpacker.eof:
                if not self._is_gzip or not data.startswith(b"\x1f\x8b"[: len(data)]):
                    break  # padding after the end
                self._unpacker = zlib.decompressobj(31)
            found.append(self._unpacker.decompress(data))
            data = self._unpacker.unused_data
        return b"".join(found)


def _library(name: str) -> Unpack | None:
    """Return the decompression of the first library there; whoever accepts this encoding has one."""
    for module, factory, method in _LIBRARIES.get(name, ()):
        try:
            unpacker: Any = getattr(import_module(module), factory)()
            if module == "zstandard":
                unpacker = unpacker.decompressobj()
        except (ImportError, AttributeError):
            continue
        unpack: Unpack = getattr(unpacker, method)
        return unpack
    return None


def packed(pieces: list[bytes], content_encoding: str, *, is_whole: bool) -> list[bytes] | None:
    """Return pieces in an encoding, cut at the same places; None if it is none of zlib's."""
    window = {"gzip": 31, "x-gzip": 31, "deflate": 15}.get(content_encoding.strip().lower())
    if window is None or not pieces:
        return None
    packer = zlib.compressobj(1, zlib.DEFLATED, window)
    found = [packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH) for piece in pieces]
    if is_whole:
        found[-1] += packer.flush()
    return found
