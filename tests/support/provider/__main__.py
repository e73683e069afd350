"""Serve until interrupted."""

from __future__ import annotations

import contextlib
import threading

from . import Provider

with Provider() as provider, contextlib.suppress(KeyboardInterrupt):
    print(f"http://127.0.0.1:{provider.port}", flush=True)
    threading.Event().wait()
