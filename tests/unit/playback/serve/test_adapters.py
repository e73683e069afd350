"""Every library that capture may ask an answer for has an adapter in playback; while recording none is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import reenact
from reenact.capture import replay_hook
from reenact.playback.serve import CONNECTING, adapter

LIBRARIES = ("aiohttp", "http_client", "httpx", "mcp", "tools", "websockets")
CAPTURE = Path(reenact.__file__).parent / "capture"
ADAPTER_CALL = re.compile(r"\b(adapter|carry)\(\s*\"(\w+)\"")


def requested_by_capture() -> set[tuple[str, str]]:
    """How capture asks for an answer, and of which library."""
    return {
        pair
        for path in CAPTURE.rglob("*.py")
        for pair in ADAPTER_CALL.findall(path.read_text(encoding="utf-8"))
    }


def test_every_requested_library_has_an_adapter_that_answers() -> None:
    requested = requested_by_capture()
    assert {library for _, library in requested} | set(CONNECTING) == set(LIBRARIES)
    for how, library in requested:
        assert how == "adapter" or callable(getattr(adapter(library), how))
    assert all(callable(adapter(library).patch) for library in CONNECTING)


@pytest.mark.parametrize("library", LIBRARIES)
def test_while_a_run_is_recorded_nobody_answers(library: str) -> None:
    assert replay_hook.adapter(library) is None
    assert replay_hook.prepare(library, None, None) is None
    assert replay_hook.recorded_value("now", None) is None


def test_recording_loads_nothing_of_playback(tmp_path: Path) -> None:
    code = (
        "import sys, http.client, reenact; reenact.install(); import httpx, requests\n"
        "print(*[name for name in sys.modules if name.startswith('reenact.playback')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
