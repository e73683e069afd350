"""OpenTelemetry, Logfire and Datadog: the same spans and metrics as without us, and a whole record beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.provider import Provider

from ..stage import Stage

pytestmark = pytest.mark.timeout(
    900
)  # seven tours of twelve libraries; a busy machine takes minutes for that
ALL = (
    *("httpx", "httpx async", "httpx2", "requests", "urllib3", "http.client", "urllib", "aiohttp"),
    *("openai", "openai async", "anthropic", "boto3"),
)


def test_opentelemetry(provider: Provider, tmp_path: Path) -> None:
    stage = Stage("opentelemetry", ALL, provider, tmp_path).play()
    names = {span[0] for span in stage.report("run")["neighbour"]["spans"]}
    assert {"POST"} < names, names
    stage.check()


def test_logfire(provider: Provider, tmp_path: Path) -> None:
    stage = Stage("logfire", ALL, provider, tmp_path).play()
    assert len(stage.report("run")["neighbour"]) > 20
    stage.check()


def test_datadog(provider: Provider, tmp_path: Path) -> None:
    stage = Stage("ddtrace", ALL, provider, tmp_path).play()
    assert len(stage.report("run")["neighbour"]) > 20
    stage.check()
