"""To which hosts of a recorded request an API key is sent: a trace does not choose."""

from __future__ import annotations

import pytest

from reenact.errors import UsageError
from reenact.playback.fork.api_keys import credentials

SENT = {"x-api-key": "mine"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "mine")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


@pytest.mark.parametrize("host", ["api.anthropic.com", "anthropic.com", "127.0.0.1:99", "localhost"])
def test_the_key_goes_to_its_provider_and_to_this_machine(host: str) -> None:
    assert credentials(f"https://{host}/v1/messages", "anthropic") == SENT


@pytest.mark.parametrize("host", ["evil.example", "evilanthropic.com", "anthropic.com.evil.example"])
def test_no_key_goes_to_a_host_that_only_the_trace_names(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no API key is sent there"):
        credentials(f"https://{host}/v1/messages", "anthropic")
    assert credentials(f"https://{host}/v1/messages", None) == {}
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"https://{host}")
    assert credentials(f"https://{host}/v1/messages", "anthropic") == SENT
