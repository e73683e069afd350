"""Test files on disk: written whole or not at all, and never over what somebody has changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from ..errors import UsageError
from ..testing.traces import remove, take_place

_STAMP = re.compile(r"# reenact test: ([0-9a-f]{16}) of ([0-9a-f, ]*)\n\Z")


def stamped(text: str, runs: list[str]) -> str:
    """Return the text of a test with a last line by which a change is known later."""
    return f"{text}\n\n# reenact test: {_digest(text)} of {_run_digests(runs)}\n"


def check_free(path: str, runs: list[str]) -> None:
    """Raise UsageError if a file is there that is not ours to write: changed, another's, or of other runs."""
    try:
        with open(path, encoding="utf-8") as file:
            there = file.read()
    except FileNotFoundError:
        return
    except UnicodeDecodeError:
        there = ""
    found = _STAMP.search(there)
    other = os.path.join(os.path.dirname(path), "test_another.py")
    hint = f"--force writes over it; -o {other} makes another file"
    if found is None:
        raise UsageError(f"{path} is there already, and was not made by reenact test", hint=hint)
    if _digest(there[: found.start()].removesuffix("\n\n")) != found[1]:
        raise UsageError(f"{path} was changed since it was made", hint=hint)
    if found[2] not in (_run_digests(runs), _run_prefixes(runs)):
        raise UsageError(f"{path} is there already, made from other runs", hint=hint)


def write(path: str, text: str) -> None:
    """Write a file by one rename."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    partial = f"{path}.{os.getpid()}.tmp"
    try:
        with open(partial, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        os.replace(partial, path)
    except BaseException:
        if os.path.exists(partial):
            os.unlink(partial)
        raise


@contextmanager
def unless_it_fails(path: str, traces: list[str], scratch: str) -> Iterator[None]:
    """Have a test and its traces be what they were before, or not there, if the block raises."""
    made = [folder for folder in _folders([path, *traces]) if not os.path.exists(folder)]
    before = _bytes(path)
    kept = {
        trace: os.path.join(scratch, f"before-{number}.jsonl")
        for number, trace in enumerate(traces)
        if os.path.exists(trace)
    }
    for trace, copy in kept.items():
        take_place(trace, copy)
    try:
        yield
    except BaseException:
        for trace in traces:
            if trace in kept:
                take_place(kept[trace], trace)
            else:
                remove(trace)
        if before is None:
            if os.path.exists(path):
                os.unlink(path)
        else:
            write(path, before.decode("utf-8", "surrogateescape"))
        for folder in made:
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
        raise


def _folders(paths: list[str]) -> list[str]:
    """Return the folders of some files and those above them, the lowest first."""
    found: dict[str, None] = {}
    for path in paths:
        folder = os.path.dirname(os.path.abspath(path))
        while folder not in found and folder != os.path.dirname(folder):
            found[folder] = None
            folder = os.path.dirname(folder)
    return sorted(found, key=len, reverse=True)


def _bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _run_digests(runs: list[str]) -> str:
    """Return what stands for the run ids in the last line: an id is any text, and could be code there."""
    return ", ".join(_digest(run)[:12] for run in runs)


def _run_prefixes(runs: list[str]) -> str:
    """Return what earlier versions wrote for them, to recognise their files."""
    return ", ".join(run[:12] for run in runs)
