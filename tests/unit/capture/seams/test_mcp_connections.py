"""Connections to MCP servers: what is known of one goes with it, however it ends."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from reenact import Tap
from reenact.capture.http.recorded_once import carriers
from reenact.capture.http.watch import Watch
from reenact.capture.seams import mcp

URL = "http://127.0.0.1:1/mcp"


class Stream:
    """An end of a connection."""


def transports(tap: Tap) -> Any:
    """A module with a transport of the library's kind, which is listened to."""

    @asynccontextmanager
    async def sse_client(url: str) -> AsyncIterator[Any]:
        yield Stream(), Stream()

    module: Any = ModuleType("transports")
    module.sse_client = sse_client
    mcp.patch(module, Watch(tap.recorder))
    return module


@pytest.mark.parametrize("how", ["closed", "raised", "dropped"])
def test_nothing_is_left_of_a_connection(tmp_path: Path, how: str) -> None:
    kept: list[Any] = []

    async def use(module: Any) -> None:
        connection = module.sse_client(URL)
        streams = await connection.__aenter__()
        assert all(id(stream) in mcp._lines for stream in streams) and URL in carriers
        if how == "dropped":
            kept.append(connection)
        else:
            error = KeyError() if how == "raised" else None
            assert not await connection.__aexit__(error and KeyError, error, None)

    known, carried = dict(mcp._lines), list(carriers)
    with Tap(str(tmp_path / "run.jsonl")) as tap:
        loop = asyncio.new_event_loop()
        loop.run_until_complete(use(transports(tap)))
        loop.close()  # which does not close what its generators hold
    kept.clear()
    gc.collect()
    assert (mcp._lines, carriers) == (known, carried)
