"""The project that the plugin is tried on."""

from __future__ import annotations

import pytest

from support.project import AGENT, LIGHT, Project
from support.provider import Provider


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, provider: Provider) -> Project:
    for name in ("CI", "REENACT_MODE", "REENACT_CONTENT", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODEL_URL", provider.url("tools-2"))
    made = Project(pytester, monkeypatch, provider)
    made.write("agent.py", AGENT)
    made.write("light.py", LIGHT)
    pytester.syspathinsert()
    return made
