"""Compressed streams made readable, also when they were cut in the middle.

Capture keeps the bytes as they came over the wire.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from importlib import import_module
from typing import Any

MOST = 256 << 20
"""More than this is not unpacked: a few kilobytes can claim to be terabytes."""
_BLOCK = 4096
_LIBRARIES = {
    "br": (("brotli", "Decompressor", "process"), ("brotlicffi", "Decompressor", "process")),
    "zstd": (
        ("compression.zstd", "ZstdDecompressor", "decompress"),
        ("backports.zstd", "ZstdDecompressor", "decompress"),
        ("zstandard", "ZstdDecompressor", "decompress"),
    ),
}


def decoded(data: bytes, content_encoding: str | None) -> tuple[bytes, str | None]:
    """Return the data without its content encoding, and why not all of it could be read, if so.

    A stream that was merely cut gives what came of it. What cannot be undone comes back as it is.
    """
    names = [name.strip().lower() for name in (content_encoding or "").split(",")]
    for name in reversed(names):
        if name in ("", "identity", "none"):
            continue
        data, why = _without(data, name)
        if why is not None:
            return data, why
    return data, None


def _without(data: bytes, name: str) -> tuple[bytes, str | None]:
    if not data:
        return data, None
    if name in ("gzip", "x-gzip"):
        if not data.startswith(b"\x1f\x8b"[: len(data)]):
            return data, f"not {name}, though its header says so"
        return _inflated(data, 31, name)
    if name == "deflate":
        # By the book zlib's format; some servers send the bare one.
        zlibs = data[0] & 15 == 8 and int.from_bytes(data[:2].ljust(2, b"\x01"), "big") % 31 == 0
        return _inflated(data, 15 if zlibs else -15, name)
    if name in _LIBRARIES:
        unpack = _library(name)
        if unpack is None:
            return data, f"{name} cannot be decoded here: none of {_names(name)} is installed"
        return _unpacked(data, unpack, name)
    return data, f"content encoding {name[:40]!r} is unknown"


def _inflated(data: bytes, window: int, name: str) -> tuple[bytes, str | None]:
    unpacker = zlib.decompressobj(window)

    def unpack(block: bytes) -> bytes:
        nonlocal unpacker
        found = []
        while block:
            if unpacker.eof:
                if window != 31 or not block.startswith(b"\x1f\x8b"[: len(block)]):
                    break  # padding after the end
                unpacker = zlib.decompressobj(window)  # gzip members may follow one another
            found.append(unpacker.decompress(block))
            block = unpacker.unused_data
        return b"".join(found)

    return _unpacked(data, unpack, name)


def _library(name: str) -> Callable[[bytes], bytes] | None:
    """Return the decompression of the first library there; who asked for this encoding has one."""
    for module, factory, method in _LIBRARIES[name]:
        try:
            unpacker: Any = getattr(import_module(module), factory)()
            if module == "zstandard":
                unpacker = unpacker.decompressobj()
        except (ImportError, AttributeError):
            continue
        unpack: Callable[[bytes], bytes] = getattr(unpacker, method)
        return unpack
    return None


def _names(name: str) -> str:
    return ", ".join(module for module, _, _ in _LIBRARIES[name])


def _unpacked(data: bytes, unpack: Callable[[bytes], bytes], name: str) -> tuple[bytes, str | None]:
    """Unpack block by block, so that what came before an error is kept."""
    found: list[bytes] = []
    size = 0
    for at in range(0, len(data), _BLOCK):
        try:
            block = unpack(data[at : at + _BLOCK])
        except Exception as error:  # each library has its own
            if not found:
                return data, f"not {name}, though its header says so ({error})"
            return b"".join(found), f"{name} data broken after byte {at} ({error})"
        found.append(block)
        size += len(block)
        if size > MOST:
            return b"".join(found), f"unpacked no further than {MOST >> 20} MB"
    return b"".join(found), None


def inflater(content_encoding: str) -> Callable[[bytes], bytes] | None:
    """Return what undoes an encoding piece by piece as the pieces arrive; None if that cannot be done."""
    name = content_encoding.strip().lower()
    if name in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(47).decompress
    return _library(name) if name in _LIBRARIES else None


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
