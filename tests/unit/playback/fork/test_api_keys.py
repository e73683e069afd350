"""To which hosts of a recorded request an API key is sent: a trace does not choose."""

from __future__ import annotations

import pytest

from reenact.errors import UsageError
from reenact.playback.fork.api_keys import credentials

HOSTS_OF_OTHERS = [
    "evil.example", "evilanthropic.com", "anthropic.com.evil.example", "evil.example#@anthropic.com",
    "127.evil.example", "127.0.0.1.evil.example", "anthropic.com@evil.example",
]  # fmt: skip
SENT = {"x-api-key": "mine"}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "mine")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)


@pytest.mark.parametrize("host", ["api.anthropic.com", "anthropic.com", "127.0.0.1:99", "localhost"])
def test_the_key_goes_to_its_provider_and_to_this_machine(host: str) -> None:
    assert credentials(f"https://{host}/v1/messages", "anthropic") == SENT


@pytest.mark.parametrize("host", HOSTS_OF_OTHERS)
def test_no_key_goes_to_a_host_that_only_the_trace_names(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="no API key is sent there"):
        credentials(f"https://{host}/v1/messages", "anthropic")
    assert credentials(f"https://{host}/v1/messages", None) == {}
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"https://{host}")
    assert credentials(f"https://{host}/v1/messages", "anthropic") == SENT


def test_no_key_goes_anywhere_in_the_clear_but_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="in the clear"):
        credentials("http://api.anthropic.com/v1/messages", "anthropic")
    assert credentials("http://127.0.0.1/v1/messages", "anthropic") == SENT
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://gateway.example")
    assert credentials("http://gateway.example/v1/messages", "anthropic") == SENT
