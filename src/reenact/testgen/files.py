"""Test files on disk: written completely or not at all, and never over a file that the user changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from ..errors import UsageError
from ..testing.traces import remove, replace_trace

_STAMP = re.compile(r"# reenact test: ([0-9a-f]{16}) of ([0-9a-f, ]*)\n\Z")


def stamped(text: str, runs: list[str]) -> str:
    """Return the text of a test with a last line that reveals later changes."""
    return f"{text}\n\n# reenact test: {_digest(text)} of {_run_digests(runs)}\n"


def check_free(path: str, runs: list[str]) -> None:
    """Raise UsageError if the file exists and was changed, not generated, or generated from other runs."""
    try:
        with open(path, encoding="utf-8") as file:
            there = file.read()
    except FileNotFoundError:
        return
    except UnicodeDecodeError:
        there = ""
    found = _STAMP.search(there)
    other = os.path.join(os.path.dirname(path), "test_another.py")
    hint = f"--force overwrites it; -o {other} writes another file"
    if found is None:
        raise UsageError(f"{path} exists, and reenact test did not write it", hint=hint)
    if _digest(there[: found.start()].removesuffix("\n\n")) != found[1]:
        raise UsageError(f"{path} was changed since it was generated", hint=hint)
    if found[2] not in (_run_digests(runs), _run_prefixes(runs)):
        raise UsageError(f"{path} exists, generated from other runs", hint=hint)


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
def restored_on_failure(path: str, traces: list[str], scratch: str) -> Iterator[None]:
    """Restore a test and its traces to their previous state if the block raises."""
    new_folders = [folder for folder in _folders([path, *traces]) if not os.path.exists(folder)]
    before = _bytes(path)
    kept = {
        trace: os.path.join(scratch, f"before-{number}.jsonl")
        for number, trace in enumerate(traces)
        if os.path.exists(trace)
    }
    for trace, copy in kept.items():
        replace_trace(trace, copy)
    try:
        yield
    except BaseException:
        for trace in traces:
            if trace in kept:
                replace_trace(kept[trace], trace)
            else:
                remove(trace)
        if before is None:
            if os.path.exists(path):
                os.unlink(path)
        else:
            write(path, before.decode("utf-8", "surrogateescape"))
        for folder in new_folders:
            if os.path.isdir(folder) and not os.listdir(folder):
                os.rmdir(folder)
        raise


def _folders(paths: list[str]) -> list[str]:
    """Return the folders of some files and their parents, the lowest first."""
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
    """Return digests of the run ids for the last line: an id may be any text, even code."""
    return ", ".join(_digest(run)[:12] for run in runs)


def _run_prefixes(runs: list[str]) -> str:
    """Return the form that earlier versions wrote, to recognise their files."""
    return ", ".join(run[:12] for run in runs)
