"""API keys of the providers: where each is expected, and whether a fork failed for the lack of one."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from ...errors import UsageError
from ...recording.recording import Recording
from ...schema import ERROR
from ...wire.routes import host_of
from ..replay.side_effect_guard import is_here
from .tool_policy import live_calls


class _Key(NamedTuple):
    """Where a provider expects its API key."""

    hosts: tuple[str, ...]
    header: str
    variables: tuple[str, ...]
    prefix: str = ""


_KEYS = (
    _Key(("anthropic.com",), "x-api-key", ("ANTHROPIC_API_KEY",)),
    _Key(("openai.azure.com",), "api-key", ("AZURE_OPENAI_API_KEY",)),
    _Key(("openai.com",), "authorization", ("OPENAI_API_KEY",), "Bearer "),
    _Key(("googleapis.com",), "x-goog-api-key", ("GEMINI_API_KEY", "GOOGLE_API_KEY")),
    _Key(("mistral.ai",), "authorization", ("MISTRAL_API_KEY",), "Bearer "),
    _Key(("cohere.com", "cohere.ai"), "authorization", ("CO_API_KEY",), "Bearer "),
)
_BY_PROVIDER = {"anthropic": 0, "openai": 2, "openai-responses": 2, "gemini": 3, "mistral": 4, "cohere": 5}


def key_variables(provider: object) -> tuple[str, ...]:
    """Return the environment variables for a provider's key, none for an unknown provider."""
    at = _BY_PROVIDER.get(provider) if isinstance(provider, str) else None
    return _KEYS[at].variables if at is not None else ()


def credentials(url: str, provider: object) -> dict[str, str]:
    """Return the header with the key for a URL; UsageError if it needs one and there is no key.

    The URL comes from a trace, so the key goes only to the provider's own hosts, to this machine, and to a
    host that the user's environment names.
    """
    host = host_of(url)
    key = next((each for each in _KEYS if _is_host_of(host, each.hosts)), None)
    if key is None and isinstance(provider, str) and provider in _BY_PROVIDER:
        key = _KEYS[_BY_PROVIDER[provider]]
        if not is_known_host(host):
            raise UsageError(
                f"the recorded request went to {host}, and no API key is sent there",
                hint=f"if that host is yours, name it: {str(provider).upper()}_BASE_URL=https://{host}",
            )
    if key is None:
        return {}
    if not is_here(host) and host not in _named_hosts() and not url.startswith("https://"):
        raise UsageError(f"the recorded request went to {host} in the clear, and no API key is sent there")
    value = next((os.environ[name] for name in key.variables if os.environ.get(name)), None)
    if value is not None:
        return {key.header: key.prefix + value}
    if is_here(host):
        return {}
    raise UsageError(f"no API key for {host}", hint=f"set {' or '.join(key.variables)}")


def is_known_host(host: str) -> bool:
    """True for hosts of the providers, this machine, and hosts that the user's environment names."""
    return is_here(host) or any(_is_host_of(host, each.hosts) for each in _KEYS) or host in _named_hosts()


def _is_host_of(host: str, hosts: tuple[str, ...]) -> bool:
    return any(host == each or host.endswith(f".{each}") for each in hosts)


def _named_hosts() -> set[str]:
    """Return the hosts of the base URLs in the environment, as SDKs read them."""
    return {host_of(value) for name, value in os.environ.items() if name.endswith(("_BASE_URL", "_API_BASE"))}


# Why a fork failed where it went live: no key, a key that is refused, nobody at the other end.

_WANTS_KEY = re.compile(r"api[ _-]?key|authenticat|credential|key inputs", re.IGNORECASE)
_REFUSED = (401, 403)


def why_failed(recording: Recording, provider: object) -> str | None:
    """Return a hint on why a run failed, None if it is not about reaching the model."""
    live = live_calls(recording)
    ends = [call.end.whole_fields for call in live if call.end is not None]
    if any(type(end.get("status")) is int and end["status"] < 400 for end in ends):
        return None
    variables = " or ".join(key_variables(provider)) or "its key"
    if not live:
        is_set = any(os.environ.get(name) for name in key_variables(provider))
        needs = "so it needs a key" if is_set else f"and {variables} is not set"
        return f"a fork calls the model, {needs}" if _lacks_key(recording, provider) else None
    statuses = [end.get("status") for end in ends]
    host = host_of(live[-1].event.url or "") or "the provider"
    if any(status in _REFUSED for status in statuses):
        return f"{host} refuses the key: is {variables} the right one?"
    if statuses and all(status is None for status in statuses):
        return f"{host} does not answer: is it up, and reachable from here?"
    return None


def _lacks_key(recording: Recording, provider: object) -> bool:
    """True if it died for the lack of a key; before it did anything, it may have if there is none."""
    errors = _errors(recording)
    if errors or any(recording.calls()):
        return any(_WANTS_KEY.search(text) for text in errors)
    variables = key_variables(provider)
    return bool(variables) and not any(os.environ.get(name) for name in variables)


def _errors(recording: Recording) -> list[str]:
    return [str(event.error) for event in recording.events if event.kind == ERROR and event.error is not None]
