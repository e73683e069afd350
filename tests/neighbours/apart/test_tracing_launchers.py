"""`ddtrace-run` and `opentelemetry-instrument`, before and after `reenact run`; children are traced and recorded, too."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support.provider import Provider

from ..stage import command

AGENT = """
import os, subprocess, sys, httpx, requests
body = {"model": "claude-x", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
for module in (httpx, requests):
    print(module.post(os.environ["URL"] + "/v1/messages", json=body).status_code, flush=True)
print([hasattr(each, "__wrapped__") for each in (httpx.Client.send, httpx.HTTPTransport.handle_request, requests.Session.send)], flush=True)
if len(sys.argv) == 1:
    subprocess.run([sys.executable, __file__, "child"], check=True)
"""
QUIET = {
    "DD_TRACE_AGENT_URL": "http://127.0.0.1:9",
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "DD_REMOTE_CONFIGURATION_ENABLED": "false",
    "DD_TRACE_STARTUP_LOGS": "false",
    "OTEL_TRACES_EXPORTER": "none",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
}
RUN = ("reenact", "run", "--json", "--out", "runs")


@pytest.mark.parametrize("launcher", ["ddtrace-run", "opentelemetry-instrument"])
@pytest.mark.parametrize("order", ["we first", "they first"])
def test_a_launcher_and_ours(launcher: str, order: str, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    here = os.path.dirname(sys.executable)
    more = {**QUIET, "URL": provider.url(), "PATH": f"{here}:{os.environ['PATH']}"}
    bare = command(tmp_path, launcher, "python", "agent.py", **more)
    assert bare.stdout.count("True") >= 2, bare.stdout + bare.stderr
    provider.reset()
    words = (*RUN, launcher, "python", "agent.py") if order == "we first" else (launcher, *RUN, "agent.py")
    ours = command(tmp_path, *words, **more)
    assert ours.stdout == bare.stdout and ours.returncode == 0, ours.stderr
    summary = json.loads(ours.stderr.splitlines()[-1])
    assert (summary["turns"], summary["unseen"], summary["status"]) == (4, [], "ok")
    assert len(provider.settled()) == 4
